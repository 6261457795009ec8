"""`agent.db`: one worker's own database: its events, usage, samples and notes, over all attempts.

Everything with an offset is derived from a recording and could be made again; the offset up to
which a recording was read is kept in the same transaction, so that no line counts twice.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from engine.store.database import Database, Schema, is_blank

SAMPLES_KEPT = 7_200
"""Two hours of one sample a second."""


class Table(StrEnum):
    """Where a row belongs."""

    EVENTS = "events"
    USAGE = "usage"
    SAMPLES = "samples"
    NOTES = "notes"


SCHEMA = Schema(
    what="worker's database",
    application_id=0x706C6164,  # "plad"
    is_derived=True,
    migrations=(
        (
            "CREATE TABLE parsed (attempt INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
            *(
                f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL,"
                " offset INTEGER, at REAL NOT NULL, kind TEXT NOT NULL, json TEXT NOT NULL)"
                for table in ("events", "usage", "samples", "notes")
            ),
            *(
                f"CREATE INDEX {table}_of_attempt ON {table} (attempt, id)"
                for table in ("events", "usage", "samples", "notes")
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One row to keep.

    Attributes:
        table: where it belongs.
        at: when, in wall-clock seconds.
        kind: what it is.
        json: what it says.
        offset: where in the recording the piece begins that it was made from; None if it was made
            from something else.
    """

    table: Table = Table.EVENTS
    at: float
    kind: str
    json: str
    offset: int | None = None


class AgentEntry(NamedTuple):
    """One row as it is kept; `id` grows within a table."""

    id: int
    attempt: int
    offset: int | None
    at: float
    kind: str
    json: str


class AgentStore:
    """One worker's database, open."""

    def __init__(self, database: Database, *, samples_kept: int = SAMPLES_KEPT) -> None:
        self._database = database
        self._samples_kept = samples_kept

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, samples_kept: int = SAMPLES_KEPT) -> Self:
        """The database at `path`; made if it is missing and may be written.

        Raises:
            StoreError: it is damaged, foreign, of a newer plait, or missing and only to be read.
        """
        if not read_only and is_blank(path):
            database = Database.create(path, SCHEMA, lambda _connection: None)
        else:
            database = Database.open(path, SCHEMA, read_only=read_only)
        return cls(database, samples_kept=samples_kept)

    def record(self, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]) -> int:
        """Keep rows and how far the recording was read, both or neither; how many were new.

        Rows made from a part of the recording that was read before are passed over: sending a batch
        again does no harm. The offset never goes back.
        """
        with self._database.transaction() as connection:
            count = _record(connection, attempt, parsed_offset, rows)
            if any(row.table is Table.SAMPLES for row in rows):
                _forget_samples(connection, self._samples_kept)
        return count

    def parsed_offset(self, attempt: int) -> int:
        """Up to where this attempt's recording has been read."""
        found = self._database.rows("SELECT offset FROM parsed WHERE attempt = ?", attempt)
        return int(found[0][0]) if found else 0

    def rows(
        self, table: Table, *, attempt: int | None = None, after: int = 0
    ) -> Iterator[AgentEntry]:
        """The rows behind id `after`, of one attempt or of all, in order."""
        chosen = "" if attempt is None else "attempt = ? AND "
        values = () if attempt is None else (attempt,)
        query = f"SELECT * FROM {table} WHERE {chosen}id > ? ORDER BY id LIMIT ?"  # noqa: S608 - as above
        return map(AgentEntry._make, self._database.paged(query, *values, after=after))

    def latest(self, table: Table, *, attempt: int) -> AgentEntry | None:
        """The newest row of an attempt, if there is one."""
        query = f"SELECT * FROM {table} WHERE attempt = ? ORDER BY id DESC LIMIT 1"  # noqa: S608 - as above
        found = self._database.rows(query, attempt)
        return AgentEntry._make(found[0]) if found else None

    def prune_samples(self, keep: int) -> None:
        """Forget all samples but the newest `keep`; one at least, so that ids go on growing."""
        if keep < 1:
            raise ValueError(f"keep must be at least 1, not {keep}")
        with self._database.transaction() as connection:
            _forget_samples(connection, keep)

    def close(self) -> None:
        """Give the file back; a second time does nothing."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_down(path: Path, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]) -> None:
    """Keep rows in a worker's database that nobody else has open; as `record` does.

    Raises:
        StoreError: it is damaged, foreign, of a newer plait, or cannot be written.
    """
    is_new = not path.exists() and not path.with_name(f"{path.name}-wal").exists()
    if is_new and hasattr(sqlite3.Connection, "serialize"):
        record = partial(_record, attempt=attempt, parsed_offset=parsed_offset, rows=rows)
        Database.lay_down(path, SCHEMA, record)
        return
    with AgentStore.open(path) as store:
        store.record(attempt, parsed_offset, rows)


def _record(
    connection: sqlite3.Connection, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]
) -> int:
    read_before = _parsed(connection, attempt)
    fresh = [row for row in rows if row.offset is None or row.offset >= read_before]
    for table in {row.table for row in fresh}:
        connection.executemany(
            f"INSERT INTO {table} (attempt, offset, at, kind, json)"  # noqa: S608 - an enum's word
            " VALUES (?, ?, ?, ?, ?)",
            [
                (attempt, row.offset, row.at, row.kind, row.json)
                for row in fresh
                if row.table is table
            ],
        )
    connection.execute(
        "INSERT OR REPLACE INTO parsed VALUES (?, ?)",
        (attempt, max(read_before, parsed_offset)),
    )
    return len(fresh)


def _parsed(connection: sqlite3.Connection, attempt: int) -> int:
    found = connection.execute("SELECT offset FROM parsed WHERE attempt = ?", (attempt,)).fetchone()
    return int(found[0]) if found else 0


def _forget_samples(connection: sqlite3.Connection, keep: int) -> None:
    connection.execute("DELETE FROM samples WHERE id <= (SELECT max(id) FROM samples) - ?", (keep,))

"""`agent.db`: one worker's own database: its events, usage, samples and notes, over all attempts.

It holds what `engine.store.store.AgentLog` promises, and is open only while it is read or written.
"""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from engine.store.sqlite.database import Database, Schema, is_blank
from engine.store.store import AgentEntry, AgentRow, Table

SAMPLES_KEPT = 7_200
"""Two hours of one sample a second."""


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


_WRITING = threading.Lock()
"""Held by whoever writes a worker's database.

The end of one attempt may be written while the next of its worker already runs, and a log that two
connections write at once is not safe with every SQLite.
"""


class AgentStore:
    """One worker's database; each call opens the file and gives it back."""

    def __init__(self, path: Path, *, samples_kept: int = SAMPLES_KEPT) -> None:
        self._path = path
        self._samples_kept = samples_kept

    def record(self, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]) -> None:
        """Write rows and how far the recording was read, both or neither.

        Rows made from a part of the recording that was read before are passed over: sending a batch
        again does no harm. The offset never goes back.

        Raises:
            StoreError: It is damaged, foreign, of a newer plait, or cannot be written.
        """

        def fill(connection: sqlite3.Connection) -> None:
            _record(connection, attempt, parsed_offset, rows)
            if any(row.table is Table.SAMPLES for row in rows):
                _forget_samples(connection, self._samples_kept)

        path = self._path
        with _WRITING:
            log = path.with_name(f"{path.name}-wal")
            is_new = not path.exists() and not log.exists()
            if is_new and hasattr(sqlite3.Connection, "serialize"):
                Database.lay_down(path, SCHEMA, fill)
            elif is_blank(path):
                Database.create(path, SCHEMA, fill).close()
            else:
                opened = closing(Database.open(path, SCHEMA))
                with opened as database, database.transaction() as connection:
                    fill(connection)

    def parsed_offset(self, attempt: int) -> int:
        """Return up to where this attempt's recording has been read.

        Raises:
            StoreError: There is no database yet, or it cannot be read.
        """
        with self._opened() as database:
            found = database.rows("SELECT offset FROM parsed WHERE attempt = ?", attempt)
        return int(found[0][0]) if found else 0

    def rows(self, table: Table, *, attempt: int | None = None) -> list[AgentEntry]:
        """Return the rows of one attempt, or of all, in order.

        Raises:
            StoreError: There is no database yet, or it cannot be read.
        """
        chosen = "" if attempt is None else "attempt = ? AND "
        values = () if attempt is None else (attempt,)
        query = f"SELECT * FROM {table} WHERE {chosen}id > ? ORDER BY id LIMIT ?"  # noqa: S608 - as below
        with self._opened() as database:
            return list(map(AgentEntry._make, database.paged(query, *values)))

    def _opened(self) -> closing[Database]:
        return closing(Database.open(self._path, SCHEMA, read_only=True))


def _record(
    connection: sqlite3.Connection, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]
) -> None:
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


def _parsed(connection: sqlite3.Connection, attempt: int) -> int:
    found = connection.execute("SELECT offset FROM parsed WHERE attempt = ?", (attempt,)).fetchone()
    return int(found[0]) if found else 0


def _forget_samples(connection: sqlite3.Connection, keep: int) -> None:
    connection.execute("DELETE FROM samples WHERE id <= (SELECT max(id) FROM samples) - ?", (keep,))

"""`run.db`: the plan of one run, the facts that happened to it, and the events they caused.

The truth about a run. Facts and their events go in together, before anything is done about them.
What a fact means is for `engine.core`; here it is a kind and a JSON text.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from engine.errors import StoreError
from engine.store.sqlite.database import Database, Schema, numbered
from engine.store.store import JournalEntry

STANDING = "kind IN ('RunStarted', 'RunWaiting', 'RunFinished')"
"""The events that tell how a run stands."""

SCHEMA = Schema(
    what="run",
    application_id=0x706C7264,  # "plrd"
    migrations=(
        (
            "CREATE TABLE run (plan TEXT NOT NULL, core_version INTEGER NOT NULL)",
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
            """CREATE TABLE fact (
                 seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, json TEXT NOT NULL
               )""",
            """CREATE TABLE event (
                 seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, json TEXT NOT NULL
               )""",
            # The few events that tell how a run stands, for a list of many runs.
            f"CREATE INDEX event_standing ON event (seq) WHERE {STANDING}",
        ),
    ),
)
_LAST = "SELECT (SELECT max(seq) FROM fact), (SELECT max(seq) FROM event)"


class RunStore:
    """The journal of one run, open.

    Attributes:
        plan_json: The plan, as it was when the run was created.
        core_version: The version of the rules that wrote the facts.
        meta: Notes of the creator.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        rows = database.rows("SELECT plan, core_version FROM run")
        if len(rows) != 1:
            raise StoreError(f"{database.path} holds no plan")
        self.plan_json: str = rows[0][0]
        self.core_version: int = rows[0][1]
        self.meta: Mapping[str, str] = dict(database.rows("SELECT key, value FROM meta"))

    @classmethod
    def create(
        cls, path: Path, *, plan_json: str, core_version: int, meta: Mapping[str, str]
    ) -> Self:
        """Make a new journal; its folder must exist.

        Raises:
            StoreError: There is one already, or it cannot be written.
        """

        def fill(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO run VALUES (?, ?)", (plan_json, core_version))
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())

        return cls(Database.create(path, SCHEMA, fill))

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open an existing journal to continue it, or only to read it, even beside its writer.

        Raises:
            StoreError: It is missing, damaged, foreign, or of a newer plait.
        """
        database = Database.open(path, SCHEMA, read_only=read_only)
        try:
            return cls(database)
        except BaseException:
            database.close()
            raise

    def append(
        self,
        facts: Sequence[tuple[str, str]],
        events: Sequence[tuple[str, str]],
        *,
        at: float,
        durable: bool = False,
    ) -> list[int]:
        """Write facts and the events they caused, all or none; return the events' numbers.

        Args:
            facts: Kind and JSON text of each.
            events: Likewise.
            at: The moment, in wall-clock seconds.
            durable: Return only when a power cut could not take it any more.

        Raises:
            StoreError: They could not be written, and nothing of them is kept.
        """
        with self._database.transaction(durable=durable) as connection:
            fact, event = connection.execute(_LAST).fetchone()
            next_fact, next_event = (fact or 0) + 1, (event or 0) + 1
            connection.executemany(
                "INSERT INTO fact VALUES (?, ?, ?, ?)", numbered(facts, next_fact, at)
            )
            connection.executemany(
                "INSERT INTO event VALUES (?, ?, ?, ?)", numbered(events, next_event, at)
            )
        return list(range(next_event, next_event + len(events)))

    def facts(self, after: int = 0) -> Iterator[JournalEntry]:
        """Yield every fact behind number `after`, in order."""
        return self._entries("SELECT * FROM fact WHERE seq > ? ORDER BY seq LIMIT ?", after)

    def events(self, after: int = 0) -> Iterator[JournalEntry]:
        """Yield every event behind number `after`, in order."""
        return self._entries("SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ?", after)

    def _entries(self, query: str, after: int) -> Iterator[JournalEntry]:
        return map(JournalEntry._make, self._database.paged(query, after=after))

    def copy(self, path: Path, kept: Mapping[str, str]) -> None:
        """Write a copy and some named texts into one file; nothing lies there yet.

        Raises:
            StoreError: It cannot be written.
        """
        self._database.rows("VACUUM INTO ?", str(path))
        # Not opened as a journal is: the copy is one plain file, with no log beside it.
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE kept (name TEXT PRIMARY KEY, text TEXT NOT NULL)")
            connection.executemany("INSERT INTO kept VALUES (?, ?)", kept.items())

    def kept(self) -> dict[str, str]:
        """Return the texts that a copy carries along, by their names; none where it is no copy."""
        has_any = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'kept'"
        if not self._database.rows(has_any):
            return {}
        return dict(self._database.rows("SELECT name, text FROM kept"))

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

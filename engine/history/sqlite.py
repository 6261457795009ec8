"""Keep a history in one SQLite file: that of one person, over all their repositories.

The file is derived: all of it comes from journals, and it may be removed at any time. One process
writes at a time, under a lock beside the file, as `engine.store.sqlite.database` demands.
"""

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from engine.history.sql import HUNKS, VERSION, SqlHistory, Transaction, tables
from engine.private import private_folder, write_private
from engine.store.sqlite.database import Database, Schema

SCHEMA = Schema(
    what="history",
    application_id=0x706C6868,  # "plhh"
    is_derived=True,
    is_large=True,
    migrations=(
        (
            *tables(key="INTEGER PRIMARY KEY", words=""),
            """CREATE VIRTUAL TABLE found
                 USING fts5 (words, tokenize = 'unicode61 remove_diacritics 0')""",
        ),
        HUNKS,
    ),
)


class SqliteHistory(SqlHistory):
    """The history in a file; the first one who opens it makes it.

    Attributes:
        name: Another one for each file that was made: what was delivered to one that is gone is
            not in the next. It is known once the file was brought up.
    """

    name = "local"

    def __init__(self, path: Path) -> None:
        self._file = _File(path)
        super().__init__(self._file)

    def up(self) -> tuple[int, int]:
        """Make the file, or bring it to this program's version."""
        with self._file.writing() as opened:
            opened.ask("CREATE TABLE IF NOT EXISTS identity (name TEXT NOT NULL)")
            if not opened.ask("SELECT name FROM identity"):
                opened.ask("INSERT INTO identity VALUES (?)", secrets.token_hex(6))
            [(found,)] = opened.ask("SELECT name FROM identity")
        self.name = f"local-{found}"
        return VERSION, VERSION

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()


class _File:
    """The dialect of SQLite, on one file; one thread at a time."""

    lock = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Database | None = None

    def close(self) -> None:
        """Close the file, which puts its log into it: only one process at a time may."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with _alone(self._path):
                writer.close()

    @contextmanager
    def reading(self) -> Iterator["_Opened"]:
        if not self._path.exists():
            with self.writing():
                pass
        opened = closing(Database.open(self._path, SCHEMA, read_only=True))
        with opened as database, database.transaction(is_reading=True) as connection:
            yield _Opened(connection)

    @contextmanager
    def writing(self) -> Iterator["_Opened"]:
        with _alone(self._path):
            if self._writer is None or not self._path.exists():
                self._writer = self._opened()
            with self._writer.transaction() as connection:
                yield _Opened(connection)

    def _opened(self) -> Database:
        if self._path.exists():
            return Database.open(self._path, SCHEMA)
        write_private(self._path, b"")  # SQLite itself would let others read it
        return Database.create(self._path, SCHEMA, lambda _: None)

    def index(self, transaction: Transaction, attempt: int, words: Sequence[str]) -> None:
        transaction.ask("DELETE FROM found WHERE rowid = ?", attempt)
        transaction.ask("INSERT INTO found (rowid, words) VALUES (?, ?)", attempt, " ".join(words))

    def matches(self, words: Sequence[str]) -> tuple[str, str]:
        asked = " ".join(f'"{word}"*' for word in words)
        return "a.id IN (SELECT rowid FROM found WHERE found MATCH ?)", asked

    def forget(self, transaction: Transaction, before: float) -> None:
        transaction.ask(
            "DELETE FROM found WHERE rowid IN (SELECT a.id FROM attempt a"
            " JOIN run r ON r.uid = a.uid WHERE r.began < ?)",
            before,
        )


class _Opened:
    """SQLite within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def ask(self, statement: str, *values: object) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        for row in rows:
            self.ask(statement, *row)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of whoever writes the file."""
    private_folder(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    number = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)

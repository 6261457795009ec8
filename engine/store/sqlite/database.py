"""Open one SQLite file: safely, migrated by number, written in whole transactions.

Knows SQLite's modes, codes and dangers; not what the tables mean. Write-ahead log, one writing
process a file, which alone checkpoints: SQLite before 3.51.3 may corrupt a log that two connections
write and checkpoint at the same moment, and most installed ones are older.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from engine.errors import StoreError
from engine.store.files import sync_folder
from engine.values import dataclass

BUSY_SECONDS = 5.0
PAGE_ROWS = 1_000


@dataclass(frozen=True, kw_only=True)
class Schema:
    """One kind of file: its name in messages, its mark, and how it grew.

    `migrations[n]` holds the statements that lead from version n to n + 1; once released they are
    never edited, only followed by others.
    """

    what: str
    application_id: int
    migrations: tuple[tuple[str, ...], ...]
    is_derived: bool = False
    """All of it can be made again from elsewhere: nothing waits for the disk."""
    is_large: bool = False
    """Looking through all of it for damage would take too long at every opening."""

    @property
    def version(self) -> int:
        """Return the version this program writes."""
        return len(self.migrations)


class Database:
    """A connection to one file; methods may be called from any thread, one at a time."""

    def __init__(self, path: Path, schema: Schema, *, mode: str) -> None:
        self.path = path
        self._schema = schema
        self._lock = threading.Lock()
        with self._as_store_error():
            self._connection = sqlite3.connect(
                _uri(path, mode),
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )

    @classmethod
    def create(
        cls, path: Path, schema: Schema, fill: Callable[[sqlite3.Connection], object]
    ) -> Self:
        """Make a file with what `fill` writes, all of it durable or none of it there.

        A file whose creation was cut off is completed; anything else in its place is refused.
        """
        if not is_blank(path):
            raise StoreError(f"{path} already exists")
        created = cls(path, schema, mode="rwc")
        with created._closed_on_error():
            created._set_up()
            with created.transaction(durable=not schema.is_derived) as connection:
                if _has_tables(connection):  # somebody else was quicker
                    raise StoreError(f"{path} already exists")
                created._migrate(connection, 0)
                fill(connection)
            if not schema.is_derived:
                sync_folder(path.parent)
        return created

    @classmethod
    def lay_down(
        cls, path: Path, schema: Schema, fill: Callable[[sqlite3.Connection], object]
    ) -> None:
        """Make a file with what `fill` writes, and close it; for what is derived.

        Made in memory and put in its place whole, which takes a tenth of the time: most workers
        write one row in all their life.
        """
        made = cls(path, schema, mode="memory")
        with made._as_store_error(), made._closed_on_error():
            if schema not in _LAID_DOWN:
                made._migrate(made._connection, 0)
                _LAID_DOWN[schema] = made._connection.serialize()
            made._connection.deserialize(_LAID_DOWN[schema])
            with made.transaction() as connection:
                fill(connection)
            content = bytearray(made._connection.serialize())
        made.close()
        content[_WRITE_VERSION] = content[_READ_VERSION] = _WRITE_AHEAD
        draft = path.with_name(f".{path.name}.new")
        try:
            draft.write_bytes(content)
            draft.replace(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def open(cls, path: Path, schema: Schema, *, read_only: bool = False) -> Self:
        """Open a file of this kind, and bring it to this program's version if it may be written."""
        if not path.exists():
            raise StoreError(f"there is no {schema.what} at {path}")
        opened = cls(path, schema, mode=_read_mode(path) if read_only else "rw")
        with opened._closed_on_error():
            version = opened._identified()
            if not read_only:
                opened._set_up()
                if not schema.is_large:
                    opened._check()
            if version < schema.version:
                if read_only:
                    raise StoreError(
                        f"{path} has version {version}, before this plait's {schema.version}",
                        hint="Resume the run once; that brings the file up to date.",
                    )
                with opened.transaction() as connection:
                    opened._migrate(connection, opened._pragma("user_version"))
        return opened

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock, self._as_store_error():
            self._connection.close()

    @contextmanager
    def transaction(
        self, *, durable: bool = False, is_reading: bool = False
    ) -> Iterator[sqlite3.Connection]:
        """Write all that is written in the block, or nothing of it.

        A block that only reads sees one moment, and waits for no writer.

        What was committed survives any crash of this process. A power cut may take the last
        commits, never one in the middle; `durable` returns only when all are on disk.
        """
        with self._lock, self._as_store_error():
            if durable:
                self._connection.execute("PRAGMA synchronous=FULL")
            try:
                self._connection.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    self._connection.execute("PRAGMA synchronous=NORMAL")

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return all rows of a small query."""
        with self._lock, self._as_store_error():
            return self._connection.execute(query, values).fetchall()

    def paged(self, query: str, *values: object, after: int = 0) -> Iterator[Any]:
        """Yield the rows of a long query, which ends in `… > ? ORDER BY … LIMIT ?`.

        It is ordered by its first column. It goes page by page, because a query left open holds the
        log back from being checkpointed.
        """
        while True:
            page = self.rows(query, *values, after, PAGE_ROWS)
            yield from page
            if len(page) < PAGE_ROWS:
                return
            after = page[-1][0]

    def _set_up(self) -> None:
        with self._as_store_error():
            self._connection.execute("PRAGMA journal_mode=WAL")
            mode = "OFF" if self._schema.is_derived else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous={mode}")
            self._connection.execute("PRAGMA journal_size_limit=4194304")

    def _identified(self) -> int:
        """Return the file's version, if it is one of ours and not of a newer program."""
        schema, version = self._schema, self._pragma("user_version")
        mark = self._pragma("application_id")
        if mark != schema.application_id:
            cut_off = mark == version == 0
            raise StoreError(
                f"{self.path} is not a {schema.what} of plait",
                hint="Its creation was interrupted; it is empty, so you can remove it."
                if cut_off
                else "Another program wrote it; move it away if it does not belong there.",
            )
        if version > schema.version:
            raise StoreError(
                f"{self.path} has version {version}, this plait knows {schema.version}",
                hint="Use the newer plait that wrote it.",
            )
        return version

    def _check(self) -> None:
        found = self.rows("PRAGMA quick_check(1)")[0][0]
        if found != "ok":
            raise StoreError(
                f"{self.path} is damaged: {found}", hint=_HINTS[sqlite3.SQLITE_CORRUPT]
            )

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        """Run the missing statements, in a transaction so that no file is left half migrated."""
        for statements in self._schema.migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={self._schema.application_id}")
        connection.execute(f"PRAGMA user_version={self._schema.version}")

    def _pragma(self, name: str) -> int:
        with self._as_store_error():
            value: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _as_store_error(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:
                raise  # misuse of the module, such as a closed connection: ours
            hint = _HINTS.get(code & 0xFF, "")
            raise StoreError(f"{self.path}: {error}", hint=hint) from error


_LAID_DOWN: dict[Schema, bytes] = {}
"""A file of each kind with nothing in it."""
_WRITE_VERSION, _READ_VERSION, _WRITE_AHEAD = 18, 19, 2
"""The bytes of a file's header that say that it has a write-ahead log, and their value."""

_HINTS = {
    sqlite3.SQLITE_FULL: "Free some disk space; committed data is safe.",
    sqlite3.SQLITE_IOERR: "Look for a full, failing or missing disk; committed data is safe.",
    sqlite3.SQLITE_READONLY: "It is read-only here: by its permissions, or by how it was opened.",
    sqlite3.SQLITE_CANTOPEN: "Check the permissions of the file and its folder.",
    sqlite3.SQLITE_BUSY: "Another process is writing it; only one engine may.",
    sqlite3.SQLITE_CORRUPT: "Move it away; the agents' work is in their recordings and refs.",
    sqlite3.SQLITE_NOTADB: "Another program wrote it, or it was overwritten; move it away.",
}


def is_blank(path: Path) -> bool:
    """Return whether nothing is there, or no more than a creation leaves that was cut off."""
    if not path.exists():
        return True
    with closing(sqlite3.connect(_uri(path, "ro"), uri=True)) as connection:
        try:
            return not _has_tables(connection)
        except sqlite3.DatabaseError:
            return False


def _read_mode(path: Path) -> str:
    """Return the mode for reading: with no log and no right to write, the file is immutable."""
    log = path.with_name(f"{path.name}-wal")
    may_write = os.access(path.parent, os.W_OK)
    return "ro" if may_write or log.exists() else "ro&immutable=1"


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"


def _has_tables(connection: sqlite3.Connection) -> bool:
    with closing(connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")) as found:
        return found.fetchone() is not None


def numbered(rows: Sequence[tuple[str, str]], first: int, at: float) -> list[Any]:
    """Return pairs of kind and JSON as rows numbered from `first` on, all of one moment."""
    return [(number, at, kind, text) for number, (kind, text) in enumerate(rows, first)]

"""Keep a history in PostgreSQL: that of a team.

The address comes from the engine's environment, in the words of libpq, TLS included. It is never
written down, shown or handed to an agent. Tables lie in the schema `plait` and change by `up` only,
so that a writer needs no right to change them.
"""

import hashlib
import logging
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from engine.errors import StoreError
from engine.history.seam import PieceRefused
from engine.history.sql import HUNKS, VERSION, SqlHistory, Transaction, tables

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise StoreError(
        "psycopg is not installed, and PostgreSQL needs it",
        hint="`pip install 'plait[postgres]'` installs it.",
    ) from missing

# A console owns the terminal, and the engine may live in it: what psycopg warns of is told by our
# errors.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)
CONNECT_S, ANSWER_S = 5, 30.0
"""Allow so many seconds for a connection, and for the answer to a whole transaction."""
_GUESS = "Is the server running"
"""libpq's own question behind an error; our hint says what to do."""
_LOCK = 0x706C6874
"""The number of the advisory lock that one migration at a time holds."""
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        *tables(key="BIGINT GENERATED ALWAYS AS IDENTITY", words="words TSVECTOR,"),
        "ALTER TABLE attempt ADD PRIMARY KEY (id)",
        "CREATE INDEX attempt_words ON attempt USING gin (words) WITH (fastupdate = off)",
    ),
    HUNKS,
)
"""The statements from each version to the next; a released one is never edited."""


class PostgresHistory(SqlHistory):
    """The history in a PostgreSQL database; the connection is made when it is needed."""

    def __init__(self, url: str) -> None:
        self._server = _Server(url)
        super().__init__(self._server)
        self.name = self._server.name

    def up(self) -> tuple[int, int]:
        """Bring its tables to this program's version; return the version before and after.

        Raises:
            StoreError: It cannot be reached, this role may not, or a newer plait made the tables.
        """
        with self._server.transaction() as server:
            [(encoding,)] = server.ask("SHOW server_encoding")
            if encoding != "UTF8":
                raise StoreError(
                    f"the database stores text as {encoding}, which lacks characters of most "
                    "languages",
                    hint="Create it with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`.",
                )
            server.ask("SELECT pg_advisory_xact_lock(?)", _LOCK)
            server.ask("CREATE SCHEMA IF NOT EXISTS plait")
            server.ask("CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)")
            found = server.ask("SELECT version FROM version")
            before = int(found[0][0]) if found else 0
            _require_known(before)
            for statements in MIGRATIONS[before:]:
                for statement in statements:
                    server.ask(statement)
            server.ask("DELETE FROM version")
            server.ask("INSERT INTO version VALUES (?)", VERSION)
        return before, VERSION

    def close(self) -> None:
        """Close the connection; the next call makes another one."""
        self._server.close()


def _require_known(version: int) -> None:
    if version > VERSION:
        raise StoreError(
            f"the history has version {version}, this plait knows {VERSION}",
            hint="Use the newer plait that made it.",
        )


class _Server:
    """The dialect of PostgreSQL, on one connection; one thread at a time."""

    lock = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            # The message of libpq repeats the address, and the address may hold a password.
            raise StoreError(
                "the address of the history is not a PostgreSQL address",
                hint="Write it as postgresql://user@host/database.",
            ) from error
        usual = {one.keyword.decode(): one.val for one in psycopg.pq.Conninfo.get_defaults()}
        keys = ("host", "hostaddr", "port", "dbname", "service")
        place = [str(parts.get(key) or (usual.get(key) or b"").decode()) for key in keys]
        self.name = f"postgres-{hashlib.sha256(':'.join(place).encode()).hexdigest()[:12]}"
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection, if there is one; whoever waits for an answer waits no more."""
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()
        elif (connection := self._connection) is not None:
            with suppress(psycopg.Error, OSError), _line_of(connection) as line:
                _shut(line)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def reading(self) -> Iterator["_Cursor"]:
        with self.transaction() as server:
            self._require_ready(server)
            yield server

    writing = reading

    def _require_ready(self, server: "_Cursor") -> None:
        [(has_any,)] = server.ask("SELECT to_regclass('plait.version') IS NOT NULL")
        version = server.ask("SELECT version FROM version")[0][0] if has_any else 0
        _require_known(version)
        if version < VERSION:
            raise StoreError(
                f"the history has version {version}, before this plait's {VERSION}",
                hint="The owner of the database must run `plait db up` once.",
            )

    @contextmanager
    def transaction(self) -> Iterator["_Cursor"]:
        """Run a transaction in time: all of it is kept, or nothing."""
        with self._lock:
            try:
                connection = self._connected()
                with _cut_after(connection, ANSWER_S), connection.transaction():
                    yield _Cursor(connection)
            except (psycopg.Error, OSError) as error:
                self._drop()  # a new one may be let in where this one is refused forever
                refused = psycopg.DataError | psycopg.IntegrityError
                kind = PieceRefused if isinstance(error, refused) else StoreError
                raise kind(_sentence(error), hint=_hint(error)) from error

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_S,
                application_name="plait",
                client_encoding="UTF8",  # whatever the environment says
                tcp_user_timeout=int(ANSWER_S * 1000),
            )
            self._connection.execute("SET search_path = plait")
            self._connection.execute(f"SET statement_timeout = '{ANSWER_S:.0f}s'")
        return self._connection

    def index(self, transaction: Transaction, attempt: int, words: Sequence[str]) -> None:
        # As they are: a parser of PostgreSQL's own would cut words unlike other databases do.
        asked = "UPDATE attempt SET words = array_to_tsvector(?::text[]) WHERE id = ?"
        transaction.ask(asked, list(words), attempt)

    def matches(self, words: Sequence[str]) -> tuple[str, str]:
        asked = " & ".join(f"'{word}':*" for word in words)
        return "a.words @@ ?::tsquery", asked

    def forget(self, transaction: Transaction, before: float) -> None:
        """Do nothing: the words go with their attempts."""


class _Cursor:
    """PostgreSQL within one transaction."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def ask(self, statement: str, *values: object) -> list[Any]:
        asked: Any = statement.replace("?", "%s")
        cursor = self._connection.execute(asked, values or None)
        return cursor.fetchall() if cursor.description else []

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        asked: Any = statement.replace("?", "%s")
        with self._connection.cursor() as cursor:
            cursor.executemany(asked, rows)


@contextmanager
def _cut_after(connection: "psycopg.Connection[Any]", seconds: float) -> Iterator[None]:
    """Cut the connection if a block takes too long: libpq itself waits forever.

    A server behind a broken network may keep its side open and say nothing. Its socket is shut
    down, which the thread that waits for it takes as the server's end.
    """
    with _line_of(connection) as line:
        timer = threading.Timer(seconds, _shut, [line])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _line_of(connection: "psycopg.Connection[Any]") -> socket.socket:
    return socket.socket(fileno=os.dup(connection.fileno()))


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _sentence(error: psycopg.Error | OSError) -> str:
    """Return what the server says, in one line; libpq names the host, never a password."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = said or str(error).partition(_GUESS)[0].strip() or type(error).__name__
    return f"the shared history cannot be used: {' '.join(said.split())}"


def _hint(error: psycopg.Error | OSError) -> str:
    return next(
        (hint for kind, hint in _HINTS.items() if isinstance(error, kind)),
        "Nothing is lost: runs continue, and plait delivers the missing events later.",
    )


_HINTS: dict[type[psycopg.Error], str] = {
    psycopg.errors.DiskFull: "Free some space on the database's disk; plait then delivers the "
    "missing events.",
    psycopg.errors.ReadOnlySqlTransaction: "The database is read-only: a standby, or a role "
    "without write access.",
    psycopg.errors.InsufficientPrivilege: "This role lacks a privilege; docs/history.md lists "
    "them.",
    psycopg.errors.InvalidPassword: "Check the password in the address, or in ~/.pgpass.",
}

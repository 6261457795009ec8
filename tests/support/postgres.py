"""Start a real PostgreSQL for tests: on a socket in a folder of its own, as an ordinary user."""

import functools
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

NOBODY = 65534
_DEBIAN = Path("/usr/lib/postgresql")


@functools.cache
def program(name: str) -> str:
    """Return the path of a program of the server's; empty where there is none."""
    places = sorted(_DEBIAN.glob("*/bin"), key=lambda place: place.parent.name)
    path = os.pathsep.join([*map(str, reversed(places)), os.environ.get("PATH", os.defpath)])
    return shutil.which(name, path=path) or ""


def _as_user() -> Sequence[str]:
    """The server refuses to run as root."""
    if os.getuid():
        return ()
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


class Postgres:
    """One server; `folder` holds its data and its socket."""

    def __init__(self, folder: Path) -> None:
        """Make its data in a folder that is empty and its own."""
        self.folder = folder
        self.data = folder / "data"
        self.before_start: Sequence[str] = ()
        self.settings: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        words = ("-A", "trust", "-N", "-U", "owner", "-E", "UTF8", "--locale=C")
        self._run("initdb", *words, "-D", str(self.data), "--wal-segsize=1")

    def _run(self, name: str, *words: str) -> None:
        argv = [*_as_user(), program(name), *words]
        done = subprocess.run(argv, capture_output=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr.decode()

    def url(self, database: str = "postgres", *, user: str = "owner") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self) -> None:
        words = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "max_connections": "40",
            "shared_buffers": "16MB",
            "min_wal_size": "2MB",
            "max_wal_size": "8MB",
            **self.settings,
        }
        argv = [*self.before_start, *_as_user(), program("postgres"), "-D", str(self.data)]
        argv += [word for key, value in words.items() for word in ("-c", f"{key}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, cwd="/")
        port = self.settings.get("port", "5432")
        ready = [program("pg_isready"), "-q", "-h", str(self.folder), "-p", port]
        while subprocess.run(ready, check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it in order, or with SIGQUIT as a crash does: nothing is written any more."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def database(self) -> str:
        """Make an empty database; return its address."""
        name = f"db_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, url: str = "") -> list[tuple[object, ...]]:
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


_GUARD = """cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
lives() { grep -qs "$1" "/proc/$pid/cmdline"; }
if lives "$1"; then
  kill -QUIT "$pid"
  while lives "$1"; do sleep 0.05; done
fi
rm -rf "$1"
"""
"""Waits until nobody holds its input any more, then removes the server and its folder."""


@contextmanager
def guarded() -> Iterator[Path]:
    """Yield a folder for a server; both are gone afterwards, also where the tests are killed.

    A signal to all processes of the tests does not reach the guard: it has a session of its own.
    """
    folder = Path(tempfile.mkdtemp(prefix="plait-pg-", dir="/tmp"))
    if not os.getuid():
        os.chown(folder, NOBODY, NOBODY)
    words = ("sh", "-c", _GUARD, "sh", str(folder))
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True):
        yield folder


@contextmanager
def started() -> Iterator[Postgres]:
    """Yield a server that lives as long as the block."""
    with guarded() as folder:
        server = Postgres(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()

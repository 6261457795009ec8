"""A history that is shared: asked in a thread, cut off, on a full disk, fed by engines that die."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from engine.history.postgres import PostgresHistory
from engine.history.seam import AttemptRecord, RunOrigin
from engine.history.tally import Tally, uid_of
from engine.ids import RunId
from engine.store.store import JournalEntry, Store
from tests.support.engine_runs import Place
from tests.support.needs import WITH_OWN_MOUNTS
from tests.support.postgres import NOBODY, Postgres, guarded

T = TypeVar("T")
NOWHERE = RunOrigin(repository="", person="", host="")


async def asked(url: str, act: Callable[[PostgresHistory], T]) -> T:
    """Return what a history answers, asked in a thread."""

    def ask() -> T:
        with closing(PostgresHistory(url)) as history:
            return act(history)

    return await to_thread.run_sync(ask)


def journal_of(store: Store, run: str) -> tuple[str, list[JournalEntry]]:
    """Return a run's name in all the world, and the events of its journal."""
    with store.run(RunId(run), read_only=True) as journal:
        return uid_of(RunId(run), journal.plan_json, journal.meta), list(journal.events())


class Line:
    """A line to a server that can fall silent: it stays open, and nothing goes through."""

    def __init__(self, server: Postgres) -> None:
        self.is_silent = threading.Event()
        self._there = str(server.folder / ".s.PGSQL.5432")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(server.folder / ".s.PGSQL.5499"))
        self._door.listen()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            with suppress(OSError):  # of a server that is away the client hears at once
                there.connect(self._there)
            self._ends += [client, there]
            for ends in ((client, there), (there, client)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, goal: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.is_silent.is_set():
                    goal.sendall(data)
        for end in (source, goal):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def mend(self) -> None:
        """Let new connections through; those that were silent are at their end."""
        self.is_silent.clear()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


def fill(filler: Path) -> None:
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(bytes(65536))


@contextmanager
def on_small_disk(size: str) -> Iterator[tuple[Postgres, Path]]:
    """Yield a server whose database `small` is on a disk of its own, and a file to fill that with.

    The disk is in a mount namespace that outlives a crash of the server.
    """
    with guarded() as folder:
        disk = folder / "disk"
        mount = f"mount -t tmpfs -o size={size},uid={NOBODY},mode=700 small {disk}"
        words = (*WITH_OWN_MOUNTS, "sh", "-c", f"mkdir -p {disk} && {mount} && echo && cat")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(words, **pipes) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"\n"
            server = Postgres(folder)
            server.before_start = ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt")
            server.start()
            try:
                server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
                server.execute("ALTER DATABASE template1 SET default_tablespace = small")
                server.execute("CREATE DATABASE small TABLESPACE small")
                yield server, Path(f"/proc/{holder.pid}/root{disk}/filler")
            finally:
                server.stop()


def lived_for(place: Place, store: Store, text: str, *, seen: int) -> str:
    """Let an engine live until so many events more are in the journal, then kill it.

    Return the run's name. Without a text the engine goes on with the newest run.
    """
    words = [sys.executable, "-m", "tests.support.engine_process", str(place.project)]
    way = ("start" if text else "go-on", "detached")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = place.environment
    with subprocess.Popen([*words, *way], env=env, text=True, **pipes) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(text)
        engine.stdin.close()
        run = engine.stdout.readline().split()[1]
        # Its report is longer than a pipe holds.
        drain = threading.Thread(target=engine.stdout.read)
        drain.start()
        before = len(journal_of(store, run)[1])
        while engine.poll() is None:
            if _happened(store, run, before) >= seen:
                engine.kill()
            with suppress(subprocess.TimeoutExpired):
                engine.wait(0.01)
        drain.join()
    return run


def _happened(store: Store, run: str, after: int) -> int:
    with store.run(RunId(run), read_only=True) as journal:
        return sum(1 for _ in journal.events(after))


def rows_of(store: Store, run: str) -> tuple[AttemptRecord, ...]:
    """Return the attempts of a journal as a history is to have them."""
    with store.run(RunId(run), read_only=True) as journal:
        tally = Tally(RunId(run), journal.plan_json, journal.meta, NOWHERE)
        tally.take(journal.facts(), list(journal.events()))
    return tally.attempts

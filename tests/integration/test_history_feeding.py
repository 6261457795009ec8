"""An engine beside a shared history that works, is away, refuses, is full, or says nothing."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import anyio
import pytest
from anyio import to_thread

from engine.api.engine import Engine, Run
from engine.history import feeder, postgres
from engine.history.postgres import PostgresHistory
from engine.history.seam import Query
from engine.history.tally import uid_of
from engine.ids import RunId
from engine.messages.events import HistoryDelayed
from engine.messages.results import Outcome, RunView
from engine.site.place import find_place
from engine.store.store import JournalEntry, Store
from tests.support.engine_runs import Place, manifest, wait_view
from tests.support.needs import WITH_OWN_MOUNTS
from tests.support.postgres import NOBODY, Postgres, started

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgresql")]

T = TypeVar("T")
SHARED = {"strategy": "shared"}
A = {"name": "a", "run": "true", "concurrency": 3}
IS_THOROUGH = bool(os.environ.get("PLAIT_THOROUGH"))


@pytest.fixture(scope="module")
def lasting() -> Iterator[Postgres]:
    with started() as server:
        yield server


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that a test may end."""
    with started() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(feeder, "PACE_S", 0.05)
    return Place(tmp_path)


async def asked(url: str, act: Callable[[PostgresHistory], T]) -> T:
    """Return what a history answers, asked in a thread."""

    def ask() -> T:
        with closing(PostgresHistory(url)) as history:
            return act(history)

    return await to_thread.run_sync(ask)


async def share(place: Place, server: Postgres) -> str:
    """Let a place share the history of a new database; return its address."""
    url = await to_thread.run_sync(server.database)
    await asked(url, PostgresHistory.up)
    place.environment["PLAIT_DATABASE_URL"] = url
    return url


async def store_of(place: Place) -> Store:
    return (await find_place(place.project, place.environment)).store


def journal_of(store: Store, run: str) -> tuple[str, list[JournalEntry]]:
    """Return a run's name in all the world, and the events of its journal."""
    with store.run(RunId(run), read_only=True) as journal:
        return uid_of(RunId(run), journal.plan_json, journal.meta), list(journal.events())


async def assert_level(place: Place, url: str, *runs: str) -> None:
    """Hold that the history has these runs as their journals do, and none beside them."""
    store = await store_of(place)
    for run in runs:
        uid, events = await to_thread.run_sync(journal_of, store, run)
        assert await asked(url, lambda history, uid=uid: history.events(uid)) == events
    assert (await asked(url, PostgresHistory.extent)).runs == len(runs)


async def run_of(engine: Engine, *steps: dict[str, object]) -> Run:
    return await engine.start(manifest(*(steps or (A,)), database=SHARED))


async def wait_delayed(engine: Engine, run: Run) -> RunView:
    return await wait_view(engine, run, lambda view: view.history)


async def wait_level(engine: Engine, run: Run) -> None:
    """Wait until the history is delayed no more."""
    await wait_view(engine, run, lambda view: view.history is None)


async def test_a_run_is_delivered_as_it_went_and_no_other_is(place: Place, lasting: Postgres):
    url = await share(place, lasting)
    async with place.engine() as engine:
        run = await run_of(engine)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        own = await engine.start(manifest(A))
        await own.wait()
    await assert_level(place, url, run.id)
    hits = await asked(url, lambda history: history.search(Query()))
    assert sorted(hit.attempt.worker for hit in hits) == [f"a/worker_{i}" for i in (1, 2, 3)]
    assert {hit.attempt.outcome for hit in hits} == {"success"}


async def test_a_history_that_is_down_costs_nothing_but_delay(place: Place, server: Postgres):
    url = await share(place, server)
    server.stop()
    told = []

    def note(event: object) -> None:
        if isinstance(event, HistoryDelayed):
            told.append(event.delay)

    async with place.engine() as engine, anyio.create_task_group() as tasks:

        async def listen() -> None:
            async for each in engine.events():
                note(each.event)

        tasks.start_soon(listen)
        run = await run_of(engine)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        view = await wait_delayed(engine, run)
        assert view.history is not None
        assert "cannot be used" in view.history.what
        server.start()
        await wait_level(engine, run)
        await assert_level(place, url, run.id)
        tasks.cancel_scope.cancel()
    assert told[0] is not None
    assert told[-1] is None


async def test_a_history_that_crashes_again_and_again_has_everything_once(
    place: Place, server: Postgres
):
    url = await share(place, server)
    async with place.engine() as engine:
        slow = {"run": "sleep 0.05", "concurrency": 20}
        run = await run_of(engine, *({**slow, "name": name} for name in "abc"))
        crashes = 0
        while not (await engine.view(run.id)).ended_at:
            await to_thread.run_sync(server.stop, signal.SIGQUIT)
            await to_thread.run_sync(server.start)
            crashes += 1
        await wait_level(engine, run)
    assert crashes > 1
    await assert_level(place, url, run.id)


async def test_what_an_engine_could_not_deliver_the_next_one_does(place: Place, server: Postgres):
    url = await share(place, server)
    server.stop()
    async with place.engine() as engine:
        first = await run_of(engine)
        await first.wait()
        await wait_delayed(engine, first)
    server.start()
    async with place.engine() as engine:
        second = await run_of(engine)
        await second.wait()
    await assert_level(place, url, first.id, second.id)


REFUSALS = {
    "read-only": (
        "SET default_transaction_read_only = on",
        "RESET default_transaction_read_only",
    ),
    "too many": ("CONNECTION LIMIT 0", "CONNECTION LIMIT -1"),
}


@pytest.mark.parametrize("word", REFUSALS)
async def test_a_history_that_refuses_is_told_and_caught_up(
    place: Place, lasting: Postgres, word: str
):
    spoil, mend = REFUSALS[word]
    url = await share(place, lasting)
    name = url.partition("@/")[2].partition("?")[0]
    role = "CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA plait TO {name};"
    role += "GRANT ALL ON ALL TABLES IN SCHEMA plait TO {name}"
    lasting.execute(role.format(name=name), url)
    place.environment["PLAIT_DATABASE_URL"] = url.replace("owner@", f"{name}@")
    lasting.execute(f"ALTER DATABASE {name} {spoil}")
    async with place.engine() as engine:
        run = await run_of(engine)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        view = await wait_delayed(engine, run)
        assert view.history is not None
        assert word in view.history.what
        lasting.execute(f"ALTER DATABASE {name} {mend}")
        await wait_level(engine, run)
    await assert_level(place, url, run.id)


async def test_a_run_that_is_refused_holds_no_other_up(place: Place, lasting: Postgres):
    url = await share(place, lasting)
    lasting.execute("ALTER TABLE plait.attempt ADD CHECK (step <> 'poison')", url)
    async with place.engine() as engine:
        refused = await run_of(engine, {**A, "name": "poison"})
        assert (await refused.wait()).outcome is Outcome.SUCCESS
        view = await wait_delayed(engine, refused)
        assert view.history is not None
        assert refused.id in view.history.what
        run = await run_of(engine)
        await run.wait()
        uid, events = await to_thread.run_sync(journal_of, await store_of(place), run.id)
        with anyio.fail_after(60):
            while await asked(url, lambda history: history.events(uid)) != events:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_an_address_that_is_not_set_is_told(place: Place):
    async with place.engine() as engine:
        run = await run_of(engine)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        view = await wait_delayed(engine, run)
    assert view.history is not None
    assert "PLAIT_DATABASE_URL is not set" in view.history.what


class Line:
    """A line to a server that can fall silent: it stays open, and nothing goes through."""

    def __init__(self, server: Postgres) -> None:
        self.is_silent = threading.Event()
        self._there = str(server.folder / ".s.PGSQL.5432")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(server.folder / ".s.PGSQL.5499"))
        self._door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(self._there)
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

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


async def test_a_history_that_says_nothing_holds_nobody_up(
    place: Place, server: Postgres, monkeypatch: pytest.MonkeyPatch
):
    url = await share(place, server)
    monkeypatch.setattr(postgres, "ANSWER_S", 0.5)
    monkeypatch.setattr(postgres, "CONNECT_S", 2)
    with closing(Line(server)) as line:
        place.environment["PLAIT_DATABASE_URL"] = f"{url}&port=5499"
        async with place.engine() as engine:
            first = await run_of(engine)
            await first.wait()
            await wait_level(engine, first)
            line.is_silent.set()
            run = await run_of(engine)
            assert (await run.wait()).outcome is Outcome.SUCCESS
            await wait_delayed(engine, run)
            line.is_silent.clear()
            await wait_level(engine, run)
            await assert_level(place, url, first.id, run.id)


def fill(filler: Path) -> None:
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(bytes(65536))


@pytest.mark.needs("root", "unshare", "small disk")
async def test_a_history_on_a_full_disk_is_told_and_caught_up(place: Place):
    """Its tables lie on a small disk, in a mount namespace of the server's own."""
    folder = Path(tempfile.mkdtemp(prefix="plait-pg-", dir="/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    disk = folder / "disk"
    script = f"mkdir -p {disk} && mount -t tmpfs -o size=24m,uid={NOBODY},mode=700 small {disk}"
    server = Postgres(folder)
    server.before_start = (*WITH_OWN_MOUNTS, "sh", "-c", f'{script} && exec "$@"', "sh")
    try:
        server.start()
        filler = Path(f"/proc/{server.pid}/root{disk}/filler")
        server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        server.execute("ALTER DATABASE template1 SET default_tablespace = small")
        server.execute("CREATE DATABASE small TABLESPACE small")
        url = place.environment["PLAIT_DATABASE_URL"] = server.url("small")
        await asked(url, PostgresHistory.up)
        await to_thread.run_sync(fill, filler)
        async with place.engine() as engine:
            run = await run_of(engine)
            assert (await run.wait()).outcome is Outcome.SUCCESS
            view = await wait_delayed(engine, run)
            assert view.history is not None
            assert "No space left" in view.history.what
            await anyio.Path(filler).unlink()
            await wait_level(engine, run)
        await assert_level(place, url, run.id)
    finally:
        server.stop()
        shutil.rmtree(folder)


async def test_agents_never_get_the_address(place: Place, lasting: Postgres):
    url = await share(place, lasting)
    place.environment |= {"HISTORY": url, "OTHER": "harmless"}
    show = f"env >{place.outside}/env; tr '\\0' '\\n' </proc/$PPID/environ >>{place.outside}/env"
    sandbox = {"paths": [f"{place.outside}:rw"], "env": ["OTHER"]}
    database = {**SHARED, "url_env": "HISTORY"}
    async with place.engine() as engine:
        plan = manifest({"name": "a", "run": f"{show} || true"}, database=database, sandbox=sandbox)
        run = await engine.start(plan)
        assert (await run.wait()).outcome is Outcome.SUCCESS
    shown = (place.outside / "env").read_text()
    assert "OTHER=harmless" in shown
    assert "HISTORY" not in shown
    assert "postgresql://" not in shown
    await assert_level(place, url, run.id)


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
            if len(journal_of(store, run)[1]) >= before + seen:
                engine.kill()
            with suppress(subprocess.TimeoutExpired):
                engine.wait(0.005)
        drain.join()
    return run


@pytest.mark.timeout(3600 if IS_THOROUGH else 300)
async def test_engines_killed_at_any_moment_deliver_everything_once(
    place: Place, lasting: Postgres
):
    url = await share(place, lasting)
    store = await store_of(place)
    workers = 20
    step = {"name": "a", "run": "sleep 0.02", "concurrency": workers}
    text = json.dumps(manifest(step, database=SHARED, max_concurrent_workers=workers))
    random, moments = Random(5), 200 if IS_THOROUGH else 8
    runs: set[str] = set()
    for moment in range(moments):
        live = partial(lived_for, seen=random.randrange(40))
        runs.add(await to_thread.run_sync(live, place, store, "" if moment % 4 else text))
    async with place.engine(within_s=300) as last:
        for run in runs:
            await (await last.resume(run)).wait()
    await assert_level(place, url, *runs)
    extent = await asked(url, PostgresHistory.extent)
    assert extent.attempts >= workers * len(runs)

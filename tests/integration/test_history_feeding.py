"""An engine beside a shared history that works, is away, refuses, is full, or says nothing."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.api.engine import Engine, Run
from engine.history import feeder, postgres
from engine.history.postgres import PostgresHistory
from engine.history.seam import Query
from engine.messages.events import HistoryDelayed
from engine.messages.results import Outcome, RunView
from engine.site.place import find_place
from engine.store.store import Store
from tests.support.engine_runs import Place, manifest, wait_view
from tests.support.postgres import Postgres, started
from tests.support.shared_history import Line, asked, fill, journal_of, on_small_disk

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgresql"), pytest.mark.long]

SHARED = {"strategy": "shared"}
A = {"name": "a", "run": "true", "concurrency": 3}


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


async def share(place: Place, server: Postgres) -> str:
    """Let a place share the history of a new database; return its address."""
    url = await to_thread.run_sync(server.database)
    await asked(url, PostgresHistory.up)
    place.environment["PLAIT_DATABASE_URL"] = url
    return url


async def store_of(place: Place) -> Store:
    return (await find_place(place.project, place.environment)).store


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
        steps = [{**slow, "name": name} for name in "abc"]
        last = {"name": "d", "run": place.waits_at("go"), "dependencies": [*"abc"]}
        run = await engine.start(place.manifest(*steps, last, database=SHARED))
        crashes = 0
        while not (await engine.view(run.id)).ended_at:
            await to_thread.run_sync(server.stop, signal.SIGQUIT)
            await to_thread.run_sync(server.start)
            crashes += 1
            if crashes > 1:
                place.open_gate("go")
        await wait_level(engine, run)
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


async def test_a_history_that_was_restored_gets_back_the_runs_that_go_on(
    place: Place, lasting: Postgres
):
    url = await share(place, lasting)
    async with place.engine() as engine:
        waits = {"name": "b", "run": place.waits_at("gate"), "dependencies": ["a"]}
        steps = place.manifest(A, waits, database=SHARED)
        run = await engine.start(steps)
        uid, _ = await to_thread.run_sync(journal_of, await store_of(place), run.id)
        with anyio.fail_after(60):
            while not await asked(url, lambda history: history.seqs([uid])):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        lasting.execute("TRUNCATE plait.run, plait.attempt, plait.event", url)
        place.open_gate("gate")
        assert (await run.wait()).outcome is Outcome.SUCCESS
        await wait_level(engine, run)
    await assert_level(place, url, run.id)


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


@pytest.mark.needs("root", "unshare", "small disk")
async def test_a_history_on_a_full_disk_is_told_and_caught_up(place: Place):
    with on_small_disk("24m") as (server, filler):
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

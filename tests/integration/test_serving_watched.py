"""A worker's program is waited for, says what is wrong, and ends with all that it belongs to."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine
from engine.messages import commands as c
from engine.messages.questions import StopServing
from engine.messages.served import ServedState
from engine.phases import Phase
from engine.work import serving
from tests.support import served as s
from tests.support.engine_runs import wait_worker
from tests.support.merging_runs import MergingPlace, land, reviewed
from tests.support.needs import need

pytestmark = [pytest.mark.anyio, pytest.mark.long]
WORKER = "site/worker_1"
SAYS = f"python3 -u -c 'print(\"soon\")'; {s.PYTHON}"


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@pytest.fixture
async def engine(place: MergingPlace) -> AsyncIterator[Engine]:
    async with place.engine() as engine:
        yield engine


@pytest.mark.parametrize(
    ("command", "ready"),
    [(s.SLOW, ""), (s.SLOW, "/index.html"), (SAYS, "so*n")],
    ids=["listens", "page", "text"],
)
async def test_a_program_is_waited_for(
    place: MergingPlace, engine: Engine, command: str, ready: str
):
    run = await reviewed(engine, s.plan(place, command, ready=ready))
    before = await s.begin(engine, run)
    assert (before.state, before.url) == (ServedState.STARTING, "")
    found = await s.wait_served(engine, run, ServedState.READY)
    assert await s.page(found.url) == "made by 1\n"


@pytest.mark.parametrize(
    ("command", "ready", "note"),
    [
        (s.PYTHON, "/missing", "/missing does not answer yet"),
        (s.PYTHON, "never", "it has not printed 'never' yet"),
        ("exec sleep 600", "", "nothing listens on $PORT ({port}) yet"),
        (s.ELSEWHERE, "", "it listens on {other}, not on $PORT ({port})"),
    ],
    ids=["page", "text", "nothing", "elsewhere"],
)
async def test_what_is_not_ready_says_why(  # noqa: PLR0917
    place: MergingPlace,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    ready: str,
    note: str,
):
    monkeypatch.setattr(serving, "_PATIENCE_S", 0.5)
    run = await reviewed(engine, s.plan(place, command, ready=ready))
    await s.begin(engine, run)
    port = (await s.wait_served(engine, run, ServedState.STARTING, has_port=True)).port
    start, _, end = note.format(port=port, other="*").rpartition("*")
    found = await s.wait_served(engine, run, ServedState.STARTING, note=end)
    other = found.note.removeprefix(start).removesuffix(end)
    assert (found.note, found.url) == (f"{start}{other}{end}", "")
    assert other.isdigit() == ("{other}" in note)


async def test_one_that_ignores_that_it_is_to_end_is_made_to(place: MergingPlace, engine: Engine):
    run = await reviewed(engine, s.plan(place, s.STUBBORN))
    found = await s.ready(engine, run)
    assert await engine.ask(StopServing(run.id, WORKER))
    assert not s.is_reached(found.port)


async def test_a_released_workspace_is_laid_out_anew(place: MergingPlace, engine: Engine):
    place.built.commit({".gitignore": ".made\n"}, "ignored")
    run = await reviewed(engine, s.plan(place, s.PYTHON, setup="echo set up > .made"))
    own = await s.ready(engine, run)
    assert not own.is_own_tree
    workspace = (await engine.view(run.id)).worker(WORKER).workspace
    assert workspace is not None
    assert await land(engine, run, WORKER) is Phase.LANDED
    await wait_worker(engine, run, WORKER, lambda w: w.served is None)
    assert not s.is_reached(own.port), "it ends with its workspace"
    await engine.release(WORKER)
    again = await s.ready(engine, run)
    assert again.is_own_tree
    assert await s.page(again.url) == "made by 1\n"
    assert await s.page(again.url, ".made") == "set up\n"
    assert await engine.ask(StopServing(run.id, WORKER))
    assert not s.left_over(place)


async def test_a_setup_that_fails_is_told(place: MergingPlace, engine: Engine):
    setup = f"test -e {place.outside}/broken && exit 4; true"
    run = await reviewed(engine, s.plan(place, s.PYTHON, setup=setup))
    assert await land(engine, run, WORKER) is Phase.LANDED
    await engine.release(WORKER)
    place.open_gate("broken")
    await s.begin(engine, run)
    found = await s.wait_served(engine, run, ServedState.ENDED)
    assert found.note == "could not be started: setup ended with exit code 4"
    assert not s.left_over(place)


async def test_it_ends_with_another_attempt(place: MergingPlace, engine: Engine):
    run = await reviewed(engine, s.plan(place, s.PYTHON))
    first = await s.ready(engine, run)
    retry = c.RetryWorker(worker=WORKER, run=run.id)
    assert isinstance(await engine.command(retry), c.Accepted)
    await wait_worker(engine, run, WORKER, lambda w: w.attempt == 2 and w.served is None)
    assert not s.is_reached(first.port)


async def test_it_ends_with_its_run(place: MergingPlace, engine: Engine):
    plan = s.plan(place, s.PYTHON, workers=2, waits=place.waits_at("go"))
    run = await engine.start(plan)
    await wait_worker(engine, run, WORKER, lambda w: w.phase is Phase.REVIEWING)
    first = await s.ready(engine, run)
    assert isinstance(await engine.command(c.StopRun(run=run.id)), c.Accepted)
    await s.wait_served(engine, run, ServedState.ENDED)
    assert not s.is_reached(first.port)


async def test_a_program_of_one_that_works_shows_what_it_writes(
    place: MergingPlace, engine: Engine
):
    run = await engine.start(s.plan(place, s.PYTHON, workers=2, waits=place.waits_at("go")))
    await wait_worker(engine, run, "site/worker_2", lambda w: w.phase is Phase.RUNNING)
    found = await s.ready(engine, run, "site/worker_2")
    assert "index.html" not in await s.page(found.url)
    place.open_gate("go")
    await run.wait()
    assert await s.page(found.url) == "made by 2\n"


async def test_it_ends_with_the_engine(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, s.plan(place, s.PYTHON))
        found = await s.ready(engine, run)
    assert not s.is_reached(found.port)
    assert not await place.survivors()
    assert not s.left_over(place)


@pytest.mark.parametrize("network", ["open", "none"])
async def test_nothing_is_left_of_it_when_the_engine_is_killed(place: MergingPlace, network: str):
    """Of a detached engine, whose agents go on: that one of them does is the control."""
    if network == "none":
        need("bubblewrap")
    plan = s.plan(place, s.PYTHON, network=network, workers=2, waits=place.waits_at("go"))
    engine, (ports, agent) = await to_thread.run_sync(s.served_elsewhere, place, plan)
    assert all(map(s.is_reached, ports))
    engine.kill()
    await to_thread.run_sync(engine.wait)
    with anyio.fail_after(30):
        while any(map(s.is_reached, ports)):  # noqa: ASYNC110  the kernel tells nobody
            await anyio.sleep(0.05)
    os.kill(agent, 0)
    async with place.engine() as after:
        assert not s.left_over(place)
        view = await after.snapshot()
        assert all(w.served is None for one in view.runs for w in one.steps[0].workers)
        place.open_gate("go")
        await after.resume_unfinished()
        await after.wait_idle()


def plait(place: MergingPlace, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tui.cli", "open", "-C", str(place.project), *words],
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read_until(stream: IO[str], *wanted: str) -> str:
    """Read lines until one has all that is wanted; return it, or nothing if the stream ends."""
    return next((line for line in stream if all(part in line for part in wanted)), "")


async def test_it_is_opened_from_a_shell_until_that_asks_to_end(place: MergingPlace):
    async with place.engine() as engine:
        await reviewed(engine, s.plan(place, s.PYTHON, workers=2))
    with plait(place, WORKER, "worker_2") as opened:
        assert opened.stderr is not None
        links = await to_thread.run_sync(s.links, opened.stderr, 2)
        told, _ = await to_thread.run_sync(plait(place, "--json").communicate)
        assert all(link in told for link in links.values())
        assert await s.page(links[WORKER]) == "made by 1\n"
        assert await s.page(links["worker_2"]) == "made by 2\n"
        line = f"{WORKER:<13} | "
        assert opened.stdout is not None
        said = await to_thread.run_sync(partial(_read_until, opened.stdout, line, "GET / "))
        opened.send_signal(signal.SIGINT)
        await to_thread.run_sync(opened.communicate)
    assert opened.returncode == 0
    assert said
    assert not any(s.is_reached(int(link.split(":")[-1].strip("/"))) for link in links.values())
    assert not await place.survivors()


async def test_a_living_engine_keeps_what_is_left_to_it(place: MergingPlace):
    plain = plait(place, WORKER, "--detach")
    await to_thread.run_sync(plain.communicate)
    assert plain.returncode == 2, "there is no engine to leave it to"
    async with place.engine() as engine:
        run = await reviewed(engine, s.plan(place, s.PYTHON))
        for words, code in ((("--detach", WORKER), 0), ((), 0), (("--stop", WORKER), 0)):
            process = plait(place, *words)
            out, _ = await to_thread.run_sync(process.communicate)
            assert process.returncode == code
            found = (await engine.view(run.id)).worker(WORKER).served
            assert (found is None) == ("--stop" in words)
            assert words or found is None or found.url in out
        process = plait(place, "--stop", WORKER)
        await to_thread.run_sync(process.communicate)
        assert process.returncode == 1, "nothing is served any more"

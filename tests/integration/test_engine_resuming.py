"""Test what was broken off by no fault of its agent's goes on where it stood."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from engine.api import Engine, Run
from engine.keeper import proc
from engine.messages.results import RunReport
from engine.phases import Phase
from tests.support.engine_runs import ChildPlace, Place, phases, scripted, wait_worker
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

A = "a/worker_1"
SAID = "half of it is done"


@pytest.fixture(params=[Place, ChildPlace])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    made: Place = request.param(tmp_path)
    return made


def with_session(place: Place) -> dict[str, Any]:
    """An agent that keeps a session: when it resumes, it looks for what it had begun."""
    begin = [
        {"say": SAID},
        {"write": {"path": "half", "text": "begun"}},
        {"shell": f"touch {place.outside}/on"},
    ]
    resumed = [{"shell": f"cat half > {place.outside}/found"}, {"say": "{prompt}"}]
    return scripted(*begin, {"hang": True}, resumed=resumed)


def without_session(place: Place) -> dict[str, Any]:
    """A command that reads its prompt, says that it is half done and waits; later it goes on."""
    told = f"cat > {place.outside}/told; echo {SAID}"
    again = f"test -e half && cp half {place.outside}/found && exit; echo begun > half"
    wait = f"touch {place.outside}/on; exec sleep 600"
    return {"adapter": "command", "argv": ["sh", "-c", f"{told}; {again}; {wait}"]}


async def wait_begun(place: Place, engine: Engine, run: Run) -> None:
    await wait_worker(engine, run, A, lambda w: w.phase is Phase.RUNNING)
    await wait_until((place.outside / "on").exists, within_s=30)
    await to_thread.run_sync((place.outside / "on").unlink)


async def wait_recorded(engine: Engine, run: Run, text: str) -> None:
    """Wait until an agent's words are recorded: those in the pipe die with their keeper."""
    await wait_worker(engine, run, A, lambda w: any(text in line for line in w.last_lines))


def kill_keeper(place: Place) -> None:
    """Kill whoever keeps the attempt."""
    for process in filter(None, map(proc.look, place.living())):
        if process.name == "plait-keeper":
            os.kill(process.pid, signal.SIGKILL)


async def broken_off(place: Place, agent: dict[str, Any], way: str, *, said: str = "") -> RunReport:
    """The report of a run whose only attempt was broken off once."""
    step = {"name": "a", "agent": agent, "prompt": "Do the thing.", "merge": "none"}
    plan = place.manifest(step)
    if way == "keeper killed":
        async with place.engine() as engine:
            run = await engine.start(plan)
            await wait_begun(place, engine, run)
            if said:
                await wait_recorded(engine, run, said)
            await to_thread.run_sync(kill_keeper, place)
            return await run.wait()
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_begun(place, engine, run)
    async with place.engine() as engine:
        return await (await engine.resume(run.id)).wait()


@pytest.mark.parametrize("way", ["keeper killed", "engine closed"])
async def test_a_session_is_taken_up_in_the_tree_it_left(place: Place, way: str):
    report = await broken_off(place, with_session(place), way, said=SAID)
    assert phases(report) == {A: "FINISHED"}
    (worker,) = report.steps["a"].worker_results
    assert (worker.attempts, (place.outside / "found").read_text()) == (2, "begun")
    assert "Continue where you stopped" in worker.output
    assert "Do the thing" not in worker.output


@pytest.mark.parametrize("way", ["keeper killed", "engine closed"])
async def test_an_agent_without_a_session_is_told_what_it_had_done(place: Place, way: str):
    report = await broken_off(place, without_session(place), way, said=SAID)
    assert report.steps["a"].worker_results[0].attempts == 2
    told = (place.outside / "told").read_text()
    assert (place.outside / "found").read_text() == "begun\n"
    for words in ("Do the thing.", "Continue where you stopped", SAID):
        assert words in told, told


async def test_a_command_step_is_run_again_from_its_beginning(place: Place):
    out = place.outside
    sleep = f"touch {out}/again; touch {out}/on; exec sleep 600"  # killed once `on` is there
    again = f"test -e half && exit 3; touch half; test -e {out}/again && exit"
    step = {"name": "a", "run": f"{again}; {sleep}"}
    async with place.engine() as engine:
        run = await engine.start(place.manifest(step))
        await wait_begun(place, engine, run)
        await to_thread.run_sync(kill_keeper, place)
        report = await run.wait()
    assert phases(report) == {A: "FINISHED"}

"""A world that fails: full disks, broken readers, and every effect failing once in its turn."""

import errno
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.core import facts as f
from engine.core.advance import is_idle
from engine.core.invariants import check_invariants
from engine.errors import StoreError, UnstorableValue
from engine.messages import commands as c
from engine.messages.events import RateLimitMet
from engine.messages.results import Outcome
from engine.phases import Phase
from engine.run.journal import Journal
from engine.run.live_run import LiveRun
from engine.run.performer import Performer
from engine.work.activities import Activity
from tests.support.engine_runs import Place, manifest, phases, scripted, wait_worker
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

A = "a/worker_1"
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_journal_that_cannot_be_written_pauses_the_run_which_then_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    full = [False]
    append = Journal.append

    def fails_while_full(*args: Any, **more: Any) -> Any:
        if full[0]:
            raise StoreError("run.db: database or disk is full", hint="Free some disk space.")
        return append(*args, **more)

    monkeypatch.setattr(Journal, "append", fails_while_full)
    plan = place.manifest(
        {"name": "a", "run": place.waits_at("go")},
        {"name": "b", "dependencies": ["a"], "run": f"echo ran >> {place.outside}/ran"},
    )
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.RUNNING)
        full[0] = True
        place.open_gate("go")
        with anyio.fail_after(30):
            while run._live.troubles.told is None:  # noqa: ASYNC110  trouble sets no event
                await anyio.sleep(0.01)
        refused = await engine.command(c.Pause())
        assert isinstance(refused, c.Refused)
        assert "disk is full" in refused.reason
        assert (await engine.view(run.id)).worker(A).phase is Phase.RUNNING
        await anyio.sleep(1.2)  # longer than it waits before it tries again
        assert run._live.troubles.told is not None
        full[0] = False
        report = await run.wait()
        assert report.outcome is Outcome.SUCCESS
        assert run._live.troubles.told is None
        assert await to_thread.run_sync(run._live._journal.replay) == run._live.state
    assert await anyio.Path(place.outside / "ran").read_text() == "ran\n"


@pytest.mark.parametrize("what", ["the fact", "its event"])
async def test_a_fact_that_cannot_be_written_holds_no_other_up(
    what: str, place: Place, monkeypatch: pytest.MonkeyPatch
):
    feed, append = LiveRun.feed, Journal.append

    def feeds_endless_wait(self: LiveRun, fact: f.Fact) -> None:
        is_wait = isinstance(fact, f.RateLimitSeen) and what == "the fact"
        feed(self, replace(fact, until=math.inf) if is_wait else fact)

    def fails_for_waits(self: Journal, fact: f.Fact, *args: Any, **more: Any) -> Any:
        if isinstance(fact, f.RateLimitSeen) and what == "its event":
            raise UnstorableValue("RateLimitMet cannot be written")
        return append(self, fact, *args, **more)

    monkeypatch.setattr(LiveRun, "feed", feeds_endless_wait)
    monkeypatch.setattr(Journal, "append", fails_for_waits)
    waits = scripted({"retrying": {"attempt": 1, "delay_s": 5, "status": "429"}}, {"hang": True})
    plan = place.manifest({"name": "a", "agent": waits}, {"name": "b", "run": place.waits_at("go")})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.FAILED)
        place.open_gate("go")
        report = await run.wait()
        assert phases(report) == {A: "FAILED AGENT", "b/worker_1": "FINISHED"}
        assert "cannot be written" in str(report.steps["a"].worker_results[0].error)
        assert run._live.troubles.told is None
        assert await to_thread.run_sync(run._live._journal.replay) == run._live.state


CLIENT = r"""#!/bin/sh
nines=$(printf '9%.0s' $(seq 400))
many=$(printf '9%.0s' $(seq 5000))
echo "Attempt 1 failed with status 429. Retrying after ${nines}ms" >&2
echo "Attempt 1 failed with status 429. Retrying after 99999999999999999999999ms" >&2
echo "Attempt $many failed with status 503" >&2
echo "Attempt 1 failed with status 503. Retrying after 999999999999999ms" >&2
echo '{"type": "bye", "words": "done"}'
"""
TABLE = """
name = "mine"
program = "%s"
arguments = []

[[rules]]
when = {type = "bye"}
tell = "closing"
text = "words"
"""


async def test_no_figure_that_a_client_writes_ends_its_attempt_or_its_run(place: Place):
    client = place.outside / "client"
    client.write_text(CLIENT)
    client.chmod(0o755)
    agent = {"adapter": "jsonl", "options": {"table": TABLE % client}}
    step = {"name": "a", "agent": agent, "permissions": {"allow": ["*"]}}
    plan = place.manifest(step, {"name": "b", "run": "true"})
    async with place.engine() as engine:
        run = await engine.start(plan)
        report = await run.wait()
        assert phases(report) == {A: "FINISHED", "b/worker_1": "FINISHED"}
        told = await to_thread.run_sync(lambda: [*run._live._journal.events()])
        waits = [one.event for one in told if isinstance(one.event, RateLimitMet)]
        assert [(one.status, one.until is None) for one in waits] == [("429", True), ("503", False)]
    async with place.engine() as engine:
        texts = [line.text for line in (await engine.log(run.id, A)).lines]
        assert "done" in texts
        assert sum(text.startswith("Attempt 9999") for text in texts) == 1


async def test_an_agent_whose_rows_cannot_be_kept_works_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: Any) -> None:
        raise StoreError("agent.db: database or disk is full")

    monkeypatch.setattr("engine.store.sqlite.agent_store.AgentStore.record", fails)
    agent = scripted({"repeat": {"times": 100, "steps": [{"think": "{i}"}]}}, {"result": "done"})
    async with place.engine() as engine:
        report = await (await engine.start(manifest({"name": "a", "agent": agent}))).wait()
        await engine.wait_idle()
    assert phases(report) == {A: "FINISHED"}


async def test_an_agent_that_cannot_be_followed_is_ended_before_its_next_attempt(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: Any, **__: Any) -> None:  # not of a full disk, for which it would wait
        raise OSError(errno.ENXIO, "No such device or address")

    monkeypatch.setattr("engine.work.watch.Watch._note", fails)
    agent = scripted({"ignore_term": True}, {"say": "here"}, {"hang": True})
    async with place.engine() as engine:
        report = await (await engine.start(manifest({"name": "a", "agent": agent}))).wait()
        assert phases(report) == {A: "FAILED AGENT"}
        error = report.steps["a"].worker_results[0].error
        assert error is not None
        assert "No such device" in error
        # The keeper writes down the end of its agent, and then goes itself.
        await wait_until(lambda: place.names() == {"plait-zygote"})


def failing_at(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the effect of a number fail; the effects that were begun, as they come."""
    begun: list[str] = []
    do = Performer._do

    async def fails_once(self: Performer, activity: Activity) -> None:
        begun.append(type(activity.effect).__name__)
        if len(begun) == number:
            raise OSError(*NO_SPACE.args)
        await do(self, activity)

    monkeypatch.setattr(Performer, "_do", fails_once)
    return begun


PLAN = manifest(
    {
        "name": "a",
        "agent": scripted({"write": {"path": "x", "text": "x"}}, {"say": "done"}),
        "artifacts": ["x"],
        "check": "test -e x",
        "retry": {"attempts": 2, "delay_seconds": 0.01},
    },
    {"name": "b", "dependencies": ["a"], "run": "test -e x"},
    workspace={"setup": "true"},
)


@pytest.mark.parametrize("number", range(1, 10))
async def test_whichever_effect_fails_the_run_ends_and_leaves_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
):
    begun = failing_at(number, monkeypatch)
    async with place.engine() as engine:
        run = await engine.start(PLAN)
        report = await run.wait()
        with anyio.fail_after(30):
            await engine.wait_idle()
        check_invariants(None, run._live.state)
        assert is_idle(run._live.state)
        assert run._live._activities.under_way == 0
        assert await to_thread.run_sync(run._live._journal.replay) == run._live.state
    failed = begun[number - 1 : number]
    # What belongs to step a is tried again; a command has one attempt, and releasing is nobody's.
    if not failed or failed == ["ReleaseWorkspace"] or number <= 4:
        assert report.outcome is Outcome.SUCCESS, (begun, phases(report))
    assert not await place.survivors()


async def test_the_loop_of_faults_reaches_the_end_of_the_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    begun = failing_at(99, monkeypatch)
    async with place.engine() as engine:
        await (await engine.start(PLAN)).wait()
        await engine.wait_idle()
    assert begun[:4] == ["PrepareWorkspace", "StartAgent", "Collect", "RunCheck"]
    assert begun.count("ReleaseWorkspace") == 2
    assert len(begun) == 9

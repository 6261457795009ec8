"""Eleven real runs, each with a way of ending that the engine must still understand tomorrow."""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from engine.api import Engine, Run, reach
from engine.messages import commands as c
from engine.messages.events import OutputAppended
from engine.messages.merging import DecideConflict, LeaveOutHunks
from engine.messages.questions import ReadDiff
from engine.phases import Phase
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import (
    SOURCE,
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    writes,
)

Scenario = Callable[[Path], Awaitable[str]]
GIT = {"isolation_strategy": "worktree"}


async def _accepted(engine: Engine, command: c.Command) -> None:
    reply = await engine.command(command)
    assert isinstance(reply, c.Accepted), reply


async def landed_and_undone(tmp: Path) -> str:
    """Land two changes by different styles, and take one back."""
    place = MergingPlace(tmp)
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(2, "two"), changed(9, "nine")))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, "s2/worker_1", style="squash") is Phase.LANDED
        await _accepted(engine, c.UndoLanding(worker="s2/worker_1", run=run.id))
        await wait_worker(engine, run, "s2/worker_1", lambda w: w.phase is Phase.REVIEWING)
        return run.id


async def resolved_conflict(tmp: Path) -> str:
    """Decide a conflict by hand, and land the result."""
    place = MergingPlace(tmp)
    async with place.engine() as engine:
        run = await conflicted(engine, place, changed(4, "ours"), changed(4, "theirs"))
        worker = "s2/worker_1"
        await engine.port.ask(DecideConflict(run.id, worker, c.ChooseRest(choice="incoming")))
        await engine.port.ask(DecideConflict(run.id, worker, c.FinishResolving()))
        await wait_worker(engine, run, worker, lambda w: w.phase is Phase.LANDED)
        return run.id


async def candidates(tmp: Path) -> str:
    """Choose one of three candidates, after rejecting another."""
    place = MergingPlace(tmp)
    agent = scripted(
        workers={
            str(number): [{"write": {"path": "code", "text": changed(number, f"by {number}")}}]
            for number in (1, 2, 3)
        }
    )
    step = {"name": "fix", "agent": agent, "concurrency": 3, "policy": "settled"}
    async with place.engine() as engine:
        run = await reviewed(engine, place.manifest(step, **GIT))
        await _accepted(engine, c.Reject(worker="fix/worker_3", run=run.id))
        await _accepted(engine, c.Choose(worker="fix/worker_2", run=run.id))
        await wait_worker(engine, run, "fix/worker_1", lambda w: w.phase is Phase.DISCARDED)
        return run.id


async def retried_with_feedback(tmp: Path) -> str:
    """Fail a check, retry by the manifest, then by a human with words."""
    place = MergingPlace(tmp)
    agent = scripted(
        attempts={
            "1": [{"write": {"path": "code", "text": "broken\n"}}],
            "2": [{"say": "{feedback}"}, {"write": {"path": "code", "text": "better\n"}}],
            "3": [{"say": "{feedback}"}, {"write": {"path": "code", "text": changed(3, "good")}}],
        }
    )
    step = {
        "name": "fix",
        "agent": agent,
        "check": "! grep -q broken code",
        "retry": {"attempts": 2, "feedback": True, "delay_seconds": 0.01},
    }
    async with place.engine() as engine:
        run = await reviewed(engine, place.manifest(step, **GIT))
        await _accepted(
            engine, c.RetryWorker(worker="fix/worker_1", run=run.id, feedback="mind line 3")
        )
        await wait_worker(
            engine, run, "fix/worker_1", lambda w: w.attempt == 3 and w.phase is Phase.REVIEWING
        )
        return run.id


async def failed_fast(tmp: Path) -> str:
    """Let one of two fail, so that the other and what depends on them end with it."""
    place = MergingPlace(tmp)
    steps = [
        {
            "name": "build",
            "agent": scripted(workers={"1": [{"fail": "no compiler"}], "2": [{"hang": True}]}),
            "concurrency": 2,
        },
        {"name": "ship", "agent": writes("x\n"), "dependencies": ["build"]},
    ]
    async with place.engine() as engine:
        return (await reviewed(engine, place.manifest(*steps, **GIT))).id


async def race(tmp: Path) -> str:
    """Let the first success win."""
    place = MergingPlace(tmp)
    agent = scripted(
        workers={
            "1": [{"write": {"path": "code", "text": changed(1, "first")}}],
            "2": [{"hang": True}],
            "3": [{"hang": True}],
        }
    )
    step = {"name": "go", "agent": agent, "concurrency": 3, "policy": "race"}
    async with place.engine() as engine:
        return (await reviewed(engine, place.manifest(step, **GIT))).id


async def stacked_matrix(tmp: Path) -> str:
    """Build a matrix on a first step, and verify all by a command."""
    place = MergingPlace(tmp)
    steps = [
        {"name": "base", "agent": writes(changed(1, "base")), "check": "grep -q base code"},
        {
            "name": "port",
            "agent": scripted({"write": {"path": "{prompt}", "text": "ported\n"}}),
            "prompt": "{item}",
            "dependencies": ["base"],
            "strategy": {"matrix": {"items": ["a.txt", "b.txt"]}},
        },
        {"name": "verify", "run": "test -e a.txt && test -e b.txt", "dependencies": ["port"]},
    ]
    async with place.engine() as engine:
        return (await reviewed(engine, place.manifest(*steps, **GIT))).id


async def asked_and_steered(tmp: Path) -> str:
    """Answer a question, steer, pause and resume, and change a limit."""
    place = MergingPlace(tmp)
    agent = scripted(
        {"usage": {"input_tokens": 10, "output_tokens": 5, "usd": 0.25}},
        {"ask": {"text": "May I?", "choices": ["yes", "no"]}},
        {"say": "{answer}"},
        {"write": {"path": "code", "text": changed(6, "asked")}},
    )
    async with place.engine() as engine:
        run = await engine.start(place.manifest({"name": "ask", "agent": agent}, **GIT))
        worker = "ask/worker_1"
        await wait_worker(engine, run, worker, lambda w: w.questions)
        await _accepted(engine, c.Pause(worker=worker, run=run.id))
        await _accepted(engine, c.Resume(worker=worker, run=run.id))
        await _accepted(engine, c.Steer(worker=worker, run=run.id, text="hurry"))
        await _accepted(engine, c.Answer(worker=worker, run=run.id, answer="yes"))
        await run.wait()
        return run.id


async def left_out(tmp: Path) -> str:
    """Leave one of two hunks out, and land the rest."""
    place = MergingPlace(tmp)
    text = changed(11, "eleven", changed(2, "two"))
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(text))
        await _drop_first(engine, run, "s1/worker_1")
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        return run.id


async def _drop_first(engine: Engine, run: Run, worker: str) -> None:
    diff = await engine.port.ask(ReadDiff(run.id, worker))
    await engine.port.ask(LeaveOutHunks(run.id, worker, [diff.keys[0][0]]))


async def limits_and_cancel(tmp: Path) -> str:
    """Meet a time limit, cancel by hand, and lose the network of a login."""
    place = MergingPlace(tmp)
    steps = [
        {"name": "slow", "agent": scripted({"hang": True}), "limits": {"time_seconds": 1}},
        {"name": "stop", "agent": scripted({"hang": True})},
        {"name": "none", "agent": scripted({"say": "nothing to do"})},
        {"name": "same", "agent": writes(SOURCE), "merge": "none"},
    ]
    async with place.engine() as engine:
        run = await engine.start(place.manifest(*steps, **GIT))
        await wait_worker(engine, run, "stop/worker_1", lambda w: w.phase is Phase.RUNNING)
        await _accepted(engine, c.StopWorker(worker="stop/worker_1", run=run.id))
        await run.wait()
        return run.id


async def killed_and_resumed(tmp: Path) -> str:
    """Kill the engine with its agents, and take the run up again."""
    place = MergingPlace(tmp)
    late = {"write": {"path": "code", "text": changed(5, "late")}}
    agent = scripted(attempts={"1": [{"say": "I work"}, {"hang": True}], "2": [late]})
    plan = place.manifest({"name": "s1", "agent": agent}, **GIT)
    words = [sys.executable, "-m", "tests.support.engine_process", str(place.project)]
    first = [*words, "start", "tethered"]
    async with await anyio.open_process(first, env=place.environment, stderr=None) as process:
        assert process.stdin
        assert process.stdout
        await process.stdin.send(json.dumps(plan).encode())
        await process.stdin.aclose()
        run = (await process.stdout.receive()).decode().split()[1]
        async with reach(place.project, environment=place.environment) as (port, _):
            async for told in port.events(run=run):
                if isinstance(told.event, OutputAppended):
                    break
        process.kill()
    assert not await place.survivors()
    async with place.engine() as engine:
        await (await engine.resume(run)).wait()
    return run


SCENARIOS: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        landed_and_undone,
        resolved_conflict,
        candidates,
        retried_with_feedback,
        failed_fast,
        race,
        stacked_matrix,
        asked_and_steered,
        left_out,
        limits_and_cancel,
        killed_and_resumed,
    )
}

"""Choices outlive an engine that is killed with -9: resumed, and seen through a socket."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.api import ConflictView, Engine, reach
from engine.errors import EngineError
from engine.messages import commands as c
from engine.messages.merging import DecideConflict, PlanLandings, ReadConflicts
from engine.phases import Phase
from engine.review import sessions
from tests.support.engine_runs import wait_worker
from tests.support.merging_runs import MergingPlace, changed, conflicted, reviewed, settled, writes

pytestmark = pytest.mark.anyio
WHO = "s2/worker_1"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")

_DECIDES = """
import sys, anyio
from engine.messages import commands as c
from engine.messages.merging import DecideConflict
from engine.api import Engine

async def main(project, run, worker):
    async with Engine.open(project) as engine:
        for number in range(1000):
            text = f"decision {number}\\n"
            action = c.WriteHunk(path="code", hunk=0, text=text)
            await engine.resume(run)
            await engine.ask(DecideConflict(run, worker, action))
            print(number, flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


def decide_until_killed(place: MergingPlace, run: str, steps: int) -> int:
    """Kill an engine after so many choices, and return the last one that it reported."""
    words = [sys.executable, "-c", _DECIDES, str(place.project), run, WHO]
    env = {**place.environment, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env) as engine:
        assert engine.stdout is not None
        told = -1
        while told < steps:
            told = int(engine.stdout.readline())
        os.kill(engine.pid, signal.SIGKILL)
        rest = engine.stdout.read().split()
    return int(rest[-1]) if rest else told


async def test_every_decision_that_was_told_survives_a_kill(place: MergingPlace):
    async with place.engine() as engine:
        run = (await conflicted(engine, place, MINE, THEIRS)).id
    told = await to_thread.run_sync(decide_until_killed, place, run, 4)
    async with place.engine() as engine:
        taken = await engine.resume(run)
        view = await engine.port.ask(ReadConflicts(run, WHO))
        (hunk,) = view.file("code").hunks
        # One more may have been written that nobody was told of.
        assert hunk.result in {f"decision {told}\n", f"decision {told + 1}\n"}
        assert view.can_undo
        await engine.port.ask(
            DecideConflict(run, WHO, c.WriteHunk(path="code", hunk=0, text="last\n"))
        )
        await engine.port.ask(DecideConflict(run, WHO, c.FinishResolving()))
        assert await settled(engine, taken, WHO) is Phase.LANDED
    assert place.text() == changed(3, "last")
    place.built.fsck()


async def test_undo_goes_back_over_a_restart(place: MergingPlace):
    async with place.engine() as engine:
        run = (await conflicted(engine, place, MINE, THEIRS)).id
        for choice in ("target", "incoming"):
            action = c.ChooseHunk(path="code", hunk=0, choice=choice)
            await engine.port.ask(DecideConflict(run, WHO, action))
    async with place.engine() as engine:
        view = await engine.port.ask(DecideConflict(run, WHO, c.UndoChoice()))
        assert view.file("code").hunks[0].choice == "target"
        view = await engine.port.ask(DecideConflict(run, WHO, c.RedoChoice()))
        assert view.file("code").hunks[0].choice == "incoming"


async def test_a_decision_that_cannot_be_written_does_not_count(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    async with place.engine() as engine:
        run = (await conflicted(engine, place, MINE, THEIRS)).id
        with monkeypatch.context() as patched:
            patched.setattr(sessions, "write_atomically", full)
            with pytest.raises(OSError, match="No space"):
                await engine.port.ask(DecideConflict(run, WHO, c.ChooseRest(choice="target")))
        assert not (await engine.port.ask(ReadConflicts(run, WHO))).can_undo


async def test_conflicts_are_decided_through_the_socket_like_here(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        async with reach(place.project, environment=place.environment) as (port, has_lived):
            assert has_lived
            assert await port.ask(ReadConflicts(run.id, WHO)) == await engine.port.ask(
                ReadConflicts(run.id, WHO)
            )
            lines = (c.PickedLine(side="incoming", at=0), c.PickedLine(side="target", at=0))
            picked = c.PickLines(path="code", hunk=0, lines=lines)
            view = await port.ask(DecideConflict(run.id, WHO, picked))
            assert view == await engine.port.ask(ReadConflicts(run.id, WHO))
            with pytest.raises(EngineError, match="no such conflict"):
                await port.ask(DecideConflict(run.id, WHO, c.Reopen(path="nothing", hunk=3)))
            order = await port.ask(PlanLandings(run.id, [WHO]))
            assert [planned.paths for planned in order] == [("code",)]
            await port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == changed(3, "theirs\nmine")


async def test_a_worker_goes_on_from_a_base_that_was_decided(place: MergingPlace):
    """Three changes that meet in one line: two conflicts on the way to one base."""
    ups = [{"name": f"u{n}", "agent": writes(changed(3, f"u{n}"))} for n in range(1, 4)]
    down = {
        "name": "down",
        "agent": writes({"new": "built on it\n"}),
        "dependencies": ["u1", "u2", "u3"],
    }
    plan = place.manifest(*ups, down, isolation_strategy="worktree")
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, "down/worker_1", lambda w: w.phase is Phase.CONFLICTED)
        view = await engine.port.ask(ReadConflicts(run.id, "down/worker_1"))
        assert (view.is_of_base, view.target, view.incoming) == (True, "u1/worker_1", "u2/worker_1")

        async def do(action: c.ResolutionAction) -> ConflictView:
            return await engine.port.ask(DecideConflict(run.id, "down/worker_1", action))

        await do(c.ChooseRest(choice="both"))
        view = await do(c.FinishResolving())
        assert (view.is_finished, view.is_resolved) == (False, False)
        assert (view.target, view.incoming) == ("u1/worker_1 + u2/worker_1", "u3/worker_1")
    place.built.forget_unreachable()
    async with place.engine() as engine:
        run = await engine.resume(run.id)
        view = await engine.port.ask(ReadConflicts(run.id, "down/worker_1"))
        assert view.incoming == "u3/worker_1"
        await do_all(engine, run.id)
        await wait_worker(engine, run, "down/worker_1", lambda w: w.phase is Phase.REVIEWING)
        (head,) = [w.change.head for w in (await engine.view(run.id)).workers if w.step == "down"]
    assert place.text(revision=f"{head}~1") == changed(3, "u1\nu2\nu3")
    assert place.text("new", head) == "built on it\n"


async def do_all(engine: Engine, run: str) -> None:
    await engine.port.ask(DecideConflict(run, "down/worker_1", c.ChooseRest(choice="both")))
    view = await engine.port.ask(DecideConflict(run, "down/worker_1", c.FinishResolving()))
    assert view.is_finished


async def test_two_who_decide_at_once_both_count(place: MergingPlace):
    async with place.engine() as engine:
        texts = [changed(9, f"{who} 9", changed(3, f"{who} 3")) for who in ("mine", "theirs")]
        run = await conflicted(engine, place, *texts)
        async with anyio.create_task_group() as tasks:
            for number in range(2):
                action = c.ChooseHunk(path="code", hunk=number, choice="target")
                tasks.start_soon(engine.ask, DecideConflict(run.id, WHO, action))
        assert (await engine.port.ask(ReadConflicts(run.id, WHO))).is_resolved


async def test_reviewed_work_has_no_conflicts_to_show(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(MINE))
        with pytest.raises(EngineError, match="REVIEWING"):
            await engine.port.ask(ReadConflicts(run.id, "s1/worker_1"))

"""Cancelling agents at many moments: no process, worktree or lock is left, and no work lost."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from engine import Agent, AgentRunFailed, Engine, Failure, IsolatedAgentSession
from engine.library.loops import LoopEnded, LoopThread
from engine.messages.events import Told, WorkerMoved
from engine.messages.questions import ListTrash, RestoreTrash
from engine.phases import Phase
from engine.site.shelter import Shelter
from tests.support.library import SLOW, WRITES, Workbench, script
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    return Workbench(tmp_path, monkeypatch)


async def nothing_is_left(bench: Workbench) -> None:
    assert bench.worktrees() == []
    async with bench.engine() as engine:  # the lock is free, and no run waits to be taken up
        assert await engine.resume_unfinished() == []
    assert await bench.survivors() == set()


class CutOff:
    """Cancel a scope at the n-th event of a run."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.scope = anyio.CancelScope()

    def __call__(self, _: Told) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


@pytest.mark.parametrize("moment", [1, 3, 4, 6, 7, 9])
async def test_a_prompt_cancelled_at_any_event_leaves_nothing(
    bench: Workbench, moment: int
) -> None:
    cut = CutOff(moment)
    async with Agent("scripted", repo=bench.project, options=WRITES, subscribers=[cut]) as one:
        with cut.scope:
            await one.prompt("x")
        assert cut.scope.cancelled_caught == (one.history == ())
    await nothing_is_left_but_what_waits(bench)


async def nothing_is_left_but_what_waits(bench: Workbench) -> None:
    assert bench.worktrees() == []
    assert await bench.survivors() == set()
    async with bench.engine() as engine:
        for summary in await engine.history():
            (worker,) = (await engine.view(summary.id)).workers
            assert worker.phase in {Phase.CANCELLED, Phase.REVIEWING}


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
async def test_a_prompt_cancelled_at_any_time_leaves_nothing(
    bench: Workbench, delay: float
) -> None:
    async with Agent("scripted", repo=bench.project, options=SLOW) as one:
        with anyio.move_on_after(delay) as scope:
            await one.prompt("x")
        assert scope.cancelled_caught
    await nothing_is_left(bench)


async def test_what_a_cancelled_agent_had_done_is_kept_on_its_ref(bench: Workbench) -> None:
    with anyio.CancelScope() as scope:

        def when_written(told: Told) -> None:
            if type(told.event).__name__ == "ToolUsed":
                scope.cancel()

        words: dict[str, Any] = {"options": SLOW, "subscribers": [when_written]}
        async with Agent("scripted", repo=bench.project, **words) as one:
            await one.prompt("x")
    assert scope.cancelled_caught
    refs = bench.git.git("for-each-ref", "--format=%(refname)", "refs/plait").splitlines()
    (head,) = [ref for ref in refs if ref.endswith("/head")]
    assert bench.shown(head, "b.txt") == "begun"
    await nothing_is_left(bench)


async def test_parallel_prompts_are_cancelled_together(bench: Workbench) -> None:
    running: set[str] = set()
    words: dict[str, Any] = {"options": SLOW, "repo": bench.project}
    with anyio.CancelScope() as scope:

        def when_two_run(told: Told) -> None:
            if isinstance(told.event, WorkerMoved) and told.event.after is Phase.RUNNING:
                running.add(told.run)
                if len(running) == 2:
                    scope.cancel()

        async with Agent("scripted", subscribers=[when_two_run], **words) as one:
            await one.run_parallel_prompts(["a", "b", "c", "d"], max_parallel_runs=2)
    assert scope.cancelled_caught
    await nothing_is_left(bench)


async def test_one_cancelled_sibling_touches_no_other(bench: Workbench) -> None:
    words: dict[str, Any] = {"options": WRITES, "repo": bench.project, "isolation": "directory"}
    async with Agent("scripted", **words) as one, one.fork() as fork:
        async with anyio.create_task_group() as group:
            group.start_soon(one.prompt, "cancelled")
            reply = await fork.prompt("goes on")
            group.cancel_scope.cancel()
        assert reply.text == "did goes on"


async def test_after_a_cancelled_turn_the_conversation_goes_on(bench: Workbench) -> None:
    options = script(
        {"write": {"path": "b.txt", "text": "first\n"}},
        {"result": "did {prompt}"},
        resumed=[{"append": {"path": "b.txt", "text": "lost\n"}}, {"hang": True}],
    )
    async with Agent("scripted", repo=bench.project, options=options) as one:
        await one.prompt("begin")
        with anyio.move_on_after(0.4):
            await one.continue_turn("too slow")
        assert [turn.prompt for turn in one.history] == ["begin"]
        reply = await one.continue_turn("once more")
        assert reply.change is not None
        assert "did begin" in reply.text
        assert bench.shown(reply.change.head, "b.txt") == "first"


async def test_a_session_survives_a_cancelled_run_and_is_removed_by_cancellation(
    bench: Workbench,
) -> None:
    async with IsolatedAgentSession("agent-1", repo=bench.project) as session:
        kept = session.workspace / "kept.txt"
        async with anyio.create_task_group() as group:
            group.start_soon(session.run, ["sh", "-c", "echo kept > kept.txt; sleep 600"])
            await wait_until(lambda: kept.exists() and kept.read_text() == "kept\n")
            group.cancel_scope.cancel()
        assert (await session.run(["cat", "kept.txt"])).text.strip() == "kept"
        workspace = session.workspace
    assert not workspace.exists()
    with anyio.move_on_after(0.6) as scope:
        async with IsolatedAgentSession("agent-2", repo=bench.project) as session:
            await session.run(["sleep", "60"])
    assert scope.cancelled_caught
    assert bench.worktrees() == []
    assert await bench.survivors() == set()


async def test_an_engine_that_ends_is_a_failure_of_every_run(bench: Workbench) -> None:
    words: dict[str, Any] = {"options": SLOW, "repo": bench.project, "isolation": "directory"}
    begun = anyio.Event()

    def when_running(told: Told) -> None:
        if isinstance(told.event, WorkerMoved) and told.event.after is Phase.RUNNING:
            begun.set()

    results: list[Any] = []
    async with Agent("scripted", subscribers=[when_running], **words) as one:

        async def run() -> None:
            results.extend(await one.run_parallel_prompts(["a"]))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            thread: LoopThread[Engine] = one._seat._engine  # type: ignore[attr-defined]
            await anyio.to_thread.run_sync(thread.close)
        assert isinstance(results[0], Failure)
        assert isinstance(results[0].error, LoopEnded)
    assert await bench.survivors() == set()


async def test_a_workspace_that_is_whole_too_late_goes_too(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while the last thing before its agent starts cannot be broken off any more."""
    asked, stopped = anyio.Event(), anyio.Event()
    report_for = Shelter.report_for

    async def late(shelter: Shelter, job: Any) -> Any:
        found = await report_for(shelter, job)
        assert len(await anyio.to_thread.run_sync(bench.worktrees)) == 1
        asked.set()
        with anyio.CancelScope(shield=True):
            await stopped.wait()
        return found

    async def tell_stop(engine: Engine) -> None:
        async for told in engine.events():
            if isinstance(told.event, WorkerMoved) and told.event.after is Phase.STOPPING:
                stopped.set()

    monkeypatch.setattr(Shelter, "report_for", late)
    async with bench.engine() as engine, anyio.create_task_group() as group:
        group.start_soon(tell_stop, engine)
        one = Agent("scripted", engine=engine, options=WRITES)
        async with one, anyio.create_task_group() as prompting:
            prompting.start_soon(one.prompt, "x")
            await asked.wait()
            prompting.cancel_scope.cancel()
        group.cancel_scope.cancel()
    await nothing_is_left(bench)
    assert bench.git.git("branch", "--list", "plait/*") == ""
    async with bench.engine() as engine:
        (item,) = await engine.port.ask(ListTrash())  # renamed, as everything that goes
        await engine.port.ask(RestoreTrash(item.id))
    assert len(bench.worktrees()) == 1


async def test_a_workspace_whose_setup_failed_goes_too(bench: Workbench) -> None:
    bench.sets_up("false")
    async with Agent("scripted", repo=bench.project, options=WRITES) as one:
        with pytest.raises(AgentRunFailed, match="setup"):
            await one.prompt("x")
    await nothing_is_left(bench)


async def test_a_workspace_that_was_being_set_up_goes_too(bench: Workbench) -> None:
    bench.sets_up("sleep 60")
    async with Agent("scripted", repo=bench.project, options=WRITES) as one:
        with anyio.move_on_after(30) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(one.prompt, "x")
                while not bench.worktrees():  # noqa: ASYNC110 - git tells nobody
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
    await nothing_is_left(bench)

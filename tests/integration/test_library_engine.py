"""The engine as a coordinator: plans of every kind, landings with answers, one cap, both loops."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine import Conflicted, Engine, Landed, Refused, sync
from engine.errors import LockHeld
from engine.messages.commands import Edits
from engine.messages.questions import ReadDiff
from engine.messages.results import Outcome
from engine.plan.from_prompts import plan_of, step
from engine.plan.model import AgentChoice
from engine.policies import MergeMode
from engine.sync import Agent as SyncAgent
from engine.sync import Engine as SyncEngine
from engine.sync import IsolatedAgentSession as SyncSession
from tests.support.library import WRITES, Workbench, script

ANYIO = pytest.mark.anyio
MINE: dict[str, Any] = {
    "agents": {"mine": {"adapter": "scripted", **WRITES}},
    "pipelines": [{"name": "p", "steps": [{"name": "one", "agent": "mine", "prompt": "go"}]}],
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    return Workbench(tmp_path, monkeypatch)


@ANYIO
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_engine_runs_plans_of_every_kind_on_both_loops(bench: Workbench) -> None:
    text = "pipelines:\n- name: p\n  steps:\n  - {name: two, run: echo hi}\n"
    (bench.project / "my.yaml").write_text(text)
    plan = plan_of(step("three", run="echo built", merge=MergeMode.NONE))
    kinds: list[tuple[Any, str]] = [(text, "two"), (plan, "three"), (MINE, "one")]
    kinds.append((bench.project / "my.yaml", "two"))
    async with bench.engine() as engine:
        for source, name in kinds:
            run = await engine.start(source)
            report = await run.wait()
            assert report.outcome is Outcome.SUCCESS
            assert run.step(name).results == report.steps[name].worker_results
    assert await bench.survivors() == set()


@ANYIO
@pytest.mark.parametrize("kept", [4096, 0], ids=["events in memory", "events in journals"])
async def test_a_landing_has_an_answer(bench: Workbench, kept: int) -> None:
    async with bench.engine() as engine:
        engine._coordinator.runs.tools.bus._kept = kept
        runs = [await engine.start(MINE), await engine.start(clashing())]
        for run in runs:
            await run.wait()
        first, second = (f"{run.id}/one/worker_1" for run in runs)
        landed = await engine.land(first)
        assert isinstance(landed, Landed)
        assert bench.git.git("rev-parse", "main") == landed.new
        assert isinstance(await engine.land(first), Refused)
        clash = await engine.land(second)
        assert clash == Conflicted(worker="one/worker_1", paths=("b.txt",))
        nobody = await engine.land("nobody/worker_9")
        assert isinstance(nobody, Refused)


def clashing() -> dict[str, Any]:
    options = script({"write": {"path": "b.txt", "text": "otherwise\n"}})
    return {**MINE, "agents": {"mine": {"adapter": "scripted", **options}}}


@ANYIO
async def test_several_runs_stay_below_one_cap(bench: Workbench) -> None:
    (bench.project / "count").mkdir()
    agent = AgentChoice(
        name="s",
        adapter="scripted",
        options={"script": '{"steps": [{"tool": {"name": "work", "for": 0.1}}]}'},
    )
    plan = plan_of(step("one", agents=[agent] * 3, prompt="x", merge=MergeMode.EACH))
    most = 0
    async with bench.engine(max_workers=2) as engine:
        runs = [await engine.start(plan) for _ in range(3)]
        async with anyio.create_task_group() as group:

            async def look() -> None:
                nonlocal most
                async for _ in engine.events():
                    view = await engine.snapshot()
                    busy = [w for r in view.runs for w in r.workers if w.phase.holds_slot]
                    most = max(most, len(busy))

            group.start_soon(look)
            reports = [await run.wait() for run in runs]
            group.cancel_scope.cancel()
    assert {report.outcome for report in reports} == {Outcome.UNCHANGED}
    assert most == 2


@ANYIO
async def test_a_put_away_workspace_keeps_its_change(bench: Workbench) -> None:
    async with bench.engine() as engine:
        run = await engine.start(MINE)
        await run.wait()
        worker = f"{run.id}/one/worker_1"
        assert len(bench.worktrees()) == 1
        assert await engine.release(worker)
        assert bench.worktrees() == []
        await engine.unload(run.id)
        assert (await engine.snapshot()).runs == ()
        assert isinstance(await engine.land(worker), Landed)
        seqs = [told.seq async for told in engine.events(run=run.id) if engine_end(engine, told)]
    assert seqs == []


def engine_end(engine: Engine, told: Any) -> bool:
    """Leave the stream at the landing: every event before it must have come once."""
    seen = vars(engine).setdefault("seen", [])
    if told.seq is not None:
        assert told.seq not in seen
        seen.append(told.seq)
    if isinstance(told.event, Landed):
        engine._coordinator.runs.tools.bus.close()
    return False


def test_programs_without_a_loop_have_it_all(bench: Workbench) -> None:
    before = loops()
    words: dict[str, Any] = {"options": WRITES}
    with SyncEngine.open(bench.project, environment=bench.environment) as engine:
        run = engine.start(MINE)
        assert run.wait().outcome is Outcome.SUCCESS
        assert run.step("one").results[0].output == "did go"
        first = next(engine.events(run=run.id))
        assert first.run == run.id
        assert isinstance(engine.land("one/worker_1"), Landed)
        with SyncAgent("scripted", engine=engine, **words) as agent:
            assert agent.prompt("hi").text == "did hi"
    with SyncAgent("scripted", repo=bench.project, **words) as agent, agent.fork() as fork:
        assert agent.prompt("again").text == "did again"
        assert [r.index for r in fork.run_parallel_prompts(["a", "b"])] == [0, 1]
        assert agent.continue_turn("more").text == "did more"
        assert len(agent.history) == 2
    with SyncSession("agent-1", repo=bench.project) as session:
        assert session.run(["pwd"]).text == str(session.workspace)
    assert bench.worktrees() == []
    assert loops() - before <= {sync._loop()._thread}  # which agents without a loop share


def test_programs_without_a_loop_ask_what_others_ask(bench: Workbench) -> None:
    with SyncEngine.open(bench.project, environment=bench.environment) as engine:
        run = engine.start(MINE)
        run.wait()
        diff = engine.diff(run.id, "one/worker_1", against="target", context=0)
        assert [file.path for file in diff.files] == ["b.txt"]
        assert engine.ask(ReadDiff(run.id, "one/worker_1", None, "target", 0)) == diff
        assert len(engine.log(run.id, "one/worker_1", most=1).lines) == 1
        assert engine.database(run.id, "one/worker_1").is_file()
        assert (engine.project, engine.guests) == (bench.project, ())
        assert isinstance(engine.land("one/worker_1", edits=Edits.REFUSE), Landed)
        assert engine.release(f"{run.id}/one/worker_1")
        engine.unload(run.id)
        assert engine.resume_unfinished() == []
        assert engine.snapshot().runs == ()
        assert [summary.id for summary in engine.history()] == [run.id]
        assert engine.resume(run.id).report().outcome is Outcome.SUCCESS
        engine.wait_idle()
        engine.wait_unneeded(patience_s=0.01)


def test_an_engine_without_a_loop_that_cannot_be_opened_says_so_at_once(bench: Workbench) -> None:
    with SyncEngine.open(bench.project, environment=bench.environment):
        second = SyncEngine.open(bench.project, environment=bench.environment)
        with pytest.raises(LockHeld):
            second.__enter__()


def loops() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "plait"}


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell that starts something in the background has it ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_cancels_what_is_waited_for(bench: Workbench) -> None:
    options = script({"write": {"path": "b.txt", "text": "x"}}, {"hang": True})

    def interrupt(told: Any) -> None:
        if type(told.event).__name__ == "ToolUsed":
            os.kill(os.getpid(), signal.SIGINT)

    with SyncAgent("scripted", repo=bench.project, options=options) as agent:
        end = agent.subscribe(interrupt)
        with pytest.raises(KeyboardInterrupt):
            agent.prompt("x")
        end()
        assert bench.worktrees() == []

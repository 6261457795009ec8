"""A human commands agents that really run: stop, pause, answer, steer, retry, limits."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.api import Engine, Run, plan_from
from engine.limits import Dimension, Limits
from engine.messages import commands as c
from engine.messages.events import LimitHitSeen
from engine.messages.logs import LogKind
from engine.messages.questions import ReadLog, ReadRun
from engine.messages.results import Badge, Outcome, WorkerResult
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode
from engine.run import runs
from engine.site import local
from engine.testing.stubborn import stubborn_agent
from tests.support.engine_runs import Place, manifest, phases, scripted, wait_view, wait_worker

pytestmark = pytest.mark.anyio

A = "a/worker_1"
HANGS = scripted({"say": "here"}, {"hang": True})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def accepted(engine: Engine, command: c.Command) -> str:
    reply = await engine.command(command)
    assert isinstance(reply, c.Accepted), reply
    return reply.note


async def says(engine: Engine, run: Run, text: str, worker: str = A) -> None:
    """Wait until a worker's log holds a line."""
    await wait_worker(engine, run, worker, lambda w: text in w.last_lines)


def result(report: Any, step: str = "a", index: int = 0) -> WorkerResult:
    found: WorkerResult = report.steps[step].worker_results[index]
    return found


@pytest.mark.parametrize("is_kill", [False, True])
async def test_a_stopped_worker_is_cancelled_and_its_work_is_kept(place: Place, *, is_kill: bool):
    agent = scripted({"write": {"path": "out", "text": "half"}}, {"say": "here"}, {"hang": True})
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent, "artifacts": ["out"]}))
        await says(engine, run, "here")
        await accepted(engine, c.StopWorker(worker=A, is_kill=is_kill))
        report = await run.wait()
        view = (await engine.view(run.id)).worker(A)
    assert phases(report) == {A: "CANCELLED USER"}
    assert view.change is not None
    assert view.change.artifacts == ("out",)
    assert not await place.survivors()


async def test_a_kill_ends_at_once_what_ignores_a_stop(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(local, "AttemptSpec", partial(local.AttemptSpec, grace_s=60.0))
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": stubborn_agent(children=2)}))
        await says(engine, run, "deaf")
        await accepted(engine, c.StopWorker(worker=A))
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.STOPPING)
        with anyio.fail_after(30):  # half the grace
            await accepted(engine, c.StopWorker(worker=A, is_kill=True))
            report = await run.wait()
    assert phases(report) == {A: "CANCELLED USER"}
    assert not await place.survivors()


async def test_a_stopped_run_ends_everything_and_goes_no_further(place: Place):
    plan = manifest(
        {"name": "a", "agent": HANGS, "concurrency": 2},
        {"name": "b", "dependencies": ["a"], "run": "true"},
    )
    async with place.engine() as engine:
        run = await engine.start(plan)
        await says(engine, run, "here")
        await accepted(engine, c.StopRun())
        report = await run.wait()
        assert isinstance(await engine.command(c.StopRun()), c.Refused)
    assert set(phases(report).values()) == {"CANCELLED USER"}
    assert report.outcome is Outcome.CANCELLED


async def test_a_worker_that_waits_for_its_retry_can_be_stopped_and_keeps_nobody_waiting(
    place: Place,
):
    step = {"name": "a", "agent": scripted({"fail": "no"}), "retry": {"attempts": 2}}
    plan = manifest({**step, "retry": {"attempts": 2, "delay_seconds": 200}})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.BACKING_OFF)
        await accepted(engine, c.StopWorker(worker=A))
        report = await run.wait()
        with anyio.fail_after(30):
            await engine.wait_idle()
    assert phases(report) == {A: "CANCELLED USER"}


async def test_an_impatient_human_retries_before_the_wait_is_over(place: Place):
    agent = scripted(attempts={"1": [{"fail": "no"}], "2": [{"result": "yes"}]})
    retry = {"attempts": 2, "delay_seconds": 200}
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent, "retry": retry}))
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.BACKING_OFF)
        await accepted(engine, c.RetryWorker(worker=A))
        report = await run.wait()
        with anyio.fail_after(30):
            await engine.wait_idle()
    assert result(report).output == "yes"


async def test_a_paused_run_begins_nothing_until_it_goes_on(place: Place):
    plan = place.manifest(
        {"name": "a", "run": place.waits_at("go")},
        {"name": "b", "dependencies": ["a"], "run": "true"},
    )
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.RUNNING)
        await accepted(engine, c.Pause())
        place.open_gate("go")
        view = await wait_view(engine, run, lambda v: v.worker(A).phase is Phase.FINISHED)
        await engine.wait_idle()
        assert view.is_paused
        assert (await engine.view(run.id)).worker("b/worker_1").phase is Phase.QUEUED
        await accepted(engine, c.Resume())
        report = await run.wait()
    assert report.outcome is Outcome.SUCCESS


async def test_a_paused_worker_stands_still_and_goes_on_where_it_was(place: Place):
    agent = scripted({"repeat": {"times": 20_000, "steps": [{"say": "{i}"}, {"sleep": 0.005}]}})

    async def counts_to(number: int) -> None:  # a tile has the last lines alone
        await wait_worker(
            engine, run, A, lambda w: any(n.isdigit() and int(n) >= number for n in w.last_lines)
        )

    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent}))
        await counts_to(3)
        await accepted(engine, c.Pause(worker=A))
        await wait_worker(engine, run, A, lambda w: Badge.PAUSED in w.badges)
        await engine.wait_idle()
        before, after = -1, await engine.log(run.id, A)
        while after.next_offset != before:  # what it had said already comes
            before = after.next_offset
            await anyio.sleep(0.1)  # it would say twenty things in that time
            after = await engine.log(run.id, A)
        assert not after.is_end
        await accepted(engine, c.Resume(worker=A))
        await counts_to(before + 2)
        await accepted(engine, c.StopWorker(worker=A, is_kill=True))
        await run.wait()


async def test_a_worker_that_is_made_ready_is_stopped_twice_and_ends_once(place: Place):
    workspace = {"setup": place.waits_at("never")}
    step = {"name": "a", "agent": scripted({"result": "done"})}
    async with place.engine() as engine:
        run = await engine.start(place.manifest(step, workspace=workspace))
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.PREPARING)
        await accepted(engine, c.StopWorker(worker=A))
        await accepted(engine, c.StopWorker(worker=A, is_kill=True))
        assert phases(await run.wait()) == {A: "CANCELLED USER"}
        await engine.wait_idle()
    assert await place.survivors() == set()


async def test_an_answer_reaches_the_agent_that_asked(place: Place):
    question = {"ask": {"text": "Which way?", "choices": ["left", "right"]}}
    agent = scripted(question, {"result": "went {answer}"})
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent}))
        report = await run.wait()
        assert report.waits_for == ("a/worker_1 asks: Which way?",)
        await engine.wait_idle()
        refused = await engine.command(c.Answer(worker=A, answer="left", question="other"))
        assert isinstance(refused, c.Refused)
        await accepted(engine, c.Answer(worker=A, answer="left"))
        report = await run.wait()
    assert result(report).output == "went left"


async def test_words_reach_an_agent_while_it_works(place: Place):
    agent = scripted({"say": "here"}, {"sleep": 30}, {"result": "heard {steered}"})
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent}))
        await says(engine, run, "here")
        await accepted(engine, c.Steer(worker=A, text="mind the gap"))
        await says(engine, run, "Understood: mind the gap")
        await accepted(engine, c.Interrupt(worker=A))
        report = await run.wait()
        seen = [(at.kind, at.text) for at in (await engine.port.ask(ReadLog(run.id, A))).lines]
    assert result(report).output == "heard mind the gap"
    async with place.engine() as engine:  # read anew, the log holds what was said to it as well
        again = [(at.kind, at.text) for at in (await engine.port.ask(ReadLog(run.id, A))).lines]
    assert (LogKind.YOU, "mind the gap") in seen
    assert (LogKind.NOTE, "the agent read your message: mind the gap") in seen
    assert again == seen


async def test_a_retry_hears_the_words_of_the_reviewer(place: Place):
    agent = scripted(attempts={"1": [{"fail": "too short"}], "2": [{"result": "{feedback}"}]})
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent}))
        assert (await run.wait()).outcome is Outcome.FAILED
        command = c.RetryWorker(worker=A, feedback="make it longer", mode=RetryMode.CONTINUE)
        await accepted(engine, command)
        report = await run.wait()
    assert "make it longer" in result(report).output
    assert "too short" in result(report).output


async def test_a_memory_limit_ends_the_whole_tree_and_says_what_it_saw(place: Place):
    agent = scripted({"memory": {"mb": 300, "for": 30}})
    plan = manifest({"name": "a", "agent": agent, "limits": {"memory_mb": 64}})
    async with place.engine() as engine:
        run = await engine.start(plan)
        report = await run.wait()
        hits = [
            told.event.hit
            for told in engine._coordinator.runs.tools.bus.journaled
            if isinstance(told.event, LimitHitSeen)
        ]
    assert phases(report) == {A: "FAILED MEMORY"}
    assert [(hit.dimension, hit.allowed) for hit in hits] == [(Dimension.MEMORY, 64)]
    assert result(report).limit_hit == hits[0]
    assert not await place.survivors()


async def test_a_time_limit_ends_an_attempt(place: Place):
    plan = manifest({"name": "a", "agent": HANGS, "limits": {"time_seconds": 0.3}})
    async with place.engine() as engine:
        report = await (await engine.start(plan)).wait()
    assert phases(report) == {A: "FAILED TIMEOUT"}


async def test_the_time_limit_stands_still_while_a_human_is_awaited(place: Place):
    agent = scripted({"ask": "Well?"}, {"result": "{answer}"})
    plan = manifest({"name": "a", "agent": agent, "limits": {"time_seconds": 5.0}})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await run.wait()
        await anyio.sleep(5.5)
        await accepted(engine, c.Answer(worker=A, answer="fine"))
        report = await run.wait()
    assert result(report).output == "fine"


async def test_a_budget_ends_an_agent_that_spends_too_much_and_is_not_retried(place: Place):
    agent = scripted({"usage": {"usd": 0.4}}, {"usage": {"usd": 0.4}}, {"hang": True})
    step = {"name": "a", "agent": agent, "limits": {"budget_usd": 0.5}, "retry": {"attempts": 3}}
    async with place.engine() as engine:
        report = await (await engine.start(manifest(step))).wait()
    assert phases(report) == {A: "FAILED BUDGET"}
    hit = result(report).limit_hit
    assert hit is not None
    assert (hit.allowed, hit.seen, hit.unit) == (0.5, 0.8, "USD")
    assert result(report).attempts == 1


async def test_limits_can_be_changed_while_an_agent_runs(place: Place):
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": HANGS}))
        await says(engine, run, "here")
        await accepted(engine, c.SetLimits(worker=A, limits=Limits(time_seconds=0.01)))
        report = await run.wait()
    assert phases(report) == {A: "FAILED TIMEOUT"}


@pytest.mark.needs("cgroup memory")
async def test_a_limit_that_the_kernel_refuses_ends_nobody(place: Place):
    hog = "x=$(head -c 80000000 /dev/zero | tr '\\0' x); echo has it all; sleep 600"
    steps = {"name": "a", "run": hog, "limits": {"memory_mb": 200}}, {"name": "b", "agent": HANGS}
    async with place.engine() as engine:
        run = await engine.start(manifest(*steps))
        await says(engine, run, "has it all")
        await says(engine, run, "here", worker="b/worker_1")
        await accepted(engine, c.SetLimits(worker=A, limits=Limits(memory_mb=1)))
        await wait_worker(engine, run, A, lambda w: "memory" in w.last_lines[-1])
        both = (await engine.view(run.id)).workers
    assert [w.phase for w in both] == [Phase.RUNNING, Phase.RUNNING]


async def test_an_engine_is_idle_when_all_its_runs_are_at_once(place: Place):
    def waiting(gate: str) -> dict[str, Any]:
        return place.manifest({"name": "a", "run": place.waits_at(gate)})

    idle = anyio.Event()
    async with place.engine() as engine:

        async def tell_idle() -> None:
            await engine.wait_idle()
            idle.set()

        place.open_gate("one")
        one = await engine.start(waiting("one"))
        await one.wait()
        two = await engine.start(waiting("two"))
        async with anyio.create_task_group() as group:
            group.start_soon(tell_idle)
            await wait_worker(engine, two, A, lambda w: w.phase is Phase.RUNNING)
            (place.outside / "one").unlink()
            await accepted(engine, c.RetryWorker(worker=f"{one.id}/{A}"))
            await wait_worker(engine, one, A, lambda w: w.phase is Phase.RUNNING)
            place.open_gate("two")
            await two.wait()
            while not two._live.is_at_rest:  # noqa: ASYNC110 - its last effects set no event
                await anyio.sleep(0.01)
            await anyio.wait_all_tasks_blocked()
            assert not idle.is_set()
            place.open_gate("one")
        assert idle.is_set()


async def test_a_log_asked_for_before_there_is_one_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    begun, may_end = anyio.Event(), anyio.Event()
    read_log = runs.read_log

    async def slowly(*told: Any) -> Any:
        found = await read_log(*told)
        begun.set()
        await may_end.wait()
        return found

    monkeypatch.setattr(runs, "read_log", slowly)
    plan = place.manifest(
        {"name": "a", "agent": HANGS}, workspace={"setup": place.waits_at("gate")}
    )
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.PREPARING and w.attempt)
        async with anyio.create_task_group() as group:
            group.start_soon(engine.log, run.id, A)
            await begun.wait()
            place.open_gate("gate")
            await says(engine, run, "here")
            may_end.set()
        chunk = await engine.log(run.id, A)
    assert "here" in [line.text for line in chunk.lines]


async def test_a_worker_that_does_not_move_is_marked_and_then_asked_about(place: Place):
    plan = manifest({"name": "a", "agent": HANGS}, stall_seconds=0.4)
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: Badge.STALLED in w.badges)
        view = await wait_worker(engine, run, A, lambda w: w.questions)
        assert view.questions[0].choices == ("wait", "stop")
        await accepted(engine, c.Answer(worker=A, answer="stop"))
        await wait_worker(engine, run, A, lambda w: w.phase.is_settled)
    assert phases(run.report()) == {A: "FAILED STALLED"}


async def test_a_step_gives_up_when_it_is_restarted_too_often(place: Place):
    retry = {
        "attempts": 50,
        "delay_seconds": 0.01,
        "intensity": {"restarts": 3, "per_minutes": 10},
    }
    step = {"name": "a", "agent": scripted({"fail": "no"}), "retry": {**retry, "backoff": "fixed"}}
    async with place.engine() as engine:
        report = await (await engine.start(manifest(step))).wait()
    assert result(report).attempts == 4


async def test_a_run_that_takes_too_long_is_stopped(place: Place):
    plan = manifest({"name": "a", "agent": HANGS}, run_timeout_minutes=0.005)
    async with place.engine() as engine:
        report = await (await engine.start(plan)).wait()
    assert phases(report) == {A: f"FAILED {StopCause.TIMEOUT}"}


async def test_a_check_that_fails_names_itself_and_tells_the_next_attempt(place: Place):
    agent = scripted(
        attempts={
            "1": [{"say": "done"}],
            "2": [{"write": {"path": "ok", "text": "x"}}, {"result": "{feedback}"}],
        }
    )
    step = {
        "name": "a",
        "agent": agent,
        "check": "echo looking for ok; test -e ok",
        "retry": {"attempts": 2, "delay_seconds": 0.01, "mode": "continue"},
    }
    async with place.engine() as engine:
        report = await (await engine.start(manifest(step))).wait()
    assert phases(report) == {A: "FINISHED"}
    assert "looking for ok" in result(report).output
    check = result(report).check
    assert check is not None
    assert check.passed


async def test_steps_and_workers_join_a_run_that_goes_on(place: Place):
    plan = place.manifest({"name": "a", "run": place.waits_at("go")})
    other = manifest({"name": "b", "run": "echo joined", "dependencies": []})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, A, lambda w: w.phase is Phase.RUNNING)
        step = plan_from(other, folder=place.project).steps[0]
        await accepted(engine, c.AddStep(step=step))
        await accepted(engine, c.AddWorker(step="a"))
        place.open_gate("go")
        report = await run.wait()
    assert phases(report) == {
        A: "FINISHED",
        "a/worker_2": "FINISHED",
        "b/worker_1": "FINISHED",
    }


async def test_two_runs_of_one_engine_share_its_slots(place: Place):
    step = {"name": "a", "concurrency": 3, "run": "true"}
    plan = place.manifest({**step, "run": place.waits_at("go")})
    async with place.engine(max_workers=3) as engine:
        first = await engine.start(plan)
        await wait_view(engine, first, lambda v: _running(v) == 3)
        second = await engine.start(plan)
        await anyio.wait_all_tasks_blocked()
        assert _running(await engine.view(second.id)) == 0
        place.open_gate("go")
        assert (await first.wait()).outcome is Outcome.SUCCESS
        assert (await second.wait()).outcome is Outcome.SUCCESS


def _running(view: Any) -> int:
    return sum(w.phase is Phase.RUNNING for w in view.workers)


async def test_the_cost_of_a_worker_is_that_of_all_its_attempts(place: Place):
    agent = scripted({"usage": {"usd": 1.0, "input_tokens": 10}}, {"fail": "no"})
    retry = {"attempts": 2, "delay_seconds": 0.01}
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "agent": agent, "retry": retry}))
        await run.wait()
        await accepted(engine, c.RetryWorker(worker=A))
        await wait_worker(engine, run, A, lambda w: w.attempt == 4 and w.phase is Phase.FAILED)
        told, view = result(run.report()), (await engine.view(run.id)).worker(A)
    assert (view.attempt, view.attempts_allowed) == (4, 4)
    for each in (told, view):
        assert (each.usage.usd, each.usage.input_tokens) == (4.0, 40)
        assert [usage.usd for usage in each.attempt_usages] == [1.0] * 4
    async with place.engine() as engine:  # what an engine did not see itself it reads
        assert (await engine.view(run.id)).worker(A).usage.usd == 4.0


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ({"feedback": "longer"}, "continues with its earlier work"),
        ({}, "fresh"),
        ({"feedback": "longer", "mode": RetryMode.FRESH}, "fresh"),
    ],
)
async def test_a_retry_with_feedback_goes_on_unless_it_is_told_otherwise(
    more: dict[str, Any], start: str, place: Place
):
    once = [{"write": {"path": "first.txt", "text": "1"}}, {"fail": "too short"}]
    twice = [{"write": {"path": "second.txt", "text": "2"}}, {"result": "done"}]
    async with place.engine() as engine:
        run = await engine.start(
            manifest({"name": "a", "agent": scripted(attempts={"1": once, "2": twice})})
        )
        await run.wait()
        answer = await engine.command(c.RetryWorker(worker=A, **more))
        assert isinstance(answer, c.Accepted)
        assert start in answer.note
        await run.wait()
        worker = (await engine.ask(ReadRun(run.id))).worker(A)
        files = {file.name async for file in anyio.Path(worker.workspace or "").glob("*.txt")}
    assert "second.txt" in files
    assert ("first.txt" in files) is (start != "fresh")

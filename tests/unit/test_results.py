"""Results and views: what they count, and what a console reads from them."""

from engine.messages.asked import Question
from engine.messages.results import Outcome, RunView, StepResult, StepView, WorkerResult, WorkerView
from engine.phases import HOLDING, SETTLED, Phase, StopCause


def a_result(number: int, outcome: Outcome) -> WorkerResult:
    return WorkerResult(
        worker=f"a/worker_{number}",
        phase=Phase.FINISHED,
        cause=None,
        outcome=outcome,
        attempts=1,
        workspace=f"/w/{number}" if number % 2 else None,
    )


def a_view(phase: Phase, *, questions: tuple[Question, ...] = ()) -> WorkerView:
    return WorkerView(worker="a/worker_1", step="a", phase=phase, questions=questions)


def test_a_step_counts_every_worker_once():
    outcomes = [Outcome.SUCCESS, Outcome.FAILED, Outcome.CANCELLED, Outcome.SUCCESS]
    step = StepResult(
        name="a",
        outcome=Outcome.SUCCESS,
        worker_results=tuple(a_result(n, outcome) for n, outcome in enumerate(outcomes, 1)),
    )
    assert (step.total_workers, step.success_count) == (4, 2)
    assert (step.fail_count, step.cancelled_count) == (1, 1)
    assert step.worker_workspaces == ("/w/1", None, "/w/3", None)


def test_a_worker_lives_while_it_holds_a_slot_or_waits_for_its_retry():
    living = {phase for phase in Phase if a_view(phase).is_live}
    assert living == HOLDING | {Phase.BACKING_OFF}


def test_a_worker_needs_a_human_when_it_asks_or_has_come_to_something():
    needing = {phase for phase in Phase if a_view(phase).needs_you}
    assert needing == {Phase.REVIEWING, Phase.CONFLICTED, Phase.FAILED}
    assert a_view(Phase.RUNNING, questions=(Question(id="q", text="?"),)).needs_you


def test_a_run_finds_its_workers_in_plan_order():
    one, other = (
        a_view(Phase.RUNNING),
        WorkerView(worker="b/worker_1", step="b", phase=Phase.WAITING),
    )
    steps = (
        StepView(name="b", dependencies=(), outcome=Outcome.PENDING, workers=(other,)),
        StepView(name="a", dependencies=(), outcome=Outcome.PENDING, workers=(one,)),
    )
    view = RunView(run="r", name="n", outcome=Outcome.PENDING, started_at=0.0, steps=steps)
    assert view.workers == (other, one)
    assert view.worker("a/worker_1") is one


def test_settled_phases_hold_no_slot():
    assert not HOLDING & SETTLED
    assert {phase for phase in Phase if phase.is_settled} == SETTLED


def test_what_somebody_decided_is_cancelled_and_what_went_wrong_has_failed():
    cancelled = {cause for cause in StopCause if cause.settles_as is Phase.CANCELLED}
    assert cancelled == {
        StopCause.USER,
        StopCause.FAIL_FAST,
        StopCause.RACE_LOST,
        StopCause.NOT_CHOSEN,
        StopCause.BASE_GONE,
        StopCause.SHUTDOWN,
    }
    assert {cause.settles_as for cause in set(StopCause) - cancelled} == {Phase.FAILED}

"""One worker's attempt, fact by fact: what each leads to and what is to be done because of it."""

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.state import Next
from engine.errors import IllegalTransition
from engine.ids import WorkerId
from engine.limits import Dimension, LimitHit, Usage
from engine.messages.events import (
    CheckFinished,
    LimitHitSeen,
    ReviewWanted,
    RunFinished,
    RunStarted,
    StepSettled,
    WorkerMoved,
    WorkerSettled,
)
from engine.messages.results import Change, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice, RetryMode, RetryRule
from engine.policies import MergeMode
from tests.support.core_runs import CHANGE, FAILED, PASSED, Told, a_run, who
from tests.support.plans import a_step

A = who("a")
PREPARE = e.PrepareWorkspace(
    worker=A, attempt=1, bases=(), mode=RetryMode.FRESH, previous=None, resolved_base=None
)


def moved(before: Phase, after: Phase, cause: StopCause | None = None) -> e.Publish:
    return e.Publish(
        event=WorkerMoved(worker="a/worker_1", attempt=1, before=before, after=after, cause=cause)
    )


def settled(phase: Phase, outcome: Outcome, **more: object) -> WorkerSettled:
    fields = {"cause": None, "error": None} | more
    return WorkerSettled(worker="a/worker_1", attempt=1, phase=phase, outcome=outcome, **fields)  # type: ignore[arg-type]


def test_a_run_that_begins_prepares_whoever_can_begin():
    told = a_run(a_step("a"))
    queued = WorkerMoved(
        worker="a/worker_1", attempt=0, before=Phase.WAITING, after=Phase.QUEUED, cause=None
    )
    assert told.effects == [
        e.Publish(
            event=RunStarted(name="test", steps=("a",), workers=("a/worker_1",), cap=10),
        ),
        e.Publish(event=queued),
        moved(Phase.QUEUED, Phase.PREPARING),
        PREPARE,
    ]


def test_a_ready_workspace_starts_the_agent():
    told = a_run(a_step("a"))
    told.ready("a")
    assert told.effects == [
        moved(Phase.PREPARING, Phase.RUNNING),
        e.StartAgent(worker=A, attempt=1),
    ]
    assert told.worker("a").begun.workspace == "/w"
    assert told.worker("a").history.ran == 1


def test_an_agent_that_ended_is_collected_however_it_ended():
    for ok in (True, False):
        told = a_run(a_step("a"))
        told.ready("a")
        told.ended("a", ok=ok)
        assert told.effects == [
            moved(Phase.RUNNING, Phase.COLLECTING),
            e.Collect(worker=A, attempt=1),
        ]


def test_a_change_without_a_check_waits_for_review():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a")
    told.collected("a")
    assert told.acts == []
    assert [type(event).__name__ for event in told.events] == [
        "WorkerMoved",
        "ReviewWanted",
        "StepSettled",
        "RunWaiting",
    ]
    assert told.events[1] == ReviewWanted(
        worker="a/worker_1", attempt=1, files=2, insertions=3, deletions=1
    )


def test_a_change_with_a_check_is_checked_first():
    told = a_run(a_step("a", check="test"))
    told.ready("a")
    told.ended("a")
    told.collected("a")
    assert told.acts == [e.RunCheck(worker=A, attempt=1)]
    told.passed("a")
    assert told.phase("a") is Phase.REVIEWING
    assert told.events[0] == CheckFinished(worker="a/worker_1", attempt=1, check=PASSED)


def test_a_failed_check_is_a_failure_that_says_what_the_check_said():
    told = a_run(a_step("a", check="test"))
    told.ready("a")
    told.ended("a")
    told.collected("a")
    told.checked_red("a")
    worker = told.worker("a")
    assert (worker.phase, worker.cause, worker.error) == (
        Phase.FAILED,
        StopCause.CHECK,
        "2 tests failed",
    )
    assert worker.review.check == FAILED
    assert told.acts == [e.ReleaseWorkspace(worker=A, attempt=1)]


def test_nothing_to_merge_is_finished_and_ends_the_run_told_once_and_last():
    told = a_run(a_step("a"))
    told.does("a", change=None)
    assert told.acts == [e.ReleaseWorkspace(worker=A, attempt=1)]
    assert told.events[:3] == [
        WorkerMoved(
            worker="a/worker_1",
            attempt=1,
            before=Phase.COLLECTING,
            after=Phase.FINISHED,
            cause=None,
        ),
        settled(Phase.FINISHED, Outcome.SUCCESS),
        StepSettled(step="a", outcome=Outcome.SUCCESS),
    ]
    assert isinstance(told.events[-1], RunFinished)
    told.feed(rf.CapSet(cap=4))
    assert told.events == []


def test_a_step_that_merges_nothing_finishes_with_its_change():
    told = a_run(a_step("a", merge=MergeMode.NONE))
    told.does("a")
    assert told.phase("a") is Phase.FINISHED


def test_artifacts_alone_are_nothing_to_review():
    told = a_run(a_step("a"))
    told.does("a", change=Change(files=1, artifacts=("x",)))
    assert told.phase("a") is Phase.FINISHED


def test_who_must_prove_its_work_and_changed_nothing_has_failed():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a", needs_proof=True)
    told.collected("a", None)
    assert (told.phase("a"), told.worker("a").cause) == (Phase.FAILED, StopCause.NO_CHANGE)


@pytest.mark.parametrize("fields", [{"check": "test"}, {"merge": MergeMode.NONE}])
def test_a_check_or_a_step_that_merges_nothing_needs_no_change(fields: dict[str, object]):
    told = a_run(a_step("a", **fields))
    told.ready("a")
    told.ended("a", needs_proof=True)
    told.collected("a", None)
    assert told.phase("a") in {Phase.CHECKING, Phase.FINISHED}


def test_work_that_could_not_be_collected_is_a_failure():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a")
    told.collected("a", None, error="no space left")
    assert (told.phase("a"), told.worker("a").error) == (Phase.FAILED, "no space left")


def test_a_limit_that_was_met_is_told_and_kept():
    hit = LimitHit(dimension=Dimension.MEMORY, allowed=512, seen=600, unit="MB")
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a", ok=False, cause=StopCause.MEMORY, limit=hit)
    assert told.events[0] == LimitHitSeen(worker="a/worker_1", attempt=1, hit=hit)
    told.collected("a")
    worker = told.worker("a")
    ended = worker.attempt.ended
    assert (worker.phase, worker.cause) == (Phase.FAILED, StopCause.MEMORY)
    assert ended is not None
    assert ended.limit == hit
    assert worker.error == "memory: 600 of 512 MB"


def test_a_workspace_that_cannot_be_made_is_a_failure_of_the_setup():
    told = a_run(a_step("a"))
    told.tell(f.PrepareFailed, "a", error="no space left")
    worker = told.worker("a")
    assert (worker.phase, worker.cause, worker.history.ran) == (Phase.FAILED, StopCause.SETUP, 0)


def test_time_worked_adds_up_over_attempts():
    told = a_run(a_step("a", retry=RetryRule(attempts=2, delay_s=1)))
    for _ in range(2):
        told.ready("a")
        told.at += 10
        told.ended("a", ok=False)
        told.collected("a")
        if told.phase("a") is Phase.BACKING_OFF:
            told.wait_over("a")
    assert told.worker("a").history.worked_s == 20


# ------------------------------------------------------------------ older facts, illegal facts


def test_a_fact_of_an_older_attempt_is_dropped_and_counted():
    told = a_run(a_step("a", retry=RetryRule(attempts=2)))
    told.fails("a")
    told.wait_over("a")
    before = told.state.workers
    told.feed(f.AttemptEnded(worker=A, attempt=1, ok=True))
    assert (told.state.dropped, told.effects) == (1, [])
    assert told.state.workers == before


def test_a_fact_in_a_phase_that_does_not_know_it_is_a_bug_that_tells_its_story():
    told = a_run(a_step("a"))
    with pytest.raises(IllegalTransition, match=r"r1/a/worker_1@1: Collected met PREPARING") as bug:
        told.collected("a")
    assert "tries 0, ran 0" in str(bug.value)


def test_a_fact_of_a_stranger_is_a_bug():
    told = a_run(a_step("a"))
    with pytest.raises(IllegalTransition, match="not in this run"):
        told.feed(f.StopRequested(worker=WorkerId("z", 1), attempt=0))


def test_time_never_goes_back():
    told = a_run(a_step("a"))
    told.feed(rf.CapSet(cap=2, at=5_000.0))
    told.feed(rf.CapSet(cap=3, at=10.0))
    assert told.state.now == 5_000.0


# ------------------------------------------------------------------ stops


def at_phase(phase: Phase) -> Told:
    """A run whose worker `a` stands in a phase."""
    told = a_run(
        a_step("z"),
        a_step("a", check="test", retry=RetryRule(attempts=2), dependencies=("z",)),
        max_concurrent_workers=2,
    )
    if phase is Phase.WAITING:
        return told
    if phase is Phase.SKIPPED:
        told.fails("z")
        return told
    if phase is Phase.QUEUED:
        told.feed(rf.PauseRequested())
    told.does("z")
    if phase is Phase.CONFLICTED:
        told.tell(f.BaseConflicted, "a", paths=("x",))
    if phase in {Phase.WAITING, Phase.QUEUED, Phase.PREPARING, Phase.CONFLICTED}:
        return told
    told.ready("a")
    steps = {
        Phase.STOPPING: lambda: told.stop("a"),
        Phase.COLLECTING: lambda: told.ended("a"),
        Phase.BACKING_OFF: lambda: (told.ended("a", ok=False), told.collected("a")),
    }
    if phase is Phase.RUNNING or phase in steps:
        steps.get(phase, lambda: None)()
        return told
    told.ended("a")
    told.collected("a", None if phase is Phase.FINISHED else CHANGE)
    if phase is Phase.CHECKING:
        return told
    told.passed("a")
    return _after_review(told, phase)


def _after_review(told: Told, phase: Phase) -> Told:
    match phase:
        case Phase.LANDING | Phase.LANDED:
            told.tell(f.Approved, "a")
            if phase is Phase.LANDED:
                told.landed("a")
        case Phase.DISCARDED:
            told.tell(f.Rejected, "a")
        case Phase.CANCELLED:
            told.stop("a")
        case Phase.FAILED:
            told.tell(f.RetryRequested, "a")
            for _ in range(2):
                told.fails("a")
                if told.phase("a") is Phase.BACKING_OFF:
                    told.wait_over("a")
        case _:
            pass
    return told


@pytest.mark.parametrize("phase", list(Phase))
def test_a_stop_is_legal_in_every_phase(phase: Phase):
    told = at_phase(phase)
    assert told.phase("a") is phase
    told.stop("a", is_kill=True)
    after = {
        Phase.PREPARING: Phase.STOPPING,
        Phase.RUNNING: Phase.STOPPING,
        Phase.STOPPING: Phase.STOPPING,
        Phase.CHECKING: Phase.STOPPING,
        Phase.COLLECTING: Phase.COLLECTING,
        Phase.LANDING: Phase.REVIEWING,
    }
    settled = phase if phase.is_settled else Phase.CANCELLED
    assert told.phase("a") is after.get(phase, settled)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_stop_of_the_whole_run_leaves_finished_work_to_its_human(phase: Phase):
    told = at_phase(phase)
    told.feed(rf.RunStopRequested(at=told.at))
    stays = {Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING, Phase.COLLECTING}
    if phase in stays or phase.is_settled:
        assert told.phase("a") is phase
    else:
        assert told.phase("a") in {Phase.CANCELLED, Phase.STOPPING}


def test_a_stop_while_collecting_is_remembered_and_the_work_is_kept():
    told = at_phase(Phase.COLLECTING)
    told.stop("a")
    assert told.acts == []
    told.collected("a")
    worker = told.worker("a")
    assert (worker.phase, worker.cause) == (Phase.CANCELLED, StopCause.USER)
    assert worker.change == CHANGE


def test_the_first_cause_of_a_stop_is_kept_and_a_kill_is_told_again():
    told = at_phase(Phase.RUNNING)
    told.stop("a", StopCause.RACE_LOST)
    told.stop("a", StopCause.USER)
    assert told.acts == []
    told.stop("a", StopCause.TIMEOUT, is_kill=True)
    assert told.acts == [
        e.StopActivity(worker=A, attempt=1, cause=StopCause.RACE_LOST, is_kill=True)
    ]
    told.stop("a", is_kill=True)
    assert told.acts == []
    told.ended("a", ok=False)
    told.collected("a")
    assert told.worker("a").cause is StopCause.RACE_LOST


@pytest.mark.parametrize(
    "cause", [StopCause.STALLED, StopCause.FAIL_FAST, StopCause.BASE_GONE, StopCause.SHUTDOWN]
)
def test_what_a_human_stops_is_not_begun_again_whatever_stopped_it_before(cause: StopCause):
    told = at_phase(Phase.RUNNING)
    told.stop("a", cause)
    told.stop("a")
    told.ended("a", ok=False)
    told.collected("a")
    assert (told.phase("a"), told.worker("a").cause) == (Phase.CANCELLED, StopCause.USER)


def test_what_nobody_but_a_limit_stopped_is_tried_again():
    told = at_phase(Phase.RUNNING)
    told.stop("a", StopCause.STALLED)
    told.ended("a", ok=False)
    told.collected("a")
    assert told.phase("a") is Phase.BACKING_OFF


@pytest.mark.parametrize(
    "fact",
    [
        f.WorkspaceReady(worker=A, attempt=1, workspace="/w", prompt="p"),
        f.BaseConflicted(worker=A, attempt=1, paths=("x",)),
        f.PrepareFailed(worker=A, attempt=1, error="x"),
        f.CheckPassed(worker=A, attempt=1, check=PASSED),
        f.CheckFailed(worker=A, attempt=1, check=FAILED),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_what_was_on_its_way_when_a_stop_came_has_no_effect(fact: f.Fact):
    told = at_phase(Phase.PREPARING)
    told.stop("a")
    told.feed(fact)
    assert (told.phase("a"), told.state.dropped) == (Phase.STOPPING, 1)
    told.is_stopped("a")
    assert told.phase("a") is Phase.CANCELLED


def test_a_prepared_landing_is_not_stopped_any_more():
    told = at_phase(Phase.LANDING)
    told.tell(f.LandPrepared, "a", target="main", old="1", new="2", detail="d")
    told.stop("a")
    assert (told.phase("a"), told.acts) == (Phase.LANDING, [])
    told.tell(f.Landed, "a", target="main", old="1", new="2")
    assert told.phase("a") is Phase.LANDED


# ------------------------------------------------------------------ a human's retry


@pytest.mark.parametrize(
    "phase",
    [
        Phase.REVIEWING,
        Phase.CONFLICTED,
        Phase.BACKING_OFF,
        Phase.FAILED,
        Phase.CANCELLED,
        Phase.DISCARDED,
        Phase.FINISHED,
    ],
)
def test_a_retry_begins_another_attempt_and_counts_tries_anew(phase: Phase):
    told = at_phase(phase)
    number = told.worker("a").attempt.number
    told.tell(f.RetryRequested, "a", mode=RetryMode.CONTINUE, feedback="shorter")
    worker = told.worker("a")
    assert (worker.phase, worker.attempt.number, worker.history.tries) == (
        Phase.PREPARING,
        number + 1,
        0,
    )
    assert (worker.next.mode, worker.next.previous) == (RetryMode.CONTINUE, number)
    assert worker.next.words == "shorter"
    assert (worker.outcome, worker.cause, worker.error, worker.badges) == (
        Outcome.PENDING,
        None,
        None,
        frozenset(),
    )


def test_who_was_skipped_waits_again_when_retried():
    told = at_phase(Phase.SKIPPED)
    told.tell(f.RetryRequested, "z")
    assert told.phase("a") is Phase.WAITING


def test_a_first_attempt_knows_of_nothing_before_it():
    assert a_run(a_step("a")).worker("a").next == Next()


def test_a_session_that_is_taken_up_twice_has_used_all_three_parts():
    told = a_run(a_step("a"))
    for used, session in ((3, "s"), (2, "s"), (4, "s"), (5, "other")):
        told.ready("a")
        told.ended("a", ok=False, session=session, usage=Usage(output_tokens=used))
        told.collected("a", None)
        before = told.worker("a").session.usage
        told.tell(f.RetryRequested, "a", mode=RetryMode.RESUME, is_alone=True)
        assert before is not None
        assert before.output_tokens == {3: 3, 2: 5, 4: 9, 5: 5}[used]


def test_a_worker_is_called_after_the_agent_that_a_human_gave_it():
    told = a_run(a_step("a"))
    planned = told.state.planned(A)
    assert planned.agent is not None
    object.__setattr__(planned, "label", planned.agent.name)
    told.does("a")
    other = AgentChoice(name="other", adapter="scripted")
    told.tell(f.RetryRequested, "a", agent=other, is_alone=True)
    assert told.state.label_of(A) == "other"
    object.__setattr__(planned, "label", "item")
    assert told.state.label_of(A) == "item"


@pytest.mark.parametrize("stops_landings", [True, False])
def test_a_run_that_is_stopped_does_not_land_unless_its_target_moves_already(
    *, stops_landings: bool
):
    told = a_run(a_step("a", 2, merge=MergeMode.EACH))
    told.does("a1", "a2")
    told.tell(f.Approved, "a1")
    told.tell(f.Approved, "a2")
    told.tell(f.LandPrepared, "a2", target="main", old="1", new="2", detail="d")
    told.feed(rf.RunStopRequested(at=told.at, stops_landings=stops_landings))
    assert told.phase("a1") is (Phase.REVIEWING if stops_landings else Phase.LANDING)
    assert told.phase("a2") is Phase.LANDING


@pytest.mark.parametrize(
    ("path", "made", "expected"),
    [("/w/attempt_3", 0, 3), ("/w", 0, 1), ("/w/attempt_3", 2, 2), ("far:9", 1, 1)],
)
def test_a_workspace_is_known_by_the_attempt_it_was_made_for(path: str, made: int, expected: int):
    told = at_phase(Phase.PREPARING)
    told.feed(f.WorkspaceReady(worker=A, attempt=1, workspace=path, prompt="p", made=made))
    assert told.worker("a").begun.made == expected


def test_a_workspace_is_told_with_the_site_where_it_lies():
    told = at_phase(Phase.PREPARING)
    told.feed(f.WorkspaceReady(worker=A, attempt=1, workspace="/w", prompt="p", made=1, site="far"))
    begun = told.worker("a").begun
    assert (begun.workspace, begun.site) == ("/w", "far")

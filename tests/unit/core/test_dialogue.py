"""Talk between a running agent and its human, the badges meanwhile, the events for observers."""

from dataclasses import replace

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.report import report
from engine.limits import Limits
from engine.messages.asked import Question
from engine.messages.events import (
    Answered,
    Asked,
    ChangeSeen,
    Delivery,
    IsolationViolated,
    RateLimitMet,
    RunFinished,
    RunWaiting,
    Steered,
)
from engine.messages.results import Badge, Change, Outcome
from engine.phases import Phase
from engine.plan.model import RetryMode, RetryRule
from tests.support.core_runs import Told, a_run, who
from tests.support.plans import AGENT, a_step

A = who("a")


@pytest.fixture
def told() -> Told:
    run = a_run(a_step("a"))
    run.ready("a")
    return run


def test_a_question_stops_the_clocks_and_is_told(told: Told):
    told.ask("a")
    assert told.acts == [e.HoldClocks(worker=A, attempt=1, is_held=True)]
    assert isinstance(told.events[0], Asked)
    assert Badge.ASKS in told.worker("a").badges
    told.ask("a", "q2")
    assert told.acts == []


def test_an_answer_goes_to_the_agent_and_the_last_one_starts_the_clocks(told: Told):
    told.ask("a", "q1")
    told.ask("a", "q2")
    told.tell(f.HumanAnswered, "a", question="q1", answer="allow")
    assert told.acts == [e.SendAnswer(worker=A, attempt=1, question="q1", answer="allow")]
    assert isinstance(told.events[0], Answered)
    told.tell(f.HumanAnswered, "a", question="q2", answer="deny", by="rule")
    assert told.acts == [
        e.HoldClocks(worker=A, attempt=1, is_held=False),
        e.SendAnswer(worker=A, attempt=1, question="q2", answer="deny"),
    ]
    assert Badge.ASKS not in told.worker("a").badges


def test_a_question_that_was_answered_is_not_asked_again(told: Told):
    told.ask("a")
    told.tell(f.HumanAnswered, "a", question="q1", answer="allow")
    told.ask("a")
    assert (told.worker("a").attempt.questions, told.effects) == ((), [])


def _may_i(told: Told, name: str, question: str, text: str = "May I?", **more: bool) -> None:
    asked = Question(id=question, text=text, **{"is_permission": True, **more})
    told.tell(f.AgentAsked, name, question=asked)


def test_a_permission_for_the_run_holds_for_whoever_asks_the_same() -> None:
    told = a_run(a_step("a"), a_step("b"))
    told.ready("a", "b")
    _may_i(told, "a", "q1")
    _may_i(told, "b", "q1")
    told.tell(f.HumanAnswered, "a", question="q1", answer="allow", is_for_run=True)
    assert told.worker("b").attempt.questions == ()
    _may_i(told, "a", "q2")
    assert e.SendAnswer(worker=A, attempt=1, question="q2", answer="allow") in told.acts
    assert told.worker("a").attempt.questions == ()
    answers = [event for event in told.events if isinstance(event, Answered)]
    assert [answer.by for answer in answers] == ["run"]


def test_a_permission_for_the_run_allows_nothing_else(told: Told):
    _may_i(told, "a", "q1")
    told.tell(f.HumanAnswered, "a", question="q1", answer="allow", is_for_run=True)
    _may_i(told, "a", "q2", "May I do more?")
    _may_i(told, "a", "q3", is_permission=False)
    assert [q.id for q in told.worker("a").attempt.questions] == ["q2", "q3"]


def test_a_permission_given_once_is_asked_again(told: Told):
    _may_i(told, "a", "q1")
    told.tell(f.HumanAnswered, "a", question="q1", answer="allow")
    _may_i(told, "a", "q2")
    assert [q.id for q in told.worker("a").attempt.questions] == ["q2"]


def test_an_answer_to_nothing_does_nothing(told: Told):
    told.tell(f.HumanAnswered, "a", question="q9", answer="allow")
    assert told.effects == []


def test_a_question_nobody_needs_to_answer_is_withdrawn(told: Told):
    told.ask("a")
    told.tell(f.QuestionWithdrawn, "a", question="q1")
    assert told.acts == [e.HoldClocks(worker=A, attempt=1, is_held=False)]
    assert told.worker("a").attempt.said == ()


def test_what_was_said_to_an_attempt_does_not_count_for_the_next():
    run = a_run(a_step("a", retry=RetryRule(attempts=2)))
    run.ready("a")
    run.ask("a")
    run.tell(f.HumanAnswered, "a", question="q1", answer="allow")
    run.ended("a", ok=False)
    run.collected("a")
    run.wait_over("a")
    run.ready("a")
    run.ask("a")
    assert [question.id for question in run.worker("a").attempt.questions] == ["q1"]


def test_questions_end_with_their_agent(told: Told):
    told.ask("a")
    told.ended("a")
    assert told.worker("a").attempt.questions == ()
    assert Badge.ASKS not in told.worker("a").badges


def test_words_and_interrupts_go_to_a_running_agent_only(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    assert told.acts == [e.SendSteer(worker=A, attempt=1, text="left")]
    assert isinstance(told.events[0], Steered)
    told.tell(f.AgentInterrupted, "a")
    assert told.acts == [e.SendInterrupt(worker=A, attempt=1)]
    told.ended("a")
    for fact in (f.AgentInterrupted, f.WorkerPaused, f.WorkerResumed):
        told.tell(fact, "a")
        assert told.acts == []
    told.tell(f.AgentSteered, "a", text="right")
    assert told.effects == []


def test_a_paused_worker_is_frozen_and_thawed(told: Told):
    told.tell(f.WorkerPaused, "a")
    assert told.acts == [e.FreezeAttempt(worker=A, attempt=1)]
    assert Badge.PAUSED in told.worker("a").badges
    told.tell(f.WorkerResumed, "a")
    assert told.acts == [e.ThawAttempt(worker=A, attempt=1)]
    assert Badge.PAUSED not in told.worker("a").badges


def test_new_limits_hold_now_and_for_later_attempts(told: Told):
    limits = Limits(memory_mb=7)
    told.tell(f.LimitsSet, "a", limits=limits)
    assert told.acts == [e.ChangeLimits(worker=A, attempt=1, limits=limits)]
    assert told.state.limits_of(A) == limits


def test_a_rate_limit_is_a_badge_while_the_agent_waits(told: Told):
    told.tell(f.RateLimitSeen, "a", until=2_000.0)
    assert Badge.RATE_LIMITED in told.worker("a").badges
    told.tell(f.RateLimitSeen, "a", until=None)
    assert Badge.RATE_LIMITED not in told.worker("a").badges


def test_a_wait_for_the_model_is_told_with_its_end_until_it_is_over(told: Told):
    now = told.state.now
    told.tell(f.RateLimitSeen, "a", until=now + 60.0, status="529")
    assert told.events == [
        RateLimitMet(worker="a/worker_1", attempt=1, until=now + 60.0, status="529")
    ]
    told.tell(f.RateLimitSeen, "a", until=now - 60.0, status="529")  # read anew from a recording
    assert told.events == []


def test_a_wait_whose_end_nobody_says_is_told_without_one(told: Told):
    told.tell(f.RateLimitSeen, "a", until=None, status="429")
    assert told.events == [RateLimitMet(worker="a/worker_1", attempt=1, until=None, status="429")]
    assert Badge.RATE_LIMITED in told.worker("a").badges
    assert told.worker("a").attempt.rate_limited_until is None
    told.tell(f.RateLimitSeen, "a", until=None)
    assert Badge.RATE_LIMITED not in told.worker("a").badges


def test_the_change_so_far_is_known_while_it_runs_and_told_where_it_differs(told: Told):
    seen = Change(files=2, insertions=37, deletions=2)
    told.tell(f.TreeSeen, "a", change=seen)
    assert told.worker("a").attempt.so_far == seen
    assert told.events == [
        ChangeSeen(worker="a/worker_1", attempt=1, files=2, insertions=37, deletions=2)
    ]
    told.tell(f.TreeSeen, "a", change=seen)
    assert told.events == []
    told.tell(f.AttemptEnded, "a", ok=True)
    told.tell(f.TreeSeen, "a", change=Change(files=9))
    assert (told.events, told.worker("a").attempt.so_far) == ([], seen)


def test_a_stall_is_a_badge_while_nothing_moves(told: Told):
    told.tell(f.StallSeen, "a")
    assert Badge.STALLED in told.worker("a").badges
    told.tell(f.StallSeen, "a", is_stalled=False)
    assert Badge.STALLED not in told.worker("a").badges


def test_a_violation_is_told_and_remembered(told: Told):
    told.tell(f.ViolationSeen, "a", path="/x")
    assert told.events == [IsolationViolated(worker="a/worker_1", attempt=1, path="/x")]
    assert told.worker("a").attempt.violations == ("/x",)


# ------------------------------------------------------------------ what observers are told


def endings(told: Told) -> list[str]:
    """The tellings of rest so far, in order."""
    kinds = (RunWaiting, RunFinished)
    return [type(event).__name__ for event in told.history if isinstance(event, kinds)]


def test_a_run_that_waits_for_a_human_says_so_once_until_it_goes_on(told: Told):
    told.ask("a")
    told.ask("a", "q2")
    assert endings(told) == ["RunWaiting"]
    for question in ("q1", "q2"):
        told.tell(f.HumanAnswered, "a", question=question, answer="x")
    told.ask("a", "q3")
    assert endings(told) == ["RunWaiting"] * 2


def test_a_run_finishes_once_and_again_only_after_a_retry(told: Told):
    told.ended("a", ok=False)
    told.collected("a")
    told.feed(rf.CapSet(cap=3))
    told.feed(rf.PauseRequested())
    assert endings(told) == ["RunFinished"]
    assert told.state.ended_at is not None
    told.feed(rf.ResumeRequested())
    told.tell(f.RetryRequested, "a")
    assert told.state.ended_at is None
    told.does("a", change=None)
    assert endings(told) == ["RunFinished", "RunFinished"]


def test_what_a_human_has_to_do_is_said_in_words():
    told = a_run(a_step("a", 2), a_step("b"), a_step("c"), max_concurrent_workers=9)
    told.does("a1", "a2")
    told.ready("b")
    told.ask("b")
    told.does("c")
    told.tell(f.Approved, "c")
    told.tell(f.ConflictsFound, "c", paths=("x",))
    assert report(told.state).waits_for == (
        "choose between the candidates of a",
        "review a/worker_1",
        "review a/worker_2",
        "b/worker_1 asks: May I?",
        "resolve the conflicts of c/worker_1",
    )


def test_while_anything_goes_on_nobody_is_waited_for(told: Told):
    assert report(told.state).waits_for == ()


def test_a_report_tells_what_each_worker_came_to(told: Told):
    told.at += 5
    told.ended("a", text="all done")
    told.collected("a")
    found = report(told.state)
    (worker,) = found.steps["a"].worker_results
    assert (worker.phase, worker.outcome, worker.output) == (
        Phase.REVIEWING,
        Outcome.SUCCESS,
        "all done",
    )
    assert (worker.commit, worker.branch, worker.duration_s) == ("c1", "b", 5.0)
    assert (found.outcome, found.duration_s) == (Outcome.SUCCESS, 5.0)


def test_a_report_names_the_agent_and_the_model():
    step, agent = a_step("a"), replace(AGENT, model="big")
    workers = tuple(replace(planned, agent=agent) for planned in step.workers)
    told = a_run(replace(step, workers=workers))
    (worker,) = report(told.state).steps["a"].worker_results
    assert (worker.agent, worker.model) == ("fake", "big")


def test_words_that_were_not_heard_are_said_when_the_session_is_taken_up_again(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    told.tell(f.SteerUnheard, "a", text="left")
    told.ended("a", session="s")
    told.collected("a")
    worker = told.worker("a")
    assert (worker.phase, worker.history.tries) == (Phase.BACKING_OFF, 0)
    assert (worker.next.mode, worker.next.words) == (RetryMode.RESUME, "left")
    told.wait_over("a")
    told.ready("a")
    told.ended("a", session="s")
    told.collected("a")
    assert told.phase("a") is not Phase.BACKING_OFF


def test_words_that_were_heard_are_not_said_again(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    told.ended("a", session="s")
    told.collected("a")
    assert told.phase("a") is not Phase.BACKING_OFF


def test_words_an_agent_without_a_session_did_not_hear_wait_for_a_retry(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    told.tell(f.SteerUnheard, "a", text="left")
    told.ended("a", ok=False)
    told.collected("a")
    told.tell(f.RetryRequested, "a", mode=RetryMode.CONTINUE, feedback="right")
    assert told.worker("a").next.words == "left\n\nright"


def fate(told: Told) -> list[tuple[str, Delivery]]:
    """Return what became of words so far, in order."""
    return [(e.text, e.delivery) for e in told.history if isinstance(e, Steered)]


def test_words_are_queued_then_delivered_once(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    for _ in range(2):  # read again after a crash
        told.tell(f.SteerHeard, "a", text="left")
    told.tell(f.SteerHeard, "a", text="never said")
    told.ended("a")
    told.collected("a")
    assert fate(told) == [("left", Delivery.QUEUED), ("left", Delivery.DELIVERED)]


def test_words_that_an_attempt_does_not_hear_are_refused_and_told_to_the_next(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    told.ended("a", ok=False)
    told.collected("a")
    assert fate(told)[-1] == ("left", Delivery.REFUSED)
    told.tell(f.RetryRequested, "a")
    assert told.worker("a").next.words == "left"
    told.ready("a")
    told.tell(f.SteerHeard, "a", text="left")
    assert fate(told)[-1] == ("left", Delivery.DELIVERED)
    told.ended("a", ok=False)
    told.collected("a")
    told.tell(f.RetryRequested, "a")
    assert told.worker("a").next.carried == ()


def test_a_deaf_agent_refuses_words_at_once_and_only_once(told: Told):
    told.tell(f.AgentSteered, "a", text="left")
    told.tell(f.SteerUnheard, "a", text="left", is_refused=True)
    told.ended("a", ok=False)
    told.collected("a")
    assert [delivery for _, delivery in fate(told)] == [Delivery.QUEUED, Delivery.REFUSED]
    assert told.worker("a").attempt.said[0].is_heard is False

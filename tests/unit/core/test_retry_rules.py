"""The rules of trying again: waits, attempts, lost workers, rate limits."""

from typing import Any

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core.rules import delay_s
from engine.core.state import Attempt, History, Worker
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice, RetryMode, RetryRule
from engine.policies import Backoff, MergeMode, Policy, PolicyKind
from tests.support.core_runs import FAILED, a_run, who
from tests.support.plans import a_step

EACH: dict[str, Any] = {"merge": MergeMode.EACH}
WIDE: dict[str, Any] = {"max_concurrent_workers": 9}


# ------------------------------------------------------------------ 1: retries


def tried(number: int, tries: int) -> Worker:
    attempt, history = Attempt(number=number), History(tries=tries)
    return Worker(id=who("a"), attempt=attempt, history=history)


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff.FIXED, [2, 2, 2, 2, 2]),
        (Backoff.LINEAR, [2, 4, 6, 8, 10]),
        (Backoff.EXPONENTIAL, [2, 4, 8, 10, 10]),
    ],
)
def test_waits_grow_as_the_rule_says_with_a_tenth_of_jitter(
    backoff: Backoff, expected: list[float]
):
    rule = RetryRule(backoff=backoff, delay_s=2, longest_s=10)
    for tries, wait in enumerate(expected, 1):
        waits = {delay_s(rule, tried(n, tries), seed="r1") for n in range(200)}
        assert all(0.9 * wait <= one <= 1.1 * wait for one in waits)
        assert max(waits) - min(waits) > 0.1 * wait


def test_a_failed_attempt_is_tried_again_until_none_is_left():
    told = a_run(a_step("a", retry=RetryRule(attempts=2, delay_s=10)))
    told.fails("a")
    worker = told.worker("a")
    assert worker.phase is Phase.BACKING_OFF
    assert worker.next.not_before is not None
    assert 9 <= worker.next.not_before - told.at <= 11
    assert told.acts == [e.StartTimer(worker=who("a"), attempt=1, until=worker.next.not_before)]
    told.wait_over("a")
    assert (told.phase("a"), told.worker("a").attempt.number) == (Phase.PREPARING, 2)
    told.fails("a")
    assert told.phase("a") is Phase.FAILED


def test_the_next_attempt_hears_what_became_of_the_last():
    told = a_run(a_step("a", check="test", retry=RetryRule(attempts=2, mode=RetryMode.CONTINUE)))
    told.ready("a")
    told.ended("a", text="x" * 5000 + "the end")
    told.collected("a")
    told.checked_red("a")
    following = told.worker("a").next
    assert (following.mode, following.previous) == (RetryMode.CONTINUE, 1)
    assert following.failure == FAILED.summary
    assert following.check_output == FAILED.summary
    assert following.output_tail.endswith("the end")
    assert len(following.output_tail) == 4096


def test_feedback_can_be_left_out():
    told = a_run(a_step("a", retry=RetryRule(attempts=2, has_feedback=False)))
    told.fails("a")
    assert told.worker("a").next.failure == ""


def test_a_step_restarted_too_often_gives_up():
    told = a_run(a_step("a", retry=RetryRule(attempts=9, restarts=2, per_s=600, delay_s=1)))
    for _ in range(2):
        told.fails("a")
        told.wait_over("a")
    told.fails("a")
    assert told.phase("a") is Phase.FAILED


def test_restarts_of_long_ago_do_not_count():
    told = a_run(a_step("a", retry=RetryRule(attempts=9, restarts=2, per_s=600, delay_s=1)))
    for _ in range(5):
        told.fails("a")
        told.at += 400
        told.wait_over("a")
    assert told.phase("a") is Phase.PREPARING


def test_a_spent_budget_is_not_spent_again():
    told = a_run(a_step("a", retry=RetryRule(attempts=5)))
    told.fails("a", cause=StopCause.BUDGET)
    assert (told.phase("a"), told.worker("a").cause) == (Phase.FAILED, StopCause.BUDGET)


@pytest.mark.parametrize("cause", [StopCause.KEEPER_LOST, StopCause.HOST_LOST, StopCause.SHUTDOWN])
def test_a_lost_attempt_is_followed_at_once_by_another_and_no_try_is_counted(cause: StopCause):
    told = a_run(a_step("a"))
    told.fails("a", cause=cause)
    worker = told.worker("a")
    assert (worker.phase, worker.history.tries, worker.next.not_before) == (
        Phase.BACKING_OFF,
        0,
        told.at,
    )
    assert worker.next.failure == ""
    told.wait_over("a")
    told.fails("a")
    assert told.phase("a") is Phase.FAILED


def test_a_lost_agent_goes_on_where_it_stood_and_a_lost_command_begins_anew():
    told = a_run(a_step("a"), a_step("b", run="make"), max_concurrent_workers=2)
    for name, mode in (("a", RetryMode.RESUME), ("b", RetryMode.FRESH)):
        told.fails(name, cause=StopCause.SHUTDOWN)
        told.wait_over(name)
        (prepare,) = told.acts
        assert isinstance(prepare, e.PrepareWorkspace)
        assert (prepare.mode, prepare.previous) == (mode, 1)


def test_what_stood_on_another_base_does_not_go_on_where_it_stood():
    told = a_run(
        a_step("a", 2, policy=Policy(PolicyKind.SETTLED)), a_step("b", dependencies=("a",)), **WIDE
    )
    told.does("a1")
    told.fails("a2")
    told.ready("b")
    told.ended("b", ok=False, retry_at=told.at + 60)
    told.collected("b")
    told.tell(f.RetryRequested, "a1")
    told.does("a1")
    told.wait_over("b")
    prepare = told.acts[-1]
    assert isinstance(prepare, e.PrepareWorkspace)
    assert (prepare.bases, prepare.mode) == (((who("a1"), 2),), RetryMode.FRESH)


def test_a_human_stop_of_a_lost_attempt_is_the_end_of_it():
    told = a_run(a_step("a"))
    told.ready("a")
    told.stop("a")
    told.ended("a", ok=False, cause=StopCause.KEEPER_LOST)
    told.collected("a")
    assert told.phase("a") is Phase.CANCELLED


# ------------------------------------------------------------------ rate limits


def test_an_agent_that_ended_on_a_rate_limit_resumes_when_it_is_over():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a", ok=False, retry_at=told.at + 3600)
    told.collected("a")
    worker = told.worker("a")
    assert (worker.phase, worker.next.not_before, worker.history.tries) == (
        Phase.BACKING_OFF,
        told.at + 3600,
        0,
    )
    assert worker.next.mode is RetryMode.RESUME
    told.wait_over("a")
    (prepare,) = told.acts
    assert isinstance(prepare, e.PrepareWorkspace)
    assert (prepare.mode, prepare.previous) == (RetryMode.RESUME, 1)


def test_one_login_holds_all_its_workers_and_nobody_else():
    told = a_run(a_step("a", 3, **EACH), a_step("b"), max_concurrent_workers=2)
    plan = told.state.plan.step("b").workers[0]
    object.__setattr__(plan, "agent", AgentChoice(name="other", adapter="scripted"))
    told.ready("a1")
    told.ended("a1", ok=False, retry_at=told.at + 60)
    told.collected("a1")
    assert told.phases("a1", "a2", "a3") == [
        Phase.BACKING_OFF,
        Phase.PREPARING,
        Phase.BACKING_OFF,
    ]
    assert told.worker("a3").next.not_before == told.at + 60
    assert told.phase("b") is Phase.PREPARING
    told.at += 60
    told.wait_over("a3")
    told.does("a2")
    assert told.phase("a3") is Phase.PREPARING

"""The joint rules: policies, choices, stacking, slots and landings of a whole run."""

from typing import Any

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.outcome import must_land_first
from engine.core.rules import foreseen
from engine.messages.events import StepSettled
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import RetryRule
from engine.policies import ChooseBy, MergeMode, Policy, PolicyKind
from tests.support.core_runs import FAILED, Told, a_run, who
from tests.support.plans import a_step

EACH: dict[str, Any] = {"merge": MergeMode.EACH}
WIDE: dict[str, Any] = {"max_concurrent_workers": 9}


def policy(kind: PolicyKind, n: int = 1, workers: int = 3, **more: Any) -> Told:
    """A step under a policy, all of its workers running."""
    told = a_run(a_step("a", workers, policy=Policy(kind, n), **more), **WIDE)
    told.ready(*(f"a{index}" for index in range(1, workers + 1)))
    return told


def done(told: Told, *names: str) -> None:
    for name in names:
        told.ended(name)
        told.collected(name)


def broken(told: Told, *names: str) -> None:
    for name in names:
        told.ended(name, ok=False, error="it broke")
        told.collected(name, None)


# ------------------------------------------------------------------ 2: policies


def test_all_stops_the_rest_at_the_first_final_failure():
    told = policy(PolicyKind.ALL)
    broken(told, "a2")
    assert told.phases("a1", "a2", "a3") == [Phase.STOPPING, Phase.FAILED, Phase.STOPPING]
    stops = [act for act in told.acts if isinstance(act, e.StopActivity)]
    assert [(str(stop.worker), stop.cause) for stop in stops] == [
        ("a/worker_1", StopCause.FAIL_FAST),
        ("a/worker_3", StopCause.FAIL_FAST),
    ]
    assert told.outcome("a") is Outcome.FAILED


def test_all_waits_while_an_attempt_is_left():
    told = policy(PolicyKind.ALL, retry=RetryRule(attempts=2))
    broken(told, "a2")
    assert told.phases("a1", "a2") == [Phase.RUNNING, Phase.BACKING_OFF]
    assert not told.step("a").has_failed_fast


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.QUEUED, Phase.BACKING_OFF])
def test_failing_fast_leaves_nobody_waiting(phase: Phase):
    told = a_run(a_step("a", 3, retry=RetryRule(attempts=2)), max_concurrent_workers=2)
    told.ready("a1", "a2")
    broken(told, "a1")
    assert told.phase("a1") is Phase.BACKING_OFF
    told.ended("a2", ok=False, cause=StopCause.BUDGET)
    told.collected("a2", None)
    assert phase not in told.phases("a1", "a2", "a3")
    assert told.phase("a1") is Phase.CANCELLED


def test_failing_fast_leaves_finished_work_to_its_human():
    told = policy(PolicyKind.ALL)
    done(told, "a1")
    broken(told, "a2")
    assert told.phase("a1") is Phase.REVIEWING


def test_failing_fast_stays_within_its_step():
    told = a_run(a_step("a"), a_step("b"))
    told.ready("b")
    told.fails("a")
    assert told.phase("b") is Phase.RUNNING


def test_settled_stops_nobody_and_needs_one():
    told = policy(PolicyKind.SETTLED)
    broken(told, "a1")
    assert told.phases("a2", "a3") == [Phase.RUNNING] * 2
    done(told, "a2")
    assert told.outcome("a") is Outcome.PENDING
    broken(told, "a3")
    assert told.outcome("a") is Outcome.SUCCESS


def test_settled_fails_when_nobody_succeeded():
    told = policy(PolicyKind.SETTLED)
    broken(told, "a1", "a2", "a3")
    assert told.outcome("a") is Outcome.FAILED


def test_first_stops_the_rest_at_enough_successes():
    told = policy(PolicyKind.FIRST, 2)
    done(told, "a3")
    assert told.phases("a1", "a2") == [Phase.RUNNING] * 2
    done(told, "a1")
    assert told.phase("a2") is Phase.STOPPING
    assert told.outcome("a") is Outcome.SUCCESS
    told.is_stopped("a2")
    assert told.worker("a2").cause is StopCause.RACE_LOST


def test_first_fails_as_soon_as_it_is_out_of_reach():
    told = policy(PolicyKind.FIRST, 3)
    broken(told, "a1")
    assert told.outcome("a") is Outcome.FAILED


def test_quorum_stops_nobody_and_needs_its_number():
    told = policy(PolicyKind.QUORUM, 2)
    done(told, "a1", "a2")
    assert told.outcome("a") is Outcome.PENDING
    broken(told, "a3")
    assert told.outcome("a") is Outcome.SUCCESS
    told = policy(PolicyKind.QUORUM, 2)
    done(told, "a1")
    broken(told, "a2", "a3")
    assert told.outcome("a") is Outcome.FAILED


def test_success_counts_after_the_check():
    told = policy(PolicyKind.FIRST, 1, check="test")
    done(told, "a1")
    assert told.phases("a1", "a2") == [Phase.CHECKING, Phase.RUNNING]
    told.passed("a1")
    assert told.phase("a2") is Phase.STOPPING


# ------------------------------------------------------------------ 3: choices


def test_a_human_is_asked_to_choose_and_their_choice_discards_the_others():
    told = a_run(a_step("a", 2), a_step("b", dependencies=("a",)))
    told.does("a1", "a2")
    assert "ChoiceWanted" in [type(event).__name__ for event in told.events]
    assert told.phase("b") is Phase.WAITING
    told.tell(f.Chosen, "a2")
    assert told.phases("a1", "a2", "b") == [Phase.DISCARDED, Phase.REVIEWING, Phase.PREPARING]
    assert told.worker("a1").cause is StopCause.NOT_CHOSEN
    assert told.worker("b").attempt.bases == ((who("a2"), 1),)


def test_a_choice_stops_siblings_that_still_run():
    told = policy(PolicyKind.SETTLED)
    done(told, "a1")
    told.tell(f.Chosen, "a1")
    assert told.phases("a1", "a2") == [Phase.REVIEWING, Phase.STOPPING]
    assert told.outcome("a") is Outcome.SUCCESS


def test_the_check_chooses_the_first_in_plan_order():
    told = policy(PolicyKind.SETTLED, choose=ChooseBy.CHECK)
    done(told, "a3", "a2")
    assert told.step("a").chosen is None
    broken(told, "a1")
    assert told.step("a").chosen == who("a2")
    assert told.phase("a3") is Phase.DISCARDED


def test_a_single_success_needs_no_choice():
    told = policy(PolicyKind.SETTLED)
    broken(told, "a1", "a3")
    done(told, "a2")
    assert told.step("a").choice_told == ()
    assert told.outcome("a") is Outcome.SUCCESS


# ------------------------------------------------------------------ 4 to 6: stacking


def test_a_step_builds_on_every_change_below_it():
    told = a_run(a_step("a", 2, **EACH), a_step("b"), a_step("c", dependencies=("b", "a")), **WIDE)
    told.does("a1", "b", "a2")
    assert told.worker("c").attempt.bases == ((who("a1"), 1), (who("a2"), 1), (who("b"), 1))


def test_a_step_waits_until_the_check_below_it_has_passed():
    told = a_run(a_step("a", check="test"), a_step("b", dependencies=("a",)))
    told.ready("a")
    told.ended("a")
    told.collected("a")
    assert told.phase("b") is Phase.WAITING
    told.passed("a")
    assert told.phase("b") is Phase.PREPARING


def test_a_step_behind_a_failure_is_skipped_with_its_own_dependents():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)), a_step("c", dependencies=("b",)))
    told.fails("a")
    assert told.phases("b", "c") == [Phase.SKIPPED] * 2
    assert told.state.is_finished_told
    told.tell(f.RetryRequested, "a")
    assert told.phases("b", "c") == [Phase.WAITING] * 2
    told.does("a")
    assert told.phase("b") is Phase.PREPARING


def test_a_rejected_upstream_stops_what_runs_on_it_and_skips_it():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a")
    told.ready("b")
    told.tell(f.Rejected, "a")
    assert told.phase("b") is Phase.STOPPING
    told.is_stopped("b")
    assert told.phase("b") is Phase.SKIPPED


def test_a_retried_upstream_re_arms_what_ran_on_it():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a")
    told.ready("b")
    told.tell(f.RetryRequested, "a")
    told.is_stopped("b")
    assert told.phase("b") is Phase.WAITING
    told.does("a")
    assert (told.phase("b"), told.worker("b").attempt.bases) == (Phase.PREPARING, ((who("a"), 2),))


def test_finished_work_on_an_old_base_stays_with_a_badge():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a", "b")
    told.tell(f.RetryRequested, "a")
    assert told.phase("b") is Phase.REVIEWING
    told.does("a")
    assert Badge.BASE_OUTDATED in told.worker("b").badges


def test_a_landed_upstream_is_still_the_same_base():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a")
    told.ready("b")
    told.tell(f.Approved, "a")
    told.landed("a")
    assert told.phase("b") is Phase.RUNNING


def test_what_is_stacked_lands_after_what_is_below_it():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a", "b")
    assert must_land_first(told.state, who("b")) == (who("a"),)
    told.tell(f.Approved, "a")
    told.landed("a")
    assert must_land_first(told.state, who("b")) == ()


# ------------------------------------------------------------------ 7: slots


def test_queued_workers_begin_in_plan_order_while_slots_allow():
    told = a_run(a_step("a", 2, **EACH), a_step("b"), max_concurrent_workers=2)
    assert told.phases("a1", "a2", "b") == [Phase.PREPARING, Phase.PREPARING, Phase.QUEUED]
    told.does("a2")
    assert told.phase("b") is Phase.PREPARING


def test_a_smaller_cap_stops_nobody_and_begins_nobody():
    told = a_run(a_step("a", 3, **EACH), max_concurrent_workers=2)
    told.feed(rf.CapSet(cap=1))
    told.does("a1")
    assert told.phase("a3") is Phase.QUEUED
    told.does("a2")
    assert told.phase("a3") is Phase.PREPARING


def test_a_step_may_have_fewer_slots_of_its_own():
    told = a_run(a_step("a", 3, max_parallel=1, **EACH), a_step("b"))
    assert told.phases("a1", "a2", "b") == [Phase.PREPARING, Phase.QUEUED, Phase.PREPARING]


def test_a_pause_begins_nobody_and_lets_the_others_go_on():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.feed(rf.PauseRequested())
    told.does("a")
    assert told.phase("b") is Phase.QUEUED
    told.feed(rf.ResumeRequested())
    assert told.phase("b") is Phase.PREPARING


def test_an_added_step_and_an_added_worker_take_part():
    told = a_run(a_step("a", **EACH))
    told.feed(rf.StepAdded(step=a_step("b", dependencies=("a",))))
    told.feed(rf.WorkerAdded(planned=a_step("a", 2).workers[1]))
    assert told.phases("a1", "a2", "b") == [Phase.PREPARING, Phase.PREPARING, Phase.WAITING]
    told.does("a1", "a2")
    assert told.worker("b").attempt.bases == ((who("a1"), 1), (who("a2"), 1))


def test_what_a_queued_worker_will_want_is_what_it_wants_then():
    told = a_run(a_step("a"), a_step("b", 2, dependencies=("a",), **EACH), max_concurrent_workers=1)
    assert foreseen(told.state, who("b1")) is None  # it waits for another step
    told.does("a")
    seen = foreseen(told.state, who("b2"))
    assert seen is not None
    assert told.phase("b2") is Phase.QUEUED  # nothing has moved by that
    told.does("b1")
    assert [act for act in told.acts if isinstance(act, e.PrepareWorkspace)] == [seen[1]]
    assert seen[0].workers[who("b2")].attempt == told.worker("b2").attempt


@pytest.mark.parametrize("fact", [rf.PauseRequested, rf.RunStopRequested])
def test_nothing_is_foreseen_where_nobody_begins(fact: type[Any]):
    told = a_run(a_step("a", 2), max_concurrent_workers=1)
    assert foreseen(told.state, who("a2")) is not None
    assert foreseen(told.state, who("a1")) is None  # it has begun
    told.feed(fact(at=told.at))
    assert foreseen(told.state, who("a2")) is None


def test_no_second_attempt_is_foreseen():
    told = a_run(a_step("a", 2, policy=Policy(PolicyKind.SETTLED)), max_concurrent_workers=1)
    told.fails("a1")
    told.tell(f.RetryRequested, "a1")
    assert told.phase("a1") is Phase.QUEUED
    assert foreseen(told.state, who("a1")) is None


# ------------------------------------------------------------------ 8: auto_merge


def test_checked_changes_land_by_themselves_in_plan_order():
    told = a_run(a_step("a"), a_step("b"), auto_merge=True)
    told.does("b")
    assert told.phase("b") is Phase.REVIEWING
    told.does("a")
    assert told.phases("a", "b") == [Phase.LANDING, Phase.REVIEWING]
    told.landed("a")
    assert told.phases("a", "b") == [Phase.LANDED, Phase.LANDING]
    told.landed("b")
    assert told.state.is_finished_told


@pytest.mark.parametrize(
    ("fact", "more"),
    [(f.LandRefused, {"reason": "dirty"}), (f.CheckFailed, {"check": FAILED})],
)
def test_a_refused_landing_waits_for_a_human_and_holds_those_behind_it(
    fact: type[Any], more: dict[str, Any]
):
    told = a_run(a_step("a"), a_step("b"), auto_merge=True)
    told.does("a", "b")
    told.tell(fact, "a", **more)
    assert told.phases("a", "b") == [Phase.REVIEWING, Phase.REVIEWING]
    told.tell(f.Rejected, "a")
    assert told.phase("b") is Phase.LANDING


def test_a_violation_never_lands_by_itself():
    told = a_run(a_step("a"), auto_merge=True)
    told.ready("a")
    told.tell(f.ViolationSeen, "a", path="/etc/passwd")
    told.ended("a")
    told.collected("a")
    assert told.phase("a") is Phase.REVIEWING


def test_candidates_land_by_themselves_only_when_chosen():
    told = a_run(a_step("a", 2), auto_merge=True)
    told.does("a1", "a2")
    assert told.phases("a1", "a2") == [Phase.REVIEWING] * 2
    told.tell(f.Chosen, "a2")
    assert told.phases("a1", "a2") == [Phase.DISCARDED, Phase.LANDING]


def test_nothing_lands_by_itself_after_the_run_was_stopped():
    told = a_run(a_step("a"), auto_merge=True)
    told.ready("a")
    told.ended("a")
    told.feed(rf.RunStopRequested(at=told.at))
    told.collected("a")
    assert told.phase("a") is Phase.CANCELLED


# ------------------------------------------------------------------ rejected candidates


@pytest.mark.parametrize(
    "kind", [Policy(PolicyKind.ALL), Policy(PolicyKind.QUORUM, 3), Policy(PolicyKind.SETTLED)]
)
def test_rejecting_candidates_narrows_the_choice_until_one_is_left(kind: Policy):
    told = a_run(a_step("a", 3, policy=kind), a_step("b", dependencies=("a",)), **WIDE)
    told.does("a1", "a2")
    told.tell(f.Rejected, "a1")
    assert (told.outcome("a"), told.phase("b")) == (Outcome.PENDING, Phase.WAITING)
    told.does("a3")
    assert (told.outcome("a"), told.phase("b")) == (Outcome.SUCCESS, Phase.WAITING)
    assert told.step("a").choice_told == (who("a2"), who("a3"))
    told.tell(f.Rejected, "a2")
    assert (told.phase("b"), told.worker("b").attempt.bases) == (Phase.PREPARING, ((who("a3"), 1),))


def test_a_step_whose_candidates_are_all_rejected_is_cancelled():
    told = a_run(a_step("a", 2), a_step("b", dependencies=("a",)), **WIDE)
    told.does("a1", "a2")
    told.tell(f.Rejected, "a1")
    told.tell(f.Rejected, "a2")
    assert (told.outcome("a"), told.phase("b")) == (Outcome.CANCELLED, Phase.STOPPING)
    told.is_stopped("b")
    assert told.phase("b") is Phase.SKIPPED


def test_a_rejected_success_of_a_race_of_several_lets_the_others_run_on():
    told = policy(PolicyKind.FIRST, 2)
    done(told, "a1")
    told.tell(f.Rejected, "a1")
    done(told, "a2")
    assert (told.outcome("a"), told.phase("a3")) == (Outcome.PENDING, Phase.RUNNING)
    done(told, "a3")
    assert told.outcome("a") is Outcome.SUCCESS


# ------------------------------------------------------------------ 6: retries after fail-fast


def failed_fast() -> Told:
    """The second of three failed, and fail-fast stopped the others."""
    told = policy(PolicyKind.ALL)
    broken(told, "a2")
    told.is_stopped("a1")
    told.is_stopped("a3")
    assert told.phases("a1", "a2", "a3") == [Phase.CANCELLED, Phase.FAILED, Phase.CANCELLED]
    return told


def retried(told: Told, *names: str) -> None:
    for name in names:
        told.tell(f.RetryRequested, name, is_alone=True)


def test_a_retry_restarts_only_the_worker_that_was_named():
    told = failed_fast()
    retried(told, "a2")
    assert told.phases("a1", "a2", "a3") == [Phase.CANCELLED, Phase.PREPARING, Phase.CANCELLED]
    assert told.outcome("a") is Outcome.PENDING


def test_siblings_begin_again_once_the_retry_succeeds():
    told = failed_fast()
    retried(told, "a2")
    told.does("a2")
    assert told.phases("a1", "a2", "a3") == [Phase.PREPARING, Phase.REVIEWING, Phase.PREPARING]
    settled = [one.outcome for one in told.history if isinstance(one, StepSettled)]
    assert settled == [Outcome.FAILED]
    told.does("a1", "a3")
    assert told.outcome("a") is Outcome.SUCCESS


def test_siblings_stay_as_they_are_while_another_has_failed():
    told = policy(PolicyKind.ALL)
    broken(told, "a2")
    told.ended("a3", ok=False, cause=StopCause.MEMORY)
    told.feed(f.Collected(**told.about("a3"), change=None))
    told.is_stopped("a1")
    assert told.phases("a1", "a2", "a3") == [Phase.CANCELLED, Phase.FAILED, Phase.CANCELLED]
    retried(told, "a2", "a3")
    told.fails("a3")
    assert told.phases("a1", "a2", "a3") == [Phase.CANCELLED, Phase.PREPARING, Phase.FAILED]
    told.does("a2")
    assert told.phase("a1") is Phase.CANCELLED
    retried(told, "a3")
    told.does("a3")
    assert told.phases("a1", "a2", "a3") == [Phase.PREPARING, Phase.REVIEWING, Phase.REVIEWING]


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_sibling_that_fails_again_stops_no_retry_but_those_of_older_journals(*, is_alone: bool):
    told = failed_fast()
    told.tell(f.RetryRequested, "a2", is_alone=is_alone)
    if is_alone:
        retried(told, "a1")
    told.fails("a1")
    assert told.phase("a2") is (Phase.PREPARING if is_alone else Phase.STOPPING)


def test_a_retry_keeps_the_attempts_that_its_step_allows():
    told = policy(PolicyKind.ALL, retry=RetryRule(attempts=2))
    broken(told, "a2")
    told.wait_over("a2")
    told.fails("a2")
    told.is_stopped("a1")
    told.is_stopped("a3")
    retried(told, "a2")
    told.fails("a2")
    assert told.phase("a2") is Phase.BACKING_OFF
    assert told.outcome("a") is Outcome.PENDING


def test_the_time_limit_of_a_run_leaves_its_rests_out_and_begins_anew_with_a_retry():
    told = a_run(a_step("a", 2))
    told.does("a1")
    told.ready("a2")
    told.ask("a2")
    told.at += 500
    told.tell(f.HumanAnswered, "a2", question="q1", answer="yes")
    assert told.state.timed_since == told.state.started_at + 500
    told.ended("a2", ok=False)
    told.collected("a2", None)
    told.at += 500
    retried(told, "a2")
    assert told.state.timed_since == told.at

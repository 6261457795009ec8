"""Mistakes that stories and reading have brought to light; each would come back unnoticed."""

from dataclasses import replace

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.outcome import offers
from engine.core.report import report
from engine.core.state import Attempt, ResolvedTree
from engine.messages.commands import LandWish
from engine.messages.results import Badge, Moment, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode, RetryRule
from engine.policies import ChooseBy, MergeMode, Policy, PolicyKind
from tests.support.core_runs import Told, a_run, who
from tests.support.plans import a_step

EACH = {"merge": MergeMode.EACH}
SETTLED = Policy(PolicyKind.SETTLED)


def conflicted_base() -> Told:
    told = a_run(
        a_step("a", 2, **EACH),
        a_step("b", dependencies=("a",)),
        a_step("c"),
        max_concurrent_workers=2,
    )
    told.does("a1", "a2")
    told.tell(f.BaseConflicted, "b", paths=("x",))
    return told


def test_a_resolved_base_waits_for_a_slot_like_any_other_work():
    told = conflicted_base()
    told.feed(rf.CapSet(cap=1))
    assert told.phase("c") is Phase.PREPARING
    told.tell(f.Resolved, "b", tree="t")
    assert told.phase("b") is Phase.QUEUED
    told.does("c")
    assert told.phase("b") is Phase.PREPARING
    assert told.worker("b").attempt.number == 1
    prepare = next(act for act in told.acts if isinstance(act, e.PrepareWorkspace))
    assert prepare.resolved_base == "t"


def test_a_resolved_base_does_not_begin_while_the_run_is_paused():
    told = conflicted_base()
    told.feed(rf.PauseRequested())
    told.tell(f.Resolved, "b", tree="t")
    assert told.phase("b") is Phase.QUEUED


def test_a_resolution_is_void_when_the_base_has_changed_meanwhile():
    told = conflicted_base()
    told.tell(f.RetryRequested, "a1")
    told.tell(f.Resolved, "b", tree="t")
    assert told.phase("b") is Phase.WAITING
    told.does("a1")
    assert told.phase("b") is Phase.PREPARING
    prepare = next(act for act in told.acts if isinstance(act, e.PrepareWorkspace))
    assert (prepare.attempt, prepare.resolved_base) == (2, None)


def test_the_tree_that_resolved_a_base_is_never_landed_as_the_work():
    told = conflicted_base()
    told.tell(f.Resolved, "b", tree="t")
    told.does("b")
    told.tell(f.Approved, "a1")
    told.landed("a1")
    told.tell(f.Approved, "a2")
    told.landed("a2")
    told.tell(f.Approved, "b")
    assert told.acts == [
        e.PerformLanding(
            worker=who("b"),
            attempt=1,
            wish=LandWish(),
            resolution=None,
            prepared=None,
        )
    ]


def test_a_choice_that_was_undone_and_failed_leaves_the_step_without_a_success():
    told = a_run(
        a_step("a", 2, choose=ChooseBy.CHECK, policy=SETTLED), a_step("b", dependencies=("a",))
    )
    told.does("a1", "a2")
    assert told.step("a").chosen == who("a1")
    told.tell(f.RetryRequested, "a1")
    assert told.phase("a2") is Phase.DISCARDED
    told.is_stopped("b")
    told.fails("a1")
    assert told.outcome("a") is Outcome.FAILED
    assert told.phases("a1", "b") == [Phase.FAILED, Phase.SKIPPED]
    assert told.state.is_finished_told


def test_a_discarded_candidate_can_be_retried_once_the_chosen_one_is_given_up():
    told = a_run(a_step("a", 2))
    told.does("a1", "a2")
    told.tell(f.Chosen, "a1")
    told.tell(f.Rejected, "a1")
    told.tell(f.RetryRequested, "a2")
    assert told.phase("a2") is Phase.PREPARING
    assert told.step("a").chosen is None


def test_a_retried_choice_is_no_longer_marked_as_chosen():
    told = a_run(a_step("a", 2))
    told.does("a1", "a2")
    told.tell(f.Chosen, "a1")
    assert Badge.CHOSEN in told.worker("a1").badges
    told.tell(f.RetryRequested, "a1")
    assert Badge.CHOSEN not in told.worker("a1").badges


def two_failures() -> Told:
    told = a_run(a_step("a", 3), max_concurrent_workers=1)
    told.fails("a1")
    told.tell(f.RetryRequested, "a2")
    told.fails("a2")
    return told


def test_retrying_one_of_two_failures_is_not_undone_by_the_other():
    told = two_failures()
    assert told.phases("a1", "a2", "a3") == [Phase.FAILED, Phase.FAILED, Phase.CANCELLED]
    told.tell(f.RetryRequested, "a1")
    assert told.phase("a1") is Phase.PREPARING
    assert told.phase("a3") is Phase.QUEUED
    told.does("a1")
    told.tell(f.RetryRequested, "a2")
    told.does("a3", "a2")
    assert told.outcome("a") is Outcome.SUCCESS


def test_a_failure_that_was_final_stays_final_however_much_time_passes():
    rule = RetryRule(attempts=9, delay_s=1, restarts=1, per_s=60)
    told = a_run(a_step("a", policy=SETTLED, retry=rule), a_step("b"))
    told.fails("a")
    told.wait_over("a")
    told.fails("a")
    assert told.phase("a") is Phase.FAILED
    told.at += 3600
    told.ready("b")
    told.feed(rf.CapSet(cap=3, at=told.at))
    assert told.phase("a") is Phase.FAILED
    assert told.outcome("a") is Outcome.FAILED


def test_what_failed_under_a_stop_is_not_tried_again_when_the_run_goes_on():
    told = a_run(a_step("a", policy=SETTLED, retry=RetryRule(attempts=3)))
    told.ready("a")
    told.ended("a", ok=False)
    told.feed(rf.RunStopRequested(cause=StopCause.TIMEOUT, at=told.at))
    told.collected("a")
    assert told.phase("a") is Phase.FAILED
    told.feed(rf.ResumeRequested(at=told.at))
    assert told.phase("a") is Phase.FAILED


def test_a_stopped_run_re_arms_nobody_until_it_goes_on():
    both = Policy(PolicyKind.FIRST, 2)
    told = a_run(a_step("a", 2, policy=both), a_step("b", dependencies=("a",)))
    told.does("a1", "a2")
    told.tell(f.Rejected, "a1")
    assert told.phase("b") is Phase.SKIPPED
    told.feed(rf.RunStopRequested(at=told.at))
    told.tell(f.Chosen, "a2")
    assert told.phase("b") is Phase.SKIPPED
    told.feed(rf.ResumeRequested(at=told.at))
    assert told.phase("b") is Phase.PREPARING


def test_a_landing_that_a_human_stopped_does_not_begin_again_by_itself():
    told = a_run(a_step("a"), auto_merge=True)
    told.does("a")
    assert told.phase("a") is Phase.LANDING
    told.stop("a")
    assert told.phase("a") is Phase.REVIEWING
    assert Badge.LAND_REFUSED in told.worker("a").badges
    assert told.acts == [
        e.StopActivity(worker=who("a"), attempt=1, cause=StopCause.USER, is_kill=False)
    ]
    told.tell(f.Approved, "a")
    assert told.phase("a") is Phase.LANDING


def test_a_worker_that_is_being_stopped_waits_for_no_answer():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ask("a")
    assert told.state.is_waiting_told
    told.feed(rf.RunStopRequested(at=told.at))
    assert told.worker("a").attempt.questions == ()
    assert not told.state.is_waiting_told
    assert report(told.state).waits_for == ()


def test_a_landing_prepared_too_late_is_not_remembered():
    told = a_run(a_step("a"))
    told.does("a")
    told.tell(f.Approved, "a")
    told.stop("a")
    told.tell(f.RetryRequested, "a")
    dropped = told.state.dropped
    told.feed(f.LandPrepared(worker=who("a"), attempt=1, target="m", old="1", new="2", detail="d"))
    assert told.worker("a").landing.prepared is None
    assert told.state.dropped == dropped + 1


@pytest.mark.parametrize("cause", [StopCause.KEEPER_LOST, StopCause.SHUTDOWN])
def test_a_machine_that_dies_under_many_workers_costs_none_of_them_its_attempts(cause: StopCause):
    told = a_run(a_step("a", 8, merge=MergeMode.EACH), max_concurrent_workers=8)
    names = [f"a{n}" for n in range(1, 9)]
    told.ready(*names)
    for name in names:
        told.ended(name, ok=False, cause=cause)
    for name in names:
        told.collected(name)
    assert told.phases(*names) == [Phase.BACKING_OFF] * 8


def test_an_agent_that_always_kills_its_keeper_is_given_up():
    told = a_run(a_step("a"))
    for _ in range(5):
        told.fails("a", cause=StopCause.KEEPER_LOST)
        told.wait_over("a")
    told.fails("a", cause=StopCause.KEEPER_LOST)
    assert told.phase("a") is Phase.FAILED


def test_a_timer_of_an_earlier_wait_does_not_end_a_later_one():
    told = a_run(a_step("a", 2, merge=MergeMode.EACH), max_concurrent_workers=2)
    told.ready("a1", "a2")
    told.ended("a1", ok=False, retry_at=told.at + 60)
    told.ended("a2", ok=False, retry_at=told.at + 600)
    told.collected("a1")
    told.collected("a2")
    told.tell(f.RetryRequested, "a1", mode=RetryMode.RESUME)
    told.ready("a1")
    told.ended("a1", ok=False, retry_at=told.at + 300)
    told.collected("a1")
    told.at += 60
    told.feed(f.BackoffElapsed(worker=who("a1"), attempt=1, at=told.at))
    assert told.phases("a1", "a2") == [Phase.BACKING_OFF] * 2


def test_a_login_that_is_held_lets_nobody_begin_until_its_time_or_a_human_says_so():
    one = a_step("a", 3, merge=MergeMode.EACH)
    told = a_run(one, max_concurrent_workers=1)
    login = told.state.agent_of(who("a1")).login
    told.feed(rf.LoginHeld(login="of somebody else", until=told.at + 90, at=told.at))
    assert told.phase("a1") is Phase.PREPARING
    reason = "the budget of today is spent"
    held = rf.LoginHeld(login=login, until=told.at + 60, cause=StopCause.BUDGET, reason=reason)
    told.feed(replace(held, at=told.at))
    told.ready("a1")
    told.ended("a1")
    told.collected("a1")
    waiting = told.worker("a2")
    assert (waiting.phase, waiting.cause) == (Phase.BACKING_OFF, held.cause)
    assert waiting.attempt == Attempt(number=0, rate_limited_until=None)
    assert waiting.error == reason
    told.tell(f.RetryRequested, "a2")
    assert told.phase("a2") is Phase.BACKING_OFF, "a budget is lifted by no retry"
    told.feed(rf.LoginHeld(login=login, until=told.at + 60, at=told.at))
    told.tell(f.RetryRequested, "a2")
    assert told.phases("a2", "a3") == [Phase.PREPARING, Phase.BACKING_OFF]
    told.at += 60
    told.ready("a2")
    told.ended("a2")
    told.collected("a2")
    told.tell(f.BackoffElapsed, "a3")
    after = told.worker("a3")
    assert (after.phase, after.cause, after.error) == (Phase.PREPARING, None, None)


def test_a_share_of_the_slots_is_not_what_the_human_asked_for():
    told = a_run(a_step("a", 3, merge=MergeMode.EACH), max_concurrent_workers=3)
    told.feed(rf.CapSet(cap=1, is_share=True))
    assert (told.state.cap, told.state.wanted_cap) == (1, 3)
    told.feed(rf.CapSet(cap=2))
    assert (told.state.cap, told.state.wanted_cap) == (2, 2)


def test_a_change_of_a_discarded_candidate_offers_nothing():
    told = a_run(a_step("a", 2, choose=ChooseBy.CHECK, policy=SETTLED))
    told.does("a1", "a2")
    told.tell(f.RetryRequested, "a1")
    assert offers(told.state, told.state.plan.step("a")) is None


def test_a_landing_that_lost_its_race_forgets_what_it_had_prepared():
    told = a_run(a_step("a"))
    told.does("a")
    told.tell(f.Approved, "a")
    told.tell(f.LandPrepared, "a", target="main", old="1", new="2", detail="d")
    told.tell(f.ConflictsFound, "a", paths=("x",))
    told.tell(f.Resolved, "a", tree="t")
    (land,) = told.acts
    assert isinstance(land, e.PerformLanding)
    assert (land.resolution, land.prepared) == (ResolvedTree(tree="t"), None)


def test_tries_go_on_from_the_moment_that_a_human_named_until_another_is_asked_for():
    start = Moment(attempt=1, at=7.0, commit="c", base="b")
    told = a_run(a_step("a", policy=SETTLED, retry=RetryRule(attempts=2)))

    def begins() -> Moment | None:
        (prepare,) = [act for act in told.acts if isinstance(act, e.PrepareWorkspace)]
        return prepare.start

    told.does("a")
    told.tell(f.RetryRequested, "a", start=start)
    assert begins() == start
    told.fails("a")
    told.wait_over("a")
    assert begins() == start
    told.does("a")
    told.tell(f.RetryRequested, "a")
    assert begins() is None

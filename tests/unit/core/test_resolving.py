"""Test what resolving a conflict and checking again come to: facts in, effects and events out."""

from dataclasses import replace
from typing import Any

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.outcome import candidates
from engine.core.state import ResolvedTree
from engine.ids import WOVEN, WorkerId
from engine.messages.events import CheckFinished, ReviewWanted
from engine.messages.results import Badge, Change, CheckResult
from engine.phases import Phase
from engine.policies import Policy, PolicyKind
from tests.support.core_runs import CHANGE, a_run, who
from tests.support.plans import a_step


def failed(tree: str) -> CheckResult:
    return CheckResult(command="true", passed=False, tree=tree)


def test_a_landing_is_told_what_its_resolution_was_made_against():
    told = a_run(a_step("a"))
    told.does("a")
    told.tell(f.Approved, "a")
    told.tell(f.ConflictsFound, "a", paths=("x",))
    told.tell(f.Resolved, "a", tree="t", onto="c")
    (land,) = told.acts
    assert isinstance(land, e.PerformLanding)
    assert land.resolution == ResolvedTree(tree="t", onto="c")


def test_a_check_run_again_is_kept_and_told_and_moves_nobody():
    told = a_run(a_step("a", check="true"))
    told.does("a")
    assert told.phase("a") is Phase.REVIEWING
    told.tell(f.Rechecked, "a", check=failed("t"))
    assert told.phase("a") is Phase.REVIEWING
    assert told.events == [
        CheckFinished(worker=str(who("a")), attempt=1, check=failed("t"), is_for_landing=True)
    ]
    assert told.worker("a").review.check == failed("t")
    assert Badge.CHECK_FAILED in told.worker("a").badges
    told.tell(f.Rechecked, "a", check=CheckResult(command="true", passed=True, tree="t"))
    assert Badge.CHECK_FAILED not in told.worker("a").badges


def test_a_check_that_ends_too_late_changes_nothing():
    told = a_run(a_step("a", check="true"))
    told.does("a")
    told.tell(f.Approved, "a")
    told.landed("a")
    before = told.worker("a")
    told.tell(f.Rechecked, "a", check=failed("t"))
    assert told.worker("a") == before


def woven(attempt: int = 1, **more: object) -> rf.CompositeWoven:
    planned = replace(a_step("a", 2).workers[0], id=WorkerId("a", WOVEN), label="woven")
    change = Change(head=f"h{attempt}", base="b", tree=f"t{attempt}", files=1)
    return rf.CompositeWoven(planned=planned, attempt=attempt, change=change, **more)


def test_a_composite_stands_among_the_candidates_and_can_be_chosen_and_landed():
    told = a_run(a_step("a", 2, policy=Policy(PolicyKind.SETTLED)))
    told.does("a1", "a2")
    told.feed(woven())
    composite = WorkerId("a", WOVEN)
    assert told.state.workers[composite].phase is Phase.REVIEWING
    assert composite in candidates(told.state, told.state.plan.step("a"))
    told.feed(f.Chosen(worker=composite, attempt=1))
    assert [told.phase("a1"), told.phase("a2")] == [Phase.DISCARDED, Phase.DISCARDED]
    told.feed(f.Approved(worker=composite, attempt=1))
    (land,) = [act for act in told.acts if isinstance(act, e.PerformLanding)]
    assert (land.worker, land.attempt) == (composite, 1)


def test_a_composite_woven_anew_takes_the_place_of_the_old_one():
    told = a_run(a_step("a", 2, policy=Policy(PolicyKind.SETTLED)))
    told.does("a1", "a2")
    told.feed(woven())
    told.feed(woven(2, branch="x"))
    composite = told.state.workers[WorkerId("a", WOVEN)]
    assert (composite.attempt.number, composite.change.head, composite.begun.branch) == (
        2,
        "h2",
        "x",
    )
    assert len(told.state.plan.step("a").workers) == 3
    told.feed(f.Approved(worker=composite.id, attempt=2))
    told.feed(woven(3))
    assert told.state.workers[composite.id].change.head == "h2"


def test_a_resolution_whose_check_failed_is_decided_anew_and_not_landed_again():
    told = a_run(a_step("a", check="true"))
    told.does("a")
    told.tell(f.Approved, "a")
    told.tell(f.ConflictsFound, "a", paths=("x",))
    told.tell(f.Resolved, "a", tree="t", onto="c")
    told.tell(f.CheckFailed, "a", check=failed("t"))
    assert told.phase("a") is Phase.REVIEWING
    told.tell(f.Approved, "a")
    (land,) = told.acts
    assert isinstance(land, e.PerformLanding)
    assert land.resolution is None


def test_a_change_that_loses_hunks_is_another_one_until_all_are_back():
    told = a_run(a_step("a", check="true"))
    told.does("a")
    passed = CheckResult(command="true", passed=True, tree="t")
    whole = Change(head="h", base="b", tree="t", files=2)
    told.tell(f.HunksLeftOut, "a", change=whole)
    told.tell(f.Rechecked, "a", check=passed)
    told.tell(f.ApprovalNoted, "a")
    less = replace(whole, head="l", tree="l", files=1)
    told.tell(f.HunksLeftOut, "a", change=less, hunks=("k",))
    w = told.worker("a")
    assert (w.change, w.review.whole, w.review.left_out, w.review.is_check_stale) == (
        less,
        whole,
        ("k",),
        True,
    )
    assert Badge.APPROVED not in w.badges
    assert told.events == [
        ReviewWanted(worker=str(who("a")), attempt=1, files=1, insertions=0, deletions=0)
    ]
    told.tell(f.HunksLeftOut, "a", change=replace(less, head="m", tree="m"), hunks=("k", "m"))
    assert told.worker("a").review.whole == whole
    told.tell(f.HunksLeftOut, "a", change=whole)
    w = told.worker("a")
    assert (w.change, w.review.whole, w.review.left_out, w.review.is_check_stale) == (
        whole,
        None,
        (),
        False,
    )


def test_hunks_left_out_too_late_or_before_a_retry_change_nothing_more():
    told = a_run(a_step("a"))
    told.does("a")
    less = Change(head="l", base="b", tree="l", files=1)
    told.tell(f.HunksLeftOut, "a", change=less, hunks=("k",))
    told.tell(f.Approved, "a")
    before = told.worker("a")
    told.tell(f.HunksLeftOut, "a", change=replace(less, head="x"), hunks=("k", "l"))
    assert told.worker("a") == before
    told.tell(f.LandRefused, "a", reason="moved")
    told.tell(f.RetryRequested, "a")
    w = told.worker("a")
    assert (w.review.whole, w.review.left_out, w.review.is_check_stale) == (None, (), False)


LESS = replace(CHANGE, head="l", tree="l")


@pytest.mark.parametrize(
    ("fact", "more"),
    [
        (f.LandRefused, {"reason": "dirty"}),
        (f.CheckFailed, {"check": failed("t")}),
        (f.LandingUndone, {"target": "main", "new": "1"}),
    ],
)
@pytest.mark.parametrize("hunks", [("k",), ()])
def test_a_change_that_a_human_took_in_hand_lands_only_by_a_human(
    fact: type[Any], more: dict[str, Any], hunks: tuple[str, ...]
):
    told = a_run(a_step("a"), auto_merge=True)
    told.does("a")
    if fact is f.LandingUndone:
        told.landed("a")
    told.tell(fact, "a", **more)
    told.tell(f.HunksLeftOut, "a", change=LESS, hunks=hunks)
    assert told.phase("a") is Phase.REVIEWING
    told.tell(f.Approved, "a")
    told.landed("a")
    assert told.phase("a") is Phase.LANDED
    assert not told.worker("a").landing.is_undone


def test_a_candidate_without_some_hunks_lands_by_itself_once_it_is_chosen():
    told = a_run(a_step("a", 2), auto_merge=True)
    told.does("a1", "a2")
    told.tell(f.HunksLeftOut, "a2", change=LESS, hunks=("k",))
    told.tell(f.Chosen, "a2")
    assert told.phase("a2") is Phase.LANDING

"""What resolving a conflict and checking again come to: facts in, effects and events out."""

from engine.core import effects as e
from engine.core import facts as f
from engine.phases import Phase
from engine.results import Badge, CheckResult
from tests.support.core_runs import a_run
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
    assert isinstance(land, e.Land)
    assert (land.resolved, land.resolved_onto) == ("t", "c")


def test_a_check_run_again_is_kept_and_told_and_moves_nobody():
    told = a_run(a_step("a", check="true"))
    told.does("a")
    assert told.phase("a") is Phase.REVIEWING
    told.tell(f.Rechecked, "a", check=failed("t"))
    assert told.phase("a") is Phase.REVIEWING
    assert told.worker("a").check == failed("t")
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

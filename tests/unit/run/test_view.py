"""Test what a console is shown of attempts: their number never passes how many there may be."""

from engine.core import facts as f
from engine.plan.model import RetryMode, RetryRule
from engine.run.view import view_of
from tests.support.core_runs import Told, a_run
from tests.support.plans import a_step


def shown(told: Told) -> tuple[int, int]:
    worker = view_of(told.state, {}).worker("a/worker_1")
    return worker.attempt, worker.attempts_allowed


def fail(told: Told) -> None:
    told.ended("a", ok=False, error="it broke")
    told.collected("a", None)


def test_a_humans_retry_counts_its_own_attempts_on_top():
    told = a_run(a_step("a", 1, retry=RetryRule(attempts=1)))
    told.ready("a")
    assert shown(told) == (1, 1)
    fail(told)
    assert shown(told) == (1, 1)
    told.feed(f.RetryRequested(**told.about("a"), mode=RetryMode.FRESH))
    told.ready("a")
    assert shown(told) == (2, 2)

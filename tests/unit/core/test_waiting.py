"""A worker waits, not by its agent's fault, for a login, its vendor, a network after sleep."""

import pytest

from engine.core import effects as e
from engine.core import facts as f
from engine.core.entry import current_effects
from engine.messages.events import RunWaiting
from engine.messages.results import Badge
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice, RetryMode
from tests.support.core_runs import Told, a_run
from tests.support.plans import a_step


@pytest.fixture
def told() -> Told:
    run = a_run(a_step("a"), a_step("b"))
    run.ready("a", "b")
    return run


def lose_login(told: Told, name: str) -> None:
    told.ended(name, ok=False, error="please log in", needs_login=True, session="s")
    told.collected(name)


def test_a_worker_whose_login_ran_out_waits_with_a_badge(told: Told):
    lose_login(told, "a")
    worker = told.worker("a")
    assert (worker.phase, worker.history.tries, worker.error) == (
        Phase.BACKING_OFF,
        0,
        "please log in",
    )
    assert worker.badges == {Badge.NEEDS_LOGIN}
    assert worker.next.mode is RetryMode.RESUME
    (timer,) = told.acts
    assert isinstance(timer, e.StartTimer)
    assert timer.is_for_login
    assert timer in current_effects(told.state)
    assert told.phase("b") is Phase.RUNNING


def test_it_goes_on_in_its_session_when_the_login_is_there_again(told: Told):
    lose_login(told, "a")
    told.wait_over("a")
    (prepare,) = told.acts
    assert isinstance(prepare, e.PrepareWorkspace)
    assert (prepare.mode, prepare.previous) == (RetryMode.RESUME, 1)
    worker = told.worker("a")
    assert (worker.badges, worker.error) == (frozenset(), None)


def test_a_run_of_which_only_logins_are_missing_waits_for_a_human(told: Told):
    lose_login(told, "a")
    assert not [event for event in told.events if isinstance(event, RunWaiting)]
    lose_login(told, "b")
    (waiting,) = [event for event in told.events if isinstance(event, RunWaiting)]
    assert waiting.report.waits_for == (
        "log in for a/worker_1: please log in",
        "log in for b/worker_1: please log in",
    )


def test_a_human_may_retry_or_stop_who_waits_for_a_login(told: Told):
    lose_login(told, "a")
    told.tell(f.RetryRequested, "a", mode=RetryMode.RESUME)
    assert (told.phase("a"), told.worker("a").badges) == (Phase.PREPARING, frozenset())
    lose_login(told, "b")
    told.stop("b")
    assert told.phase("b") is Phase.CANCELLED


def test_a_stop_is_a_stop_whatever_else_was_missing(told: Told):
    told.stop("a")
    told.ended("a", ok=False, needs_login=True, cause=StopCause.USER)
    told.collected("a")
    assert told.phase("a") is Phase.CANCELLED


def test_a_network_lost_in_sleep_costs_no_try(told: Told):
    told.ended("a", ok=False, error="fetch failed", is_asleep=True, session="s")
    told.collected("a")
    worker = told.worker("a")
    assert (worker.phase, worker.history.tries) == (Phase.BACKING_OFF, 0)
    assert worker.next.not_before is not None
    assert worker.next.not_before > told.at
    assert worker.next.mode is RetryMode.RESUME


def test_a_network_lost_awake_is_a_failure(told: Told):
    told.ended("a", ok=False, error="fetch failed")
    told.collected("a")
    assert (told.phase("a"), told.worker("a").history.tries) == (Phase.FAILED, 1)


def test_a_limit_holds_every_agent_of_its_vendor_by_whatever_name():
    told = a_run(a_step("a"), a_step("b"), a_step("c"), max_concurrent_workers=1)
    for name, adapter in {"a": "claude", "b": "claude-acp", "c": "codex"}.items():
        (planned,) = told.state.plan.step(name).workers
        object.__setattr__(planned, "agent", AgentChoice(name=name, adapter=adapter))
    told.ready("a")
    told.ended("a", ok=False, retry_at=told.at + 60)
    told.collected("a")
    assert told.phases("a", "b", "c") == [Phase.BACKING_OFF, Phase.BACKING_OFF, Phase.PREPARING]

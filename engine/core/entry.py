"""The one entry effect of each phase: issued on entering it, and again after a recovery."""

from collections.abc import Callable, Mapping

from engine.core.effects import (
    Collect,
    EntryEffect,
    PerformLanding,
    PrepareWorkspace,
    ReleaseWorkspace,
    RunCheck,
    StartAgent,
    StartTimer,
    StopActivity,
)
from engine.core.state import RunState, Worker
from engine.messages.commands import LandWish
from engine.messages.results import Badge
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode


def entry_effect(state: RunState, worker: Worker) -> EntryEffect | None:
    """Return the effect that a worker's phase asks for; None while it only waits."""
    build = _ENTRY.get(worker.phase)
    if build is not None:
        return build(state, worker)
    if worker.phase.is_settled and worker.attempt.number:
        return ReleaseWorkspace(**worker.who)
    return None


def _prepare(_: RunState, worker: Worker) -> PrepareWorkspace:
    resolution = worker.review.resolution
    return PrepareWorkspace(
        **worker.who,
        bases=worker.attempt.bases,
        mode=worker.next.mode,
        previous=worker.next.previous,
        resolved_base=resolution.tree if resolution else None,
        start=worker.next.start if worker.next.mode is RetryMode.FRESH else None,
    )


def _stop(_: RunState, worker: Worker) -> StopActivity:
    stop = worker.attempt.stop
    return StopActivity(
        **worker.who,
        cause=stop.cause if stop else StopCause.USER,
        is_kill=stop is not None and stop.is_kill,
    )


def _land(_: RunState, worker: Worker) -> PerformLanding:
    return PerformLanding(
        **worker.who,
        wish=worker.landing.wish or LandWish(),
        resolution=worker.review.resolution,
        prepared=worker.landing.prepared,
    )


def _timer(state: RunState, worker: Worker) -> StartTimer:
    until = state.now if worker.next.not_before is None else worker.next.not_before
    is_for_login = Badge.NEEDS_LOGIN in worker.badges
    return StartTimer(**worker.who, until=until, is_for_login=is_for_login)


_ENTRY: Mapping[Phase, Callable[[RunState, Worker], EntryEffect]] = {
    Phase.PREPARING: _prepare,
    Phase.RUNNING: lambda _, w: StartAgent(**w.who),
    Phase.STOPPING: _stop,
    Phase.COLLECTING: lambda _, w: Collect(**w.who),
    Phase.CHECKING: lambda _, w: RunCheck(**w.who),
    Phase.LANDING: _land,
    Phase.BACKING_OFF: _timer,
}


def current_effects(state: RunState) -> list[EntryEffect]:
    """Return every worker's entry effect, in plan order: what a recovered engine does next."""
    effects = (
        entry_effect(state, state.workers[planned.id])
        for step in state.plan.steps
        for planned in step.workers
    )
    return [effect for effect in effects if effect is not None]

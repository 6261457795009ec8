"""The one entry effect of each phase: issued on entering it, and again after a recovery."""

from collections.abc import Callable, Mapping

from engine.core.effects import (
    Collect,
    EntryEffect,
    Land,
    PrepareWorkspace,
    ReleaseWorkspace,
    RunCheck,
    StartAgent,
    StartTimer,
    StopActivity,
)
from engine.core.state import RunState, Worker
from engine.messages.results import Badge
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode


def entry_effect(state: RunState, worker: Worker) -> EntryEffect | None:
    """What has to be done because a worker stands where it stands; None while it only waits."""
    build = _ENTRY.get(worker.phase)
    if build is not None:
        return build(state, worker)
    if worker.phase.is_settled and worker.attempt:
        return ReleaseWorkspace(worker=worker.id, attempt=worker.attempt)
    return None


def _prepare(_: RunState, worker: Worker) -> PrepareWorkspace:
    return PrepareWorkspace(
        worker=worker.id,
        attempt=worker.attempt,
        bases=worker.bases,
        mode=worker.next.mode,
        previous=worker.next.previous,
        resolved_base=worker.resolved,
        start=worker.next.start if worker.next.mode is RetryMode.FRESH else None,
    )


def _stop(_: RunState, worker: Worker) -> StopActivity:
    return StopActivity(
        worker=worker.id,
        attempt=worker.attempt,
        cause=worker.stop.cause if worker.stop else StopCause.USER,
        is_kill=worker.stop is not None and worker.stop.is_kill,
    )


def _land(_: RunState, worker: Worker) -> Land:
    wish = worker.land
    return Land(
        worker=worker.id,
        attempt=worker.attempt,
        to=wish.to if wish else None,
        style=wish.style if wish else None,
        is_despite_check=wish is not None and wish.is_despite_check,
        resolved=worker.resolved,
        resolved_onto=worker.resolved_onto,
        prepared=worker.prepared,
        edits=wish.edits if wish else "refuse",
        result=wish.result if wish else None,
    )


def _timer(state: RunState, worker: Worker) -> StartTimer:
    until = state.now if worker.not_before is None else worker.not_before
    is_for_login = Badge.NEEDS_LOGIN in worker.badges
    return StartTimer(
        worker=worker.id, attempt=worker.attempt, until=until, is_for_login=is_for_login
    )


_ENTRY: Mapping[Phase, Callable[[RunState, Worker], EntryEffect]] = {
    Phase.PREPARING: _prepare,
    Phase.RUNNING: lambda _, w: StartAgent(worker=w.id, attempt=w.attempt),
    Phase.STOPPING: _stop,
    Phase.COLLECTING: lambda _, w: Collect(worker=w.id, attempt=w.attempt),
    Phase.CHECKING: lambda _, w: RunCheck(worker=w.id, attempt=w.attempt),
    Phase.LANDING: _land,
    Phase.BACKING_OFF: _timer,
}


def current_effects(state: RunState) -> list[EntryEffect]:
    """The entry effect of every worker: what a recovered engine has to do next, in plan order."""
    effects = (
        entry_effect(state, state.workers[planned.id])
        for step in state.plan.steps
        for planned in step.workers
    )
    return [effect for effect in effects if effect is not None]

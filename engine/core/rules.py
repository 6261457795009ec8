"""The joint rules: what follows for a run as a whole, applied after each fact until nothing moves.

Each rule looks at the state and moves some workers, or nothing. They are tried in a fixed order,
from the first again after each that moved something; the tables of `phase` make this end.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace

from engine.core.effects import PrepareWorkspace
from engine.core.entry import entry_effect
from engine.core.lifecycle import is_mergeable
from engine.core.outcome import (
    LOST,
    MAY_BE_RETRIED,
    bases_for,
    candidates,
    chosen_of,
    is_impossible,
    is_to_be_retried,
    may_be_mended,
    must_land_first,
    step_outcome,
)
from engine.core.phase import STOPPED_BY_POLICY_WHILE_COLLECTING
from engine.core.state import Bases, RunState, Worker
from engine.core.stopping import stop
from engine.core.turn import CoreTurn, requeued
from engine.ids import WorkerId
from engine.messages.commands import LandWish
from engine.messages.results import Badge, Outcome
from engine.phases import HOLDING, SETTLED, Phase, StopCause
from engine.plan.model import PlannedStep, RetryMode, RetryRule

_HOLDS_BASE = frozenset(
    {Phase.PREPARING, Phase.RUNNING, Phase.CHECKING, Phase.COLLECTING, Phase.STOPPING}
)
_UNSETTLED = frozenset(Phase) - SETTLED
_QUEUED = (Phase.QUEUED,)
_WITHOUT_BASE = (Phase.WAITING, Phase.SKIPPED, Phase.CANCELLED)
_STANDS_ON_BASE = frozenset({Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDED, Phase.FINISHED})


def retry_failed(turn: CoreTurn) -> None:
    """Follow rule 1: try a failed attempt with attempts left again, after a wait."""
    for w in turn.state.crew.standing(MAY_BE_RETRIED):
        if w.cause is StopCause.BASE_GONE:
            continue
        if not is_to_be_retried(turn.state, w):
            if w.phase is Phase.FAILED and not w.history.is_given_up:
                turn.change(replace(w, history=replace(w.history, is_given_up=True)))
        elif w.cause in LOST:
            _begin_again(turn, w)
        else:
            _try_again(turn, w)


def _begin_again(turn: CoreTurn, w: Worker) -> None:
    """Begin a lost attempt again at once, where it stood, and count no try.

    Its session is resumed; an agent without one is shown what it had done before. A command has
    nothing to remember, and half of it done twice may be worse than all of it done again.
    """
    now = turn.state.now
    # An engine that was told to end is no reason to doubt the worker, however often it happens.
    losses = () if w.cause is StopCause.SHUTDOWN else (now,)
    is_agent = turn.state.plan.step(w.id.step).run is None
    mode = RetryMode.RESUME if is_agent else RetryMode.FRESH
    again = requeued(w, mode=mode, not_before=now)
    history = replace(again.history, losses=(*again.history.losses, *losses))
    turn.rule(replace(again, history=history), Phase.BACKING_OFF)


def _try_again(turn: CoreTurn, w: Worker) -> None:
    rule = turn.state.plan.step(w.id.step).retry
    own = turn.state.steps[w.id.step]
    turn.change_step(w.id.step, replace(own, restarts=(*own.restarts, turn.state.now)))
    failure = (w.error or (w.cause or "")) if rule.has_feedback else ""
    until = turn.state.now + delay_s(rule, w, seed=turn.state.run)
    again = requeued(w, mode=rule.mode, failure=failure, not_before=until)
    turn.rule(again, Phase.BACKING_OFF)


def delay_s(rule: RetryRule, w: Worker, *, seed: str) -> float:
    """Return the wait before the next attempt: it grows by the rule, with a tenth of jitter."""
    n = max(1, w.history.tries)
    wait = rule.delay_s * rule.backoff.growth(n)
    spread = zlib.crc32(f"{seed}/{w.id}@{w.attempt.number}".encode()) / 0xFFFFFFFF
    return min(wait, rule.longest_s) * (0.9 + 0.2 * spread)


def apply_policies(turn: CoreTurn) -> None:
    """Follow rule 2: fail-fast stops the rest; enough successes make the rest needless."""
    for step in turn.state.plan.steps:
        own = turn.state.steps[step.name]
        is_open = step.policy.fails_fast and not own.has_failed_fast
        # A failure of earlier counts no more: a human who retries one worker of several that
        # failed has already looked at the others.
        if is_open and own.chosen is None and _has_failed_now(turn, step):
            turn.change_step(step.name, replace(own, has_failed_fast=True))
        if turn.state.steps[step.name].has_failed_fast:
            _stop_all(turn, step, StopCause.FAIL_FAST)
        elif step.policy.is_won(_successes(turn, step), len(step.workers)):
            _stop_all(turn, step, StopCause.RACE_LOST)


def _successes(turn: CoreTurn, step: PlannedStep) -> int:
    return turn.state.crew.outcomes(step.name).get(Outcome.SUCCESS, 0)


def _has_failed_now(turn: CoreTurn, step: PlannedStep) -> bool:
    moved = (turn.worker(worker) for worker in turn.moved if worker.step == step.name)
    return any(w.phase is Phase.FAILED and not is_to_be_retried(turn.state, w) for w in moved)


def _stop_all(turn: CoreTurn, step: PlannedStep, cause: StopCause) -> None:
    for w in turn.state.crew.standing(STOPPED_BY_POLICY_WHILE_COLLECTING, step.name):
        if w.history.is_by_hand and cause is StopCause.FAIL_FAST:
            continue  # the human has seen that others failed
        if w.attempt.stop is None:
            stop(turn, turn.worker(w.id), cause, is_kill=False, move=turn.rule)


def settle_choices(turn: CoreTurn) -> None:
    """Follow rule 3: a choice, by a human or by policy, stops or discards all siblings."""
    for step in turn.state.plan.steps:
        if not step.has_candidates:
            continue
        own = turn.state.steps[step.name]
        if own.chosen is None and step.choose.is_automatic:
            chosen = chosen_of(turn.state, step)
            if chosen is not None and len(candidates(turn.state, step)) > 1:
                own = turn.change_step(step.name, replace(own, chosen=chosen))
        if own.chosen is not None:
            _drop_siblings(turn, step)


def _drop_siblings(turn: CoreTurn, step: PlannedStep) -> None:
    chosen = turn.state.steps[step.name].chosen
    for w in turn.state.workers_of(step.name):
        if w.id == chosen:
            continue
        if w.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            outcome = Outcome.CANCELLED if w.outcome is Outcome.PENDING else w.outcome
            after = replace(w, cause=StopCause.NOT_CHOSEN, outcome=outcome)
            turn.rule(after, Phase.DISCARDED)
        elif w.phase in STOPPED_BY_POLICY_WHILE_COLLECTING and w.attempt.stop is None:
            stop(turn, w, StopCause.NOT_CHOSEN, is_kill=False, move=turn.rule)


def follow_upstream(turn: CoreTurn) -> None:
    """Follow rules 4 to 6: what its bases have become starts, stops or badges a worker."""
    for step in turn.state.plan.steps:
        # What depends on nothing keeps its bases: only where it stands can ask for a move.
        phases = Phase if step.dependencies else _WITHOUT_BASE
        workers = turn.state.crew.standing(phases, step.name)
        if not workers:
            continue
        bases = bases_for(turn.state, step)
        impossible = is_impossible(turn.state, step)
        for w in workers:
            _follow(turn, w, bases=bases, impossible=impossible)


def _follow(turn: CoreTurn, w: Worker, *, bases: Bases | None, impossible: bool) -> None:
    if w.phase is Phase.WAITING and impossible:
        why = "a step it depends on has no change to build on"
        turn.rule(replace(w, error=why), Phase.SKIPPED)
    elif w.phase is Phase.WAITING and bases is not None and turn.state.stop is None:
        turn.rule(w, Phase.QUEUED)
    elif (w.phase is Phase.SKIPPED and not impossible and turn.state.stop is None) or (
        w.phase is Phase.QUEUED and bases is None
    ):
        turn.rule(replace(w, error=None, cause=None), Phase.WAITING)
    elif w.phase is Phase.CANCELLED and w.cause is StopCause.BASE_GONE and turn.state.stop is None:
        turn.rule(requeued(w, mode=RetryMode.FRESH), Phase.WAITING)
    elif w.phase in _HOLDS_BASE and w.attempt.bases != bases and w.attempt.stop is None:
        stop(turn, w, StopCause.BASE_GONE, is_kill=False, move=turn.rule)
    elif w.phase in _STANDS_ON_BASE and bases is not None:
        _badge_base(turn, w, is_outdated=w.attempt.bases != bases)


def _badge_base(turn: CoreTurn, w: Worker, *, is_outdated: bool) -> None:
    if is_outdated != (Badge.BASE_OUTDATED in w.badges):
        turn.change(replace(w, badges=w.badges ^ {Badge.BASE_OUTDATED}))


def rearm_failed_fast(turn: CoreTurn) -> None:
    """Follow rule 6 within a step: what fail-fast stopped begins again once all is mended.

    Not earlier: a sibling that fails again must not stop what a human retries, and nobody pays for
    siblings while it is open whether the retry helps.
    """
    for step in turn.state.plan.steps:
        if turn.state.stop is not None:
            continue
        own = turn.state.steps[step.name]
        if _is_mended(turn, step):
            own = turn.change_step(step.name, replace(own, has_failed_fast=False))
        if own.has_failed_fast:
            continue
        for w in turn.state.crew.standing((Phase.CANCELLED,), step.name):
            if w.cause is StopCause.FAIL_FAST:
                again = requeued(w, mode=RetryMode.FRESH)
                history = replace(again.history, is_by_hand=False)
                turn.rule(replace(again, history=history), Phase.WAITING)


def _is_mended(turn: CoreTurn, step: PlannedStep) -> bool:
    """Return whether all that failed has been retried by a human, and has succeeded."""
    came_to = turn.state.crew.outcomes(step.name)
    return not came_to.get(Outcome.PENDING, 0) and may_be_mended(turn.state, step)


def hold_logins(turn: CoreTurn) -> None:
    """Hold all workers of a login that met a limit, not only the one that met it."""
    now = turn.state.now
    holds = {login: hold for login, hold in turn.state.holds.items() if hold.until > now}
    for w in turn.state.crew.standing(_QUEUED) if holds else ():
        agent = turn.state.agent_of(w.id)
        hold = holds.get(agent.login) if agent else None
        if hold is None:
            continue
        until = hold.until if hold.cause is None else None
        after = replace(
            w,
            attempt=replace(w.attempt, rate_limited_until=until),
            next=replace(w.next, not_before=hold.until),
            cause=hold.cause,
            error=hold.reason or None,
        )
        turn.rule(after, Phase.BACKING_OFF)


def dispatch(turn: CoreTurn) -> None:
    """Follow rule 7: queued workers begin while slots allow, in plan order."""
    if turn.state.is_paused or turn.state.stop is not None or turn.state.started_at is None:
        return
    free = turn.state.cap - turn.state.slots_in_use
    for step in turn.state.plan.steps:
        if free <= 0:
            return
        room = min(free, _room(turn, step))
        if room <= 0 or not turn.state.crew.count(_QUEUED, step.name):
            continue
        bases = bases_for(turn.state, step)
        if bases is None:
            continue
        for w in turn.state.crew.standing(_QUEUED, step.name, at_most=room):
            turn.rule(_beginning(w, bases), Phase.PREPARING)
            free -= 1


def _beginning(w: Worker, bases: Bases) -> Worker:
    """Begin a new attempt; or the same one, if a human has just resolved the base it still has."""
    old, told = w.attempt, w.next
    if w.review.resolution is not None and old.bases == bases:
        return w
    if told.mode is RetryMode.RESUME and old.bases != bases:  # its tree stands on what is no more
        told = replace(told, mode=RetryMode.FRESH, start=None)
    attempt = replace(old, number=old.number + 1, bases=bases, said=())
    review = replace(w.review, resolution=None)
    return replace(w, attempt=attempt, review=review, next=told)


def foreseen(state: RunState, worker: WorkerId) -> tuple[RunState, PrepareWorkspace] | None:
    """Return the run as if a queued worker had its slot already, and what it then wants prepared.

    None if it could not begin now. None also for a second attempt: the branch of its worker still
    stands on the work of the first.
    """
    w = state.workers[worker]
    may_begin = not state.is_paused and state.stop is None and state.started_at is not None
    bases = bases_for(state, state.plan.step(worker.step)) if may_begin else None
    if bases is None or w.phase is not Phase.QUEUED or w.attempt.number:
        return None
    after = replace(_beginning(w, bases), phase=Phase.PREPARING)
    effect = entry_effect(state, after)
    if not isinstance(effect, PrepareWorkspace) or effect.mode is not RetryMode.FRESH:
        return None
    crew = state.crew.copy()
    crew.put(after)
    return replace(state, workers=crew), effect


def _room(turn: CoreTurn, step: PlannedStep) -> int:
    if step.max_parallel is None:
        return turn.state.cap
    return step.max_parallel - turn.state.crew.count(HOLDING, step.name)


def land_by_itself(turn: CoreTurn) -> None:
    """Follow rule 8: with auto_merge, reviewed-by-check changes land in plan order."""
    if not turn.state.plan.runtime.auto_merge or turn.state.stop is not None:
        return
    for step in turn.state.plan.steps:
        for w in turn.state.crew.standing(_UNSETTLED, step.name):
            if not _may_land_by_itself(turn, step, w):
                return
            landing = replace(w.landing, wish=LandWish(), prepared=None)
            turn.rule(replace(w, landing=landing), Phase.LANDING)
            return


def _may_land_by_itself(turn: CoreTurn, step: PlannedStep, w: Worker) -> bool:
    held = {Badge.CHECK_FAILED, Badge.LAND_REFUSED, Badge.VIOLATION, Badge.BASE_OUTDATED}
    return (
        w.phase is Phase.REVIEWING
        and is_mergeable(turn.state, w)
        and not (w.badges & held)
        and not w.landing.is_by_hand
        and step_outcome(turn.state, step) is Outcome.SUCCESS
        and (not step.has_candidates or chosen_of(turn.state, step) == w.id)
        and not must_land_first(turn.state, w.id)
    )


RULES: tuple[Callable[[CoreTurn], None], ...] = (
    retry_failed,
    apply_policies,
    settle_choices,
    follow_upstream,
    rearm_failed_fast,
    hold_logins,
    dispatch,
    land_by_itself,
)

"""What stops and retries do, asked by a human or wanted by a rule."""

from dataclasses import replace
from typing import Protocol

from engine.core import facts as f
from engine.core.effects import StopActivity
from engine.core.phase import FINDS_ACTIVITY
from engine.core.state import StepState, Worker
from engine.core.turn import Turn, stop_fields
from engine.ids import WorkerId
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause


class Move(Protocol):
    """`Turn.tell` for a fact, `Turn.rule` for a rule."""

    def __call__(self, worker: WorkerId, to: Phase, **fields: object) -> None:
        """Move a worker."""


def stop_requested(turn: Turn, w: Worker, fact: f.StopRequested) -> None:
    """Never illegal, wherever the worker stands."""
    stop(turn, w, fact.cause, is_kill=fact.is_kill, move=turn.tell)


def stop(turn: Turn, w: Worker, cause: StopCause, *, is_kill: bool, move: Move) -> None:
    """Stop a worker wherever it stands; one that has come to rest stays as it is."""
    fields = stop_fields(w, cause, is_kill=is_kill)
    if w.phase.is_settled:
        return
    if w.phase in FINDS_ACTIVITY:
        move(w.id, Phase.STOPPING, **fields, questions=(), badges=w.badges - {Badge.ASKS})
    elif w.phase is Phase.STOPPING:
        turn.change(w.id, **fields)
        if is_kill and not (w.stop and w.stop.is_kill):
            turn.moved[w.id] = None
    elif w.phase is Phase.COLLECTING:
        turn.change(w.id, **fields)
    elif w.phase is Phase.LANDING:
        _stop_landing(turn, w, cause, move)
    else:
        move(w.id, Phase.CANCELLED, cause=cause)


def _stop_landing(turn: Turn, w: Worker, cause: StopCause, move: Move) -> None:
    if w.prepared is not None:
        return
    badges = (w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED}
    move(w.id, Phase.REVIEWING, land=None, badges=badges, error="its landing was stopped")
    turn.effects.append(StopActivity(worker=w.id, attempt=w.attempt, cause=cause, is_kill=False))


def retry_requested(turn: Turn, w: Worker, fact: f.RetryRequested) -> None:
    """A human wants another attempt, and the count of tries begins anew.

    Who wants one of a login that its vendor refuses knows more than we do: it is tried.
    """
    agent = fact.agent or turn.state.agent_of(w.id)
    if agent is not None and (hold := turn.state.holds.get(agent.login)) and hold.cause is None:
        turn.hold(agent.login, None)
    lift_stop(turn)
    if w.phase is Phase.SKIPPED:
        turn.tell(w.id, Phase.WAITING, cause=None, error=None, is_by_hand=fact.is_alone)
        return
    if turn.state.steps[w.id.step].has_failed_fast and not fact.is_alone:
        turn.change_step(w.id.step, has_failed_fast=False)
    own = turn.state.steps[w.id.step]
    if own.chosen == w.id or _is_choice_dead(turn, own):
        turn.change_step(w.id.step, chosen=None)
    # Who is asked something else is not told how it failed at what it was asked before, and nobody
    # is told why a landing was refused: that is about the target, not about the agent's work.
    is_its_own = fact.prompt is None and Badge.LAND_REFUSED not in w.badges
    failure = w.error or (w.cause or "") if is_its_own else ""
    fields = turn.requeue(
        w.id, mode=fact.mode, words=fact.feedback, failure=failure, prompt=fact.prompt
    )
    is_same = fact.agent is None or fact.agent == turn.state.agent_of(w.id)
    turn.tell(
        w.id,
        Phase.QUEUED,
        **{**fields, "next": replace(fields["next"], start=fact.start)},
        tries=0,
        is_by_hand=fact.is_alone,
        limits=fact.limits or w.limits,
        agent=fact.agent or w.agent,
        session=w.session if is_same else None,
    )


def lift_stop(turn: Turn) -> None:
    """Let a stopped run go on, with its whole time limit before it."""
    now = turn.state.now
    idle_since = None if turn.state.idle_since is None else now
    turn.state = replace(turn.state, stop=None, timed_since=now, idle_since=idle_since)


def _is_choice_dead(turn: Turn, own: StepState) -> bool:
    """The chosen candidate came to nothing: whoever is retried now may be chosen instead."""
    return own.chosen is not None and turn.worker(own.chosen).outcome in {
        Outcome.FAILED,
        Outcome.CANCELLED,
        Outcome.SKIPPED,
    }


def backoff_elapsed(turn: Turn, w: Worker, fact: f.BackoffElapsed) -> None:
    """The wait is over."""
    del fact
    badges = w.badges - {Badge.NEEDS_LOGIN}
    turn.tell(
        w.id,
        Phase.QUEUED,
        not_before=None,
        rate_limited_until=None,
        cause=None,
        error=None,
        badges=badges,
    )

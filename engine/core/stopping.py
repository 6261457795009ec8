"""Apply stops and retries, asked by a human or wanted by a rule."""

from collections.abc import Callable
from dataclasses import replace

from engine.core import facts as f
from engine.core.effects import StopActivity
from engine.core.phase import FINDS_ACTIVITY
from engine.core.state import StepState, Worker
from engine.core.turn import CoreTurn, requeued, under_stop
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause

Move = Callable[[Worker, Phase], None]
"""`CoreTurn.tell` for a fact, `CoreTurn.rule` for a rule."""


def stop_requested(turn: CoreTurn, w: Worker, fact: f.StopRequested) -> None:
    """Stop a worker wherever it stands: this is never illegal."""
    stop(turn, w, fact.cause, is_kill=fact.is_kill, move=turn.tell)


def stop(turn: CoreTurn, w: Worker, cause: StopCause, *, is_kill: bool, move: Move) -> None:
    """Stop a worker wherever it stands; one that has come to rest stays as it is."""
    if w.phase.is_settled:
        return
    attempt, known = under_stop(w, cause, is_kill=is_kill), w.attempt.stop
    if w.phase in FINDS_ACTIVITY:
        attempt = replace(attempt, questions=())
        move(replace(w, attempt=attempt, badges=w.badges - {Badge.ASKS}), Phase.STOPPING)
    elif w.phase is Phase.STOPPING:
        turn.change(replace(w, attempt=attempt))
        if is_kill and not (known and known.is_kill):
            turn.moved[w.id] = None
    elif w.phase is Phase.COLLECTING:
        turn.change(replace(w, attempt=attempt))
    elif w.phase is Phase.LANDING:
        _stop_landing(turn, w, cause, move)
    else:
        move(replace(w, cause=cause), Phase.CANCELLED)


def _stop_landing(turn: CoreTurn, w: Worker, cause: StopCause, move: Move) -> None:
    if w.landing.prepared is not None:
        return
    after = replace(
        w,
        landing=replace(w.landing, wish=None),
        badges=(w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED},
        error="its landing was stopped",
    )
    move(after, Phase.REVIEWING)
    turn.effects.append(StopActivity(**w.who, cause=cause, is_kill=False))


def retry_requested(turn: CoreTurn, w: Worker, fact: f.RetryRequested) -> None:
    """Queue another attempt for a human, and count the tries anew.

    Who wants one of a login that its vendor refuses knows more than we do: it is tried.
    """
    agent = fact.agent or turn.state.agent_of(w.id)
    if agent is not None and (hold := turn.state.holds.get(agent.login)) and hold.cause is None:
        turn.hold(agent.login, None)
    lift_stop(turn)
    history = replace(w.history, is_by_hand=fact.is_alone)
    if w.phase is Phase.SKIPPED:
        turn.tell(replace(w, cause=None, error=None, history=history), Phase.WAITING)
        return
    own = turn.state.steps[w.id.step]
    if own.has_failed_fast and not fact.is_alone:
        own = turn.change_step(w.id.step, replace(own, has_failed_fast=False))
    if own.chosen == w.id or _is_choice_dead(turn, own):
        turn.change_step(w.id.step, replace(own, chosen=None))
    # Who is asked something else is not told how it failed at what it was asked before, and nobody
    # is told why a landing was refused: that is about the target, not about the agent's work.
    is_its_own = fact.prompt is None and Badge.LAND_REFUSED not in w.badges
    failure = w.error or (w.cause or "") if is_its_own else ""
    again = requeued(w, mode=fact.mode, words=fact.feedback, failure=failure, prompt=fact.prompt)
    is_same = fact.agent is None or fact.agent == turn.state.agent_of(w.id)
    again = replace(
        again,
        next=replace(again.next, start=fact.start),
        history=replace(history, is_given_up=False, tries=0),
        limits=fact.limits or w.limits,
        agent=fact.agent or w.agent,
        session=w.session if is_same else replace(w.session, id=None),
    )
    turn.tell(again, Phase.QUEUED)


def lift_stop(turn: CoreTurn) -> None:
    """Let a stopped run go on, with its whole time limit before it."""
    now = turn.state.now
    idle_since = None if turn.state.idle_since is None else now
    turn.state = replace(turn.state, stop=None, timed_since=now, idle_since=idle_since)


def _is_choice_dead(turn: CoreTurn, own: StepState) -> bool:
    """Return whether the chosen candidate failed: who is retried may be chosen instead."""
    return own.chosen is not None and turn.worker(own.chosen).outcome in {
        Outcome.FAILED,
        Outcome.CANCELLED,
        Outcome.SKIPPED,
    }


def backoff_elapsed(turn: CoreTurn, w: Worker, _fact: f.BackoffElapsed) -> None:
    """Queue it: the wait is over."""
    after = replace(
        w,
        attempt=replace(w.attempt, rate_limited_until=None),
        next=replace(w.next, not_before=None),
        cause=None,
        error=None,
        badges=w.badges - {Badge.NEEDS_LOGIN},
    )
    turn.tell(after, Phase.QUEUED)

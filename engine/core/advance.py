"""One fact in, the next state and its effects out: the whole of the core behind one function."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from engine.core import dialogue, landing, lifecycle, stopping
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.effects import Effect
from engine.core.outcome import candidates, is_choice_due, told_outcome
from engine.core.phase import QUIET, STOPPED_BY_POLICY_WHILE_COLLECTING, TOLD
from engine.core.report import report, waits_for
from engine.core.rules import RULES
from engine.core.state import Hold, Reviewed, RunState, StepState, Stop, Worker
from engine.core.stopping import lift_stop, stop
from engine.core.turn import CoreTurn
from engine.errors import IllegalTransition, InvariantBroken
from engine.messages.events import (
    ChoiceWanted,
    Clamped,
    Commanded,
    RunFinished,
    RunStarted,
    RunWaiting,
    StepSettled,
)
from engine.messages.results import Badge, Outcome
from engine.phases import Phase
from engine.plan.model import PlannedWorker

_ROUNDS = 200
"""More rounds of rules than any run can need; reaching it means that two rules undo each other."""

_EVERY_PHASE = frozenset({"StopRequested"})


F = TypeVar("F", bound=f.WorkerFactBase)


def _hears(
    kind: type[F], hear: Callable[[CoreTurn, Worker, F], None]
) -> tuple[type[f.WorkerFactBase], Callable[..., None]]:
    """Pair a fact with the function that hears it, which is held to take this very fact."""
    return kind, hear


TELLERS: Mapping[type[f.WorkerFactBase], Callable[..., None]] = dict(
    (
        _hears(f.WorkspaceReady, lifecycle.workspace_ready),
        _hears(f.BaseConflicted, lifecycle.base_conflicted),
        _hears(f.PrepareFailed, lifecycle.prepare_failed),
        _hears(f.AttemptEnded, lifecycle.attempt_ended),
        _hears(f.ActivityEnded, lifecycle.activity_ended),
        _hears(f.Collected, lifecycle.collected),
        _hears(f.CheckPassed, lifecycle.check_passed),
        _hears(f.CheckFailed, lifecycle.check_failed),
        _hears(f.Approved, landing.approved),
        _hears(f.ApprovalNoted, landing.approval_noted),
        _hears(f.Rejected, landing.rejected),
        _hears(f.Chosen, landing.chosen),
        _hears(f.LandPrepared, landing.land_prepared),
        _hears(f.Landed, landing.landed),
        _hears(f.UndoRequested, landing.undo_requested),
        _hears(f.LandingUndone, landing.landing_undone),
        _hears(f.UndoRefused, landing.undo_refused),
        _hears(f.ConflictsFound, landing.conflicts_found),
        _hears(f.LandRefused, landing.land_refused),
        _hears(f.LandDelayed, landing.land_delayed),
        _hears(f.Resolved, landing.resolved),
        _hears(f.Rechecked, landing.rechecked),
        _hears(f.HunksLeftOut, landing.hunks_left_out),
        _hears(f.RetryRequested, stopping.retry_requested),
        _hears(f.BackoffElapsed, stopping.backoff_elapsed),
        _hears(f.StopRequested, stopping.stop_requested),
        _hears(f.AgentAsked, dialogue.agent_asked),
        _hears(f.HumanAnswered, dialogue.human_answered),
        _hears(f.QuestionWithdrawn, dialogue.question_withdrawn),
        _hears(f.AgentSteered, dialogue.agent_steered),
        _hears(f.SteerHeard, dialogue.steer_heard),
        _hears(f.SteerUnheard, dialogue.steer_unheard),
        _hears(f.AgentInterrupted, dialogue.agent_interrupted),
        _hears(f.RateLimitSeen, dialogue.rate_limit_seen),
        _hears(f.StallSeen, dialogue.stall_seen),
        _hears(f.ViolationSeen, dialogue.violation_seen),
        _hears(f.TreeSeen, dialogue.tree_seen),
        _hears(f.WorkerPaused, dialogue.worker_paused),
        _hears(f.WorkerResumed, dialogue.worker_resumed),
        _hears(f.LimitsSet, dialogue.limits_set),
    )
)
"""The function that applies each fact of a worker; a test holds the table complete."""


def advance(state: RunState, fact: f.Fact) -> tuple[RunState, list[Effect]]:
    """Return the state after a fact, and what is to be done because of it."""
    now = max(state.now, fact.at)
    turn = CoreTurn(replace(state, now=now), type(fact).__name__)
    if isinstance(fact, f.WorkerFact):
        _tell_worker(turn, fact)
    else:
        _tell_run(turn, fact)
    _apply_rules(turn)
    turn.settle()
    _tell_observers(turn)
    return turn.finish()


def _tell_worker(turn: CoreTurn, fact: f.WorkerFact) -> None:
    w = turn.state.workers.get(fact.worker)
    if w is None:
        raise IllegalTransition(f"{turn.fact} names {fact.worker}, which is not in this run")
    if fact.attempt != w.attempt.number or turn.fact in QUIET.get(w.phase, frozenset()):
        turn.drop()
        return
    if turn.fact in _MOVING and turn.fact not in TOLD[w.phase] and turn.fact not in _EVERY_PHASE:
        raise IllegalTransition(turn.story(w.id))
    TELLERS[type(fact)](turn, w, fact)


_MOVING = frozenset(name for told in TOLD.values() for name in told)
"""Facts that move workers: unlike badges and talk, they are illegal where no table lists them."""


def _tell_run(turn: CoreTurn, fact: f.RunFact) -> None:  # noqa: C901, PLR0912  one case for each fact
    match fact:
        case rf.RunBegan():
            turn.state = replace(turn.state, rules=fact.rules, rules_made=len(fact.rules))
            _begin(turn)
        case rf.RunStopRequested():
            _stop_run(turn, fact)
        case rf.AnswerRevoked():
            left = tuple(rule for rule in turn.state.rules if rule.number != fact.number)
            turn.state = replace(turn.state, rules=left)
        case rf.CapSet():
            cap = max(0, fact.cap)
            wanted = turn.state.wanted_cap if fact.is_share else cap
            turn.state = replace(turn.state, cap=cap, wanted_cap=wanted)
        case rf.LoginHeld():
            turn.hold(fact.login, Hold(until=fact.until, cause=fact.cause, reason=fact.reason))
        case rf.PauseRequested() | rf.ResumeRequested():
            _pause(turn, is_paused=isinstance(fact, rf.PauseRequested))
        case rf.StepAdded():
            _add_step(turn, fact)
        case rf.WorkerAdded():
            _join(turn, fact.planned, Worker(id=fact.planned.id))
        case rf.CompositeWoven():
            _weave(turn, fact)
        case rf.CommandTaken():
            turn.publish(Commanded(command=fact.command, worker=fact.worker, by=fact.by))


def _begin(turn: CoreTurn) -> None:
    state = turn.state
    turn.state = replace(state, started_at=state.now, timed_since=state.now)
    turn.publish(
        RunStarted(
            name=state.plan.name,
            steps=tuple(step.name for step in state.plan.steps),
            workers=tuple(str(p.id) for step in state.plan.steps for p in step.workers),
            cap=state.wanted_cap,
            notes=state.plan.notes,
        )
    )
    for clamp in state.plan.clamps:
        turn.publish(Clamped(clamp=clamp))


def _stop_run(turn: CoreTurn, fact: rf.RunStopRequested) -> None:
    turn.state = replace(turn.state, stop=Stop(cause=fact.cause, is_kill=fact.is_kill))
    for w in list(turn.state.workers.values()):
        stoppable = w.phase in STOPPED_BY_POLICY_WHILE_COLLECTING or w.phase is Phase.STOPPING
        if stoppable or (fact.stops_landings and w.phase is Phase.LANDING):
            stop(turn, w, fact.cause, is_kill=fact.is_kill, move=turn.rule)


def _pause(turn: CoreTurn, *, is_paused: bool) -> None:
    if turn.state.stop is not None and not is_paused:
        lift_stop(turn)
    turn.state = replace(turn.state, is_paused=is_paused)


def _add_step(turn: CoreTurn, fact: rf.StepAdded) -> None:
    state = turn.state
    plan = replace(state.plan, steps=(*state.plan.steps, fact.step))
    turn.state = replace(
        state,
        plan=plan,
        workers={**state.workers, **{p.id: Worker(id=p.id) for p in fact.step.workers}},
        steps={**state.steps, fact.step.name: StepState()},
    )


def _join(turn: CoreTurn, planned: PlannedWorker, born: Worker) -> None:
    """Let a worker join its step, after those that are there."""
    state = turn.state
    steps = tuple(
        replace(step, workers=(*step.workers, planned)) if step.name == born.id.step else step
        for step in state.plan.steps
    )
    turn.state = replace(
        state,
        plan=replace(state.plan, steps=steps),
        workers={**state.workers, born.id: born},
    )


def _weave(turn: CoreTurn, fact: rf.CompositeWoven) -> None:
    """Put the composite among the candidates, its check behind it; woven anew, it is another.

    It is born where finished work waits for review, and moves from there like any other.
    """
    worker, now = fact.planned.id, turn.state.now
    old = turn.state.workers.get(worker)
    if old is not None and old.phase is not Phase.REVIEWING:
        turn.drop()
        return
    if old is None:
        old = Worker(id=worker, phase=Phase.REVIEWING, phase_since=now, outcome=Outcome.SUCCESS)
        _join(turn, fact.planned, old)
    after = replace(
        old,
        attempt=replace(old.attempt, number=fact.attempt, bases=fact.bases),
        begun=replace(old.begun, at=fact.at, base=fact.change.base, branch=fact.branch),
        change=fact.change,
        review=Reviewed(check=fact.check),
        landing=replace(old.landing, wish=None),
        error=None,
        badges=old.badges - {Badge.APPROVED, Badge.CHECK_FAILED, Badge.LAND_REFUSED},
    )
    lifecycle.want_review(turn, turn.change(after))


def _apply_rules(turn: CoreTurn) -> None:
    if turn.state.started_at is None:  # that a run has started is the first thing told of it
        return
    for _ in range(_ROUNDS):
        before = turn.changes
        for rule in RULES:
            rule(turn)
            if turn.changes != before:
                break
        else:
            return
    raise InvariantBroken(f"{turn.state.run}: the joint rules do not settle after {turn.fact}")


def _tell_observers(turn: CoreTurn) -> None:
    for step in turn.state.plan.steps:
        own = turn.state.steps[step.name]
        outcome = told_outcome(turn.state, step)
        if outcome is not own.told:
            own = turn.change_step(step.name, replace(own, told=outcome))
            if outcome is not Outcome.PENDING:
                turn.publish(StepSettled(step=step.name, outcome=outcome))
        able = candidates(turn.state, step) if is_choice_due(turn.state, step) else ()
        if able != own.choice_told:
            turn.change_step(step.name, replace(own, choice_told=able))
            if able:
                turn.publish(ChoiceWanted(step=step.name, candidates=tuple(map(str, able))))
    _tell_end(turn)


def _tell_end(turn: CoreTurn) -> None:
    state = turn.state
    if state.started_at is None:
        return
    is_finished = state.crew.is_settled
    is_waiting = not is_finished and bool(waits_for(state))
    if is_finished and not state.is_finished_told:
        turn.state = replace(state, ended_at=state.now)
        turn.publish(RunFinished(report=report(turn.state)))
    elif is_waiting and not state.is_waiting_told:
        turn.publish(RunWaiting(report=report(state)))
    _count_time(turn, is_resting=is_finished or is_waiting)
    told = (state.is_finished_told, state.is_waiting_told)
    if told != (is_finished, is_waiting) or (state.ended_at is not None and not is_finished):
        turn.state = replace(
            turn.state,
            is_finished_told=is_finished,
            is_waiting_told=is_waiting,
            ended_at=turn.state.ended_at if is_finished else None,
        )


def _count_time(turn: CoreTurn, *, is_resting: bool) -> None:
    """Leave out of the run's time limit how long it rested."""
    state = turn.state
    if is_resting and state.idle_since is None:
        turn.state = replace(state, idle_since=state.now)
    elif not is_resting and state.idle_since is not None:
        rested = state.now - state.idle_since
        since = state.started_at if state.timed_since is None else state.timed_since
        turn.state = replace(state, idle_since=None, timed_since=(since or 0.0) + rested)


def is_idle(state: RunState) -> bool:
    """Return whether every worker has settled, or a human is awaited."""
    return state.is_finished_told or state.is_waiting_told

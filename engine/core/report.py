"""From a state to the report of a run, and to what it waits for."""

from engine.core.outcome import (
    chosen_of,
    ending,
    is_choice_due,
    is_despite_check,
    run_outcome,
    told_outcome,
    verdict,
)
from engine.core.state import RunState, Worker, usages_of
from engine.limits import summed
from engine.messages.results import Badge, RunReport, StepResult, WorkerResult
from engine.phases import HOLDING, Phase


def report(state: RunState) -> RunReport:
    """Return the report of the run so far, steps in plan order, workers in worker order."""
    steps = {
        step.name: StepResult(
            name=step.name,
            outcome=told_outcome(state, step),
            worker_results=tuple(
                worker_result(state, worker) for worker in state.workers_of(step.name)
            ),
            chosen=str(chosen) if (chosen := chosen_of(state, step)) is not None else None,
        )
        for step in state.plan.steps
    }
    return RunReport(
        run=state.run,
        name=state.plan.name,
        outcome=run_outcome(state),
        steps=steps,
        waits_for=waits_for(state),
        duration_s=round(max(0.0, state.now - (state.started_at or state.now)), 3),
    )


def worker_result(state: RunState, w: Worker) -> WorkerResult:
    """Return one worker's result as it stands."""
    usages, ended = usages_of(w), w.attempt.ended
    agent = state.agent_of(w.id)
    return WorkerResult(
        worker=str(w.id),
        phase=w.phase,
        cause=w.cause,
        outcome=w.outcome,
        attempts=w.attempt.number,
        label=state.label_of(w.id),
        agent=agent.name if agent else "",
        model=(agent and agent.model) or "",
        branch=w.begun.branch,
        commit=w.change.head if w.change else None,
        workspace=w.begun.workspace,
        usage=summed(usages),
        attempt_usages=usages,
        limits=w.begun.enforcement,
        limit_hit=ended.limit if ended else None,
        check=w.review.check,
        verdict=verdict(w),
        output=ended.text if ended else "",
        ending=ending(w),
        duration_s=round(w.history.worked_s, 3),
        error=w.error,
        is_despite_check=w.phase is Phase.LANDED and is_despite_check(state, w),
    )


def waits_for(state: RunState) -> tuple[str, ...]:
    """Say what a human has to do, once nothing goes on by itself; nothing while it does."""
    if _goes_on(state):
        return ()
    wants: list[str] = []
    for step in state.plan.steps:
        if is_choice_due(state, step):
            wants.append(f"choose between the candidates of {step.name}")
        wants.extend(_wants(w) for w in state.workers_of(step.name) if _wants(w))
    return tuple(wants)


def _goes_on(state: RunState) -> bool:
    crew = state.crew
    if crew.count((Phase.LANDING,)):
        return True
    if any(Badge.NEEDS_LOGIN not in w.badges for w in crew.standing((Phase.BACKING_OFF,))):
        return True
    if first := crew.standing(HOLDING, at_most=1):  # mostly it answers for thousands
        return not (
            first[0].attempt.questions and all(w.attempt.questions for w in crew.standing(HOLDING))
        )
    is_open = not state.is_paused and state.stop is None and state.cap > 0
    return is_open and bool(crew.count((Phase.QUEUED,)))


def _wants(w: Worker) -> str:
    if w.attempt.questions:
        return f"{w.id} asks: {w.attempt.questions[0].text}"
    if w.phase is Phase.BACKING_OFF and Badge.NEEDS_LOGIN in w.badges:
        return f"log in for {w.id}: {w.error}"
    if w.phase is Phase.REVIEWING:
        return f"review {w.id}"
    if w.phase is Phase.CONFLICTED:
        return f"resolve the conflicts of {w.id}"
    return ""

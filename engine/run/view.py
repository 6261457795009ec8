"""What a console is shown: a run's state, with what only this engine knows of it right now."""

from collections.abc import Mapping
from dataclasses import replace

from engine.core.outcome import chosen_of, is_choice_due, run_outcome, step_outcome, verdict
from engine.core.state import RunState, Worker, usages_of
from engine.ids import WorkerId
from engine.limits import summed
from engine.messages.results import RunView, StepView, WorkerView
from engine.phases import Phase
from engine.plan.model import PlannedStep
from engine.run.live_run import LiveRun
from engine.work.logbook import Logbook

Logbooks = Mapping[tuple[WorkerId, int], Logbook]


def run_view(live: LiveRun) -> RunView:
    """A run of this engine as it stands."""
    view = view_of(live.state, live.logbooks)
    return replace(
        view,
        seq=live.seq,
        logins=live.login_views(),
        trouble=live.troubles.told,
        is_stopping=live.is_stopping,
    )


def view_of(state: RunState, logbooks: Logbooks) -> RunView:
    """A run as it stands, living or not."""
    return RunView(
        run=state.run,
        name=state.plan.name,
        outcome=run_outcome(state),
        started_at=state.started_at or 0.0,
        ended_at=state.ended_at,
        is_paused=state.is_paused,
        is_waiting=state.is_waiting_told,
        cap=state.cap,
        target=state.plan.runtime.target,
        steps=tuple(_step_view(state, step, logbooks) for step in state.plan.steps),
        auto_merge=state.plan.runtime.auto_merge,
    )


def _step_view(state: RunState, step: PlannedStep, logbooks: Logbooks) -> StepView:
    chosen = chosen_of(state, step)
    return StepView(
        name=step.name,
        dependencies=step.dependencies,
        outcome=step_outcome(state, step),
        workers=tuple(
            worker_view(state, w, logbooks.get((w.id, w.attempt.number)))
            for w in state.workers_of(step.name)
        ),
        is_choice_due=is_choice_due(state, step),
        chosen=str(chosen) if chosen is not None else None,
        policy=str(step.policy),
        merge=step.merge,
        check=step.check,
        command=step.run,
    )


_ENDED = frozenset({Phase.WAITING, Phase.QUEUED, Phase.BACKING_OFF, Phase.FAILED})
"""Phases in which the newest attempt is over, and counted where it failed."""


def _attempts_allowed(state: RunState, w: Worker) -> int:
    """How many attempts there may be in all: the tries of the step, after those that count no more.

    A human's retry begins the count of tries anew, and what is lost by no fault of the agent's is
    not counted.
    """
    over = w.attempt.number if w.phase in _ENDED else max(0, w.attempt.number - 1)
    allowed = state.plan.step(w.id.step).retry.attempts
    return max(w.attempt.number, over - w.history.tries + allowed)


def worker_view(state: RunState, w: Worker, logbook: Logbook | None) -> WorkerView:
    """One worker as it stands."""
    planned = state.planned(w.id)
    agent = state.agent_of(w.id)
    ended, conflict = w.attempt.ended, w.review.conflict
    usages = usages_of(w, logbook.usage if logbook is not None else None)
    return WorkerView(
        worker=str(w.id),
        step=w.id.step,
        phase=w.phase,
        label=state.label_of(w.id),
        agent=agent.name if agent else "",
        attempt=w.attempt.number,
        attempts_allowed=_attempts_allowed(state, w),
        cause=w.cause,
        outcome=w.outcome,
        phase_since=w.phase_since,
        attempt_since=w.begun.at,
        worked_s=w.history.worked_s,
        retry_at=w.next.not_before,
        rate_limited_until=w.attempt.rate_limited_until,
        last_output_at=logbook.last_output_at if logbook else None,
        badges=w.badges,
        questions=w.attempt.questions,
        hears=logbook.hears if logbook and not logbook.is_ended else "",
        tool=logbook.tool if logbook else None,
        progress=logbook.progress if logbook else None,
        last_lines=logbook.tail() if logbook else (),
        prompt=w.begun.prompt or planned.prompt,
        error=w.error,
        limit_hit=ended.limit if ended else None,
        limits=state.limits_of(w.id),
        enforcement=w.begun.enforcement,
        usage=summed(usages),
        attempt_usages=usages,
        change=w.change,
        left_out=w.review.left_out,
        landed=w.landing.landed,
        check=w.review.check,
        verdict=verdict(w),
        is_check_stale=w.review.is_check_stale,
        claimed_done=bool(ended and ended.ok),
        branch=w.begun.branch,
        workspace=w.begun.workspace,
        conflicts=conflict.paths if conflict else (),
        in_the_way=w.landing.in_the_way,
        violations=w.attempt.violations,
    )

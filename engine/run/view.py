"""Make the view of a run: its state, with what only this engine knows of it right now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from engine.core.outcome import (
    chosen_of,
    ending,
    is_choice_due,
    run_outcome,
    told_outcome,
    verdict,
)
from engine.core.state import RunState, Worker, usages_of
from engine.ids import RunId, WorkerId
from engine.limits import summed
from engine.messages.patches import ViewPatch, patch_between
from engine.messages.results import Badge, RunView, StepView, UndoneLanding, WorkerView
from engine.messages.served import Served
from engine.phases import Phase

if TYPE_CHECKING:  # a run of the past is shown without the rooms that living ones need
    from engine.clock import Clock
    from engine.plan.model import PlannedStep
    from engine.review.radar import Radar
    from engine.run.live_run import LiveRun
    from engine.work.logbook import Logbook

    Logbooks = Mapping[tuple[WorkerId, int], Logbook]
    _Show = Callable[[RunState, Worker, Logbook | None], WorkerView]


class Views:
    """The views of an engine's runs as one observer has them, and what of them is new.

    A worker's view is made again only where something moved that it is made of.
    """

    def __init__(
        self, runs: Mapping[RunId, LiveRun], radars: Mapping[RunId, Radar], clock: Clock
    ) -> None:
        self._runs = runs
        self._radars = radars
        self._clock = clock
        self._told: tuple[RunView, ...] = ()
        self._number = 0
        self._made: dict[RunId, dict[WorkerId, tuple[object, WorkerView]]] = {}

    def news(self) -> ViewPatch | None:
        """Return what has moved since this was asked last; None where nothing has."""
        self._made = {run: self._made.get(run, {}) for run in self._runs}
        seen = tuple(self._view(live) for live in self._runs.values())
        patch = patch_between(self._told, seen, number=self._number, at=self._clock.now())
        self._told = seen
        self._number += patch is not None
        return patch

    def _view(self, live: LiveRun) -> RunView:
        radar = self._radars.get(live.run)
        return run_view(live, radar, partial(self._worker, radar))

    def _worker(
        self, radar: Radar | None, state: RunState, w: Worker, logbook: Logbook | None
    ) -> WorkerView:
        made = self._made[state.run]
        signs = (w, state.plan, _log_signs(logbook), radar and radar.predicted(str(w.id)))
        if (known := made.get(w.id)) is None or known[0] != signs:
            known = made[w.id] = signs, _predicted_view(radar, state, w, logbook)
        return known[1]


def _log_signs(logbook: Logbook | None) -> object:
    """Return everything of a log that a worker's view is made of."""
    return logbook and (
        *(logbook.attempt, logbook.newest, logbook.last_output_at, logbook.usage),
        *(logbook.hears, logbook.is_ended, logbook.tool, logbook.tool_since, logbook.progress),
        *(logbook.model, logbook.context, logbook.window, logbook.turns),
        logbook.settings,
    )


def _predicted_view(
    radar: Radar | None, state: RunState, w: Worker, logbook: Logbook | None
) -> WorkerView:
    view = worker_view(state, w, logbook)
    return view if radar is None else radar.shown(view)


def run_view(live: LiveRun, radar: Radar | None, show: _Show | None = None) -> RunView:
    """Return a run of this engine as it stands, with what its radar predicts."""
    show = show or partial(_predicted_view, radar)
    view = view_of(live.state, live.logbooks, show, served=live.served)
    return replace(
        view,
        seq=live.seq,
        logins=live.login_views(),
        radar_share=round(radar.share, 3) if radar is not None else 0.0,
        trouble=live.troubles.told,
        is_stopping=live.is_stopping,
        history=live.history,
    )


def view_of(
    state: RunState,
    logbooks: Logbooks,
    show: _Show | None = None,
    *,
    served: Mapping[WorkerId, Served] | None = None,
) -> RunView:
    """Return a run as it stands, living or not, with the programs that are served of it."""
    show = _with_served(show or worker_view, served or {})
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
        steps=tuple(
            _step_view(
                state,
                step,
                tuple(
                    show(state, w, logbooks.get((w.id, w.attempt.number)))
                    for w in state.workers_of(step.name)
                ),
            )
            for step in state.plan.steps
        ),
        auto_merge=state.plan.runtime.auto_merge,
        rules=state.rules,
    )


def _with_served(show: _Show, served: Mapping[WorkerId, Served]) -> _Show:
    """Return what shows a worker, and beside it the program that is served of it."""

    def shown(state: RunState, w: Worker, logbook: Logbook | None) -> WorkerView:
        view = show(state, w, logbook)
        return replace(view, served=served[w.id]) if w.id in served else view

    return shown


def _step_view(state: RunState, step: PlannedStep, workers: tuple[WorkerView, ...]) -> StepView:
    chosen = chosen_of(state, step)
    return StepView(
        name=step.name,
        dependencies=step.dependencies,
        outcome=told_outcome(state, step),
        workers=workers,
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
    """Return the most attempts there may be: the tries of the step, after those that count no more.

    A human's retry begins the count of tries anew, and what is lost by no fault of the agent's is
    not counted.
    """
    over = w.attempt.number if w.phase in _ENDED else max(0, w.attempt.number - 1)
    allowed = state.plan.step(w.id.step).retry.attempts
    return max(w.attempt.number, over - w.history.tries + allowed)


def _undone(w: Worker) -> UndoneLanding | None:
    """Return the landing that was taken back, until something else is known of the change."""
    if not w.landing.is_undone or Badge.LAND_REFUSED not in w.badges:
        return None
    by = w.landing.undoing
    return UndoneLanding(target=w.landing.undone_on, by=by.user if by else "")


def worker_view(state: RunState, w: Worker, logbook: Logbook | None) -> WorkerView:
    """Return one worker as it stands."""
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
        model=(logbook and logbook.model) or (agent and agent.model) or "",
        has_screen=agent is not None and agent.adapter == "terminal",
        attempt=w.attempt.number,
        attempts_allowed=_attempts_allowed(state, w),
        cause=w.cause,
        outcome=w.outcome,
        ending=ending(w),
        exit_code=ended.exit_code if ended else None,
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
        tool_since=logbook.tool_since if logbook else None,
        context=logbook.context if logbook else None,
        context_window=logbook.window if logbook else None,
        turns=logbook.turns if logbook else None,
        settings=logbook.settings if logbook else (),
        progress=logbook.progress if logbook else None,
        last_lines=logbook.tail() if logbook else (),
        lately=logbook.lately() if logbook else (),
        prompt=w.begun.prompt or planned.prompt,
        error=w.error,
        limit_hit=ended.limit if ended else None,
        limits=state.limits_of(w.id),
        enforcement=w.begun.enforcement,
        usage=summed(usages),
        attempt_usages=usages,
        change=w.change,
        so_far=w.attempt.so_far,
        left_out=w.review.left_out,
        edited=w.review.edited,
        landed=w.landing.landed,
        undone=_undone(w),
        check=w.review.check,
        verdict=verdict(w),
        is_check_stale=w.review.is_check_stale,
        claimed_done=bool(ended and ended.ok),
        branch=w.begun.branch,
        workspace=w.begun.workspace,
        site=w.begun.site,
        holds=w.begun.holds,
        conflicts=conflict.paths if conflict else (),
        in_the_way=w.landing.in_the_way,
        is_carry_refused=w.landing.is_carry_refused,
        violations=w.attempt.violations,
    )

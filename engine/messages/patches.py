"""Tell an observer the news of the views of runs, so that it need not ask for all of them.

A patch holds what moved since the patch before it. The first patch of a stream holds everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from operator import attrgetter

from engine.messages.results import EngineView, RunView, StepView, WorkerView
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class RunPatch:
    """The news of one run.

    Attributes:
        view: The run without its workers; None where nothing but workers moved.
        workers: The workers that moved; all of them, in plan order, where the patch is whole.
        is_whole: The run is new to the observer, or has other workers than before.
    """

    run: str
    view: RunView | None = None
    workers: tuple[WorkerView, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True)
class ViewPatch:
    """The news of all runs of an engine.

    Attributes:
        number: Counts the patches of a stream from 0: a number that is missing is a lost patch.
        at: When the views were made, in the wall-clock seconds of `EngineView.at`.
        order: The runs that the engine works on; every other run is gone.
    """

    number: int
    at: float
    order: tuple[str, ...]
    runs: tuple[RunPatch, ...] = ()


Show = Callable[[ViewPatch], object]
"""Takes a patch in, at its place in a stream of events."""
_head = attrgetter(*(part.name for part in fields(RunView) if part.name != "steps"))
_step_head = attrgetter(*(part.name for part in fields(StepView) if part.name != "workers"))


def patch_between(
    before: Sequence[RunView], after: Sequence[RunView], *, number: int, at: float
) -> ViewPatch | None:
    """Return what is new; None where nothing is, except that the first patch is always made."""
    known = {run.run: run for run in before}
    runs = tuple(patch for run in after if (patch := _run_patch(known.get(run.run), run)))
    order = tuple(run.run for run in after)
    if number and not runs and order == tuple(known):
        return None
    return ViewPatch(number=number, at=at, order=order, runs=runs)


def _run_patch(before: RunView | None, after: RunView) -> RunPatch | None:
    if before is None or _names(before) != _names(after):
        return RunPatch(run=after.run, view=_bare(after), workers=after.workers, is_whole=True)
    pairs = zip(before.workers, after.workers, strict=True)
    moved = tuple(new for old, new in pairs if new is not old and new != old)
    is_same = _heads(before) == _heads(after)
    if is_same and not moved:
        return None
    return RunPatch(run=after.run, view=None if is_same else _bare(after), workers=moved)


def _names(run: RunView) -> list[str]:
    return [worker.worker for worker in run.workers]


def _heads(run: RunView) -> tuple[object, list[object]]:
    return _head(run), [_step_head(step) for step in run.steps]


def _bare(run: RunView) -> RunView:
    return replace(run, steps=tuple(replace(step, workers=()) for step in run.steps))


def patched(view: EngineView, patch: ViewPatch) -> EngineView:
    """Return a view with a patch applied; the patch must be the next one after that view."""
    known = {run.run: run for run in view.runs}
    for news in patch.runs:
        run = _patched_run(known.get(news.run), news)
        if run is not None:
            known[news.run] = run
    runs = tuple(known[run] for run in patch.order if run in known)
    return replace(view, runs=runs, at=patch.at)


def _patched_run(before: RunView | None, news: RunPatch) -> RunView | None:
    head = news.view or before
    if head is None:
        return None
    if before is None or news.is_whole:
        workers = {step.name: () for step in head.steps} | _by_step(news.workers)
    else:
        moved = {worker.worker: worker for worker in news.workers}
        workers = {
            step.name: tuple(moved.get(worker.worker, worker) for worker in step.workers)
            for step in before.steps
        }
    steps = tuple(replace(step, workers=workers.get(step.name, ())) for step in head.steps)
    return replace(head, steps=steps)


def _by_step(workers: Sequence[WorkerView]) -> dict[str, tuple[WorkerView, ...]]:
    found: dict[str, tuple[WorkerView, ...]] = {}
    for worker in workers:
        found[worker.step] = (*found.get(worker.step, ()), worker)
    return found

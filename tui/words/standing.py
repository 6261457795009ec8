"""Place a worker for a human: its band, its place in the order, its clock and its name."""

from collections.abc import Mapping
from enum import IntEnum

from engine.messages.results import Badge, RunView, StepView, WorkerView
from engine.phases import Phase
from tui.ink import BOLD, TEXT, Row, Span
from tui.words.figures import UNKNOWN, countdown, lasting

_LAST = 1_000_000


class Band(IntEnum):
    """The three bands of Fleet; settled workers stand below those that wait."""

    NEEDS_YOU = 0
    WORKING = 1
    WAITING = 2
    SETTLED = 3


def band_of(worker: WorkerView, step: StepView) -> Band:
    """Return the band a worker stands in."""
    if worker.phase is Phase.FAILED and step.outcome.is_well:
        return Band.SETTLED
    if _needs_you(worker):
        return Band.NEEDS_YOU
    if worker.phase.is_settled:
        return Band.SETTLED
    if worker.phase in {Phase.WAITING, Phase.QUEUED}:
        return Band.WAITING
    return Band.WORKING


def _needs_you(worker: WorkerView) -> bool:
    if worker.questions and not worker.phase.is_settled:
        return True
    if Badge.NEEDS_LOGIN in worker.badges and not worker.phase.is_settled:
        return True
    return worker.phase in {Phase.REVIEWING, Phase.CONFLICTED, Phase.FAILED}


def _rank(worker: WorkerView, step: StepView) -> int:
    """Within NEEDS YOU: what holds a slot comes first, what only waits comes last."""
    if worker.questions or Badge.NEEDS_LOGIN in worker.badges:
        return 0
    if worker.phase is Phase.CONFLICTED:
        return 1
    if worker.phase is Phase.FAILED:
        return 2
    return 3 if step.is_choice_due else 4


def waits_since(worker: WorkerView) -> float:
    """Since when it waits for a human, or since when it stands where it stands."""
    if worker.questions:
        return min(question.asked_at for question in worker.questions)
    return worker.phase_since


Held = Mapping[str, tuple[Band, int]]
"""The place of each worker a moment ago: its band, and its rank among all."""


def bands_of(run: RunView, held: Held | None = None) -> dict[Band, list[WorkerView]]:
    """All workers by band: those that need you oldest first by rank, the others in plan order.

    With `held`, everybody stays where it stood: nothing moves under a finger.
    """
    bands: dict[Band, list[WorkerView]] = {band: [] for band in Band}
    ranks: dict[str, tuple[int, float]] = {}
    if held:
        for worker in sorted(
            run.workers, key=lambda w: held.get(w.worker, (Band.SETTLED, _LAST))[1]
        ):
            step = step_of(run, worker)
            bands[held.get(worker.worker, (band_of(worker, step), 0))[0]].append(worker)
        return bands
    for step in run.steps:
        for worker in step.workers:
            bands[band_of(worker, step)].append(worker)
            ranks[worker.worker] = (_rank(worker, step), waits_since(worker))
    bands[Band.NEEDS_YOU].sort(key=lambda worker: ranks[worker.worker])
    return bands


def in_order(run: RunView) -> list[WorkerView]:
    """All workers as Fleet shows them, top to bottom."""
    bands = bands_of(run)
    return [worker for band in Band for worker in bands[band]]


def is_in_plain_folder(worker: WorkerView) -> bool:
    """Say whether it works in a folder without git: nothing there can be compared or landed."""
    return worker.workspace is not None and worker.branch is None


def step_of(run: RunView, worker: WorkerView) -> StepView:
    """The step a worker belongs to."""
    return next(step for step in run.steps if step.name == worker.step)


def short_name(worker: WorkerView, step: StepView | None = None) -> str:
    """The part of a worker's name after its step: its label where that tells it apart."""
    own = worker.worker.rpartition("/")[2]
    if not worker.label or worker.label == worker.agent:
        return own
    if step and sum(other.label == worker.label for other in step.workers) > 1:
        return own
    return worker.label


def name_of(worker: WorkerView, step: StepView | None = None) -> Row:
    """A worker's name: the step, then the worker in bold."""
    return (Span(f"{worker.step}/", TEXT), Span(short_name(worker, step), BOLD))


def title_of(worker: WorkerView, step: StepView | None = None) -> str:
    """A worker's name as plain text."""
    return f"{worker.step}/{short_name(worker, step)}"


def candidate_of(worker: WorkerView, step: StepView) -> str:
    """The letter of a candidate: `A`; empty where the step's workers are no candidates."""
    if step.merge != "choose" or len(step.workers) < 2:  # noqa: PLR2004 - one is no choice
        return ""
    names = [other.worker for other in step.workers]
    place = names.index(worker.worker)
    return chr(ord("A") + place) if place < 26 else str(place + 1)  # noqa: PLR2004 - the alphabet


def clock_of(worker: WorkerView, now: float) -> str:
    """The time shown beside a worker: what it counts depends on its phase."""
    if worker.phase in _TIMELESS:
        return ""
    if worker.phase in _TOTALED:
        return lasting(worker.worked_s) if worker.worked_s else UNKNOWN
    if worker.phase is Phase.BACKING_OFF and worker.retry_at is not None:
        return countdown(worker.retry_at - now)
    if worker.questions:
        return lasting(now - waits_since(worker))
    if worker.phase is Phase.RUNNING and worker.attempt_since is not None:
        return lasting(now - worker.attempt_since)
    return lasting(now - worker.phase_since)


_TIMELESS = frozenset({Phase.WAITING, Phase.QUEUED, Phase.SKIPPED})
_TOTALED = frozenset({Phase.LANDED, Phase.FINISHED, Phase.DISCARDED, Phase.CANCELLED})

"""Draw where the time went: one row per worker from the run's beginning until now."""

from engine.messages.results import RunView, StepView, WorkerView
from engine.phases import Phase
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, clickable, fit, words
from tui.kit.meters import heading
from tui.words.cutting import cut_end
from tui.words.figures import lasting
from tui.words.looks import look_of
from tui.words.standing import Band, band_of, clock_of, short_name, waits_since

_LEAST_NAMES = 20
_STEP = 11
_CLOCK = 10
_NICE = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


class Timeline:
    """The time of a run in so many cells: a head that stands still, and a row per worker."""

    def __init__(self, run: RunView, now: float, cells: int) -> None:
        steps = min(max((len(step.name) for step in run.steps), default=0), _STEP) + 2
        longest = max(
            (len(short_name(w, step)) for step in run.steps for w in step.workers), default=0
        )
        self._run, self._now, self._cells, self._steps = run, now, cells, steps
        self._names = max(min(steps + longest + 2, cells // 3), _LEAST_NAMES)
        self._width = max(cells - self._names - _CLOCK, 10)
        self.workers = [
            (worker, step, place == 0)
            for step in run.steps
            for place, worker in enumerate(step.workers)
        ]

    def head(self) -> list[Row]:
        """Return the heading and the scale."""
        whole = (self._run.ended_at or self._now) - self._run.started_at
        scale = (Span(" " * self._names), *_scale(whole, self._width))
        return [heading("TIMELINE", self._cells, figure=lasting(whole)), scale]

    def row(self, index: int) -> Row:
        """Return the row of a worker; the first of a step has the step's name."""
        worker, step, is_first = self.workers[index]
        told = Span(f" {cut_end(step.name if is_first else '', _STEP):<{self._steps}}", MUTED)
        label = fit((told, Span(short_name(worker, step), TEXT)), self._names)
        row = (*label, *_row(worker, step, self._run, (self._now, self._width)))
        return clickable(row, f"worker:{worker.worker}")


def _scale(whole_s: float, width: int) -> Row:
    unit = next((unit for unit in _NICE if whole_s / unit <= 6), _NICE[-1])  # noqa: PLR2004 - six marks
    line = [" "] * width
    at, free = 0.0, 0
    while at < whole_s:
        place = round(at / max(whole_s, 1.0) * (width - 1))
        said = lasting(at)
        if free <= place < width - 4 - len(said):
            line[place : place + len(said)] = said
            free = place + len(said) + 1
        at += unit
    return words("".join(line[: width - 4]), Span(" now", Ink(bold=True)))


def _row(worker: WorkerView, step: StepView, run: RunView, seen: tuple[float, int]) -> Row:
    now, width = seen
    whole = max((run.ended_at or now) - run.started_at, 1.0)

    def place(at: float) -> int:
        return min(max(round((at - run.started_at) / whole * width), 0), width)

    look = look_of(worker)
    clock = Span(clock_of(worker, now).rjust(_CLOCK - 1), Ink(look.role))
    if not worker.attempt:
        return (Span(" " * width), clock)
    begin, worked, end = _times(worker, step, run, now)
    start, turn, stop = place(begin), place(worked), place(end)
    stop = min(max(stop, start + 1), width - worker.phase.is_settled)
    turn = min(turn, stop)
    working = Role.DONE if worker.phase in {Phase.LANDED, Phase.FINISHED} else Role.RUNNING
    bars = (
        Span(" " * start),
        Span("▄" * (turn - start), Ink(working)),
        Span("▄" * (stop - max(turn, start)), Ink(look.role)),
        Span(look.glyph if worker.phase.is_settled else "", Ink(look.role)),
    )
    return (*fit(bars, width), clock)


def _times(
    worker: WorkerView, step: StepView, run: RunView, now: float
) -> tuple[float, float, float]:
    """Return when it began, until when it worked, and where its bar ends."""
    is_waiting = band_of(worker, step) is Band.NEEDS_YOU
    end = now if is_waiting or worker.is_live else worker.phase_since
    worked = waits_since(worker) if is_waiting or worker.phase is Phase.BACKING_OFF else end
    begin = worker.attempt_since or worked - worker.worked_s
    return max(begin, run.started_at), max(worked, begin), end

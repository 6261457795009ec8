"""Tell where the time of attempts went: a row for each, and what all of them came to."""

from collections.abc import Callable, Iterable, Sequence

from engine.messages.timing import AttemptTimes
from tui.words.figures import UNKNOWN

_MINUTE = 60
_COLUMNS: dict[str, Callable[[AttemptTimes], float | None]] = {
    "queued": lambda one: one.queued,
    "prepared": lambda one: one.prepared,
    "started": lambda one: one.started,
    "first output": lambda one: one.first_output,
    "worked": lambda one: one.worked,
    "collected": lambda one: one.collected,
    "checked": lambda one: one.checked,
    "CPU": lambda one: one.cpu,
}


def times_text(times: Sequence[AttemptTimes]) -> str:
    """Return the times of attempts as a table; the last row adds them up."""
    rows = [["attempt", *_COLUMNS]]
    rows += [
        [f"{one.worker}@{one.attempt}", *(_seconds(read(one)) for read in _COLUMNS.values())]
        for one in times
    ]
    rows.append(["in all", *(_seconds(_sum(map(read, times))) for read in _COLUMNS.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])])
        for name, *cells in rows
    )


def _sum(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def _seconds(figure: float | None) -> str:
    """Return a time as exactly as it matters: `0.042s`, `3.1s`, `4:12`, `1:04:12`."""
    if figure is None:
        return UNKNOWN
    if figure < 1:
        return f"{figure:.3f}s"
    if figure < _MINUTE:
        return f"{figure:.1f}s"
    minutes, seconds = divmod(round(figure), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"

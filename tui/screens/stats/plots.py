"""Draw weeks as bars: one plot for each figure, as many as there is room for."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from engine.messages.statistics import Figures
from tui.ink import BOLD, LINE, MUTED, Ink, Role, Row, Span, blank, fit, spread, words
from tui.words.figures import UNKNOWN, cost, count, lasting

_EIGHTHS = "▁▂▃▄▅▆▇█"
_LEAST_CELLS = 36
_GAP = 3
_WIDEST_BAR = 6
_TALLEST = 8
_WEEK = timedelta(weeks=1)
_WEEK_NAME = re.compile(r"(\d{4})-W(\d\d)")


class Plot(NamedTuple):
    """One figure of a week: its name, its value and how that is written.

    Attributes:
        full: The value of a whole bar; the largest of all weeks where it is None.
    """

    name: str
    value: Callable[[Figures], float | None]
    written: Callable[[float], str]
    full: float | None = None


def share(part: int, whole: int) -> float | None:
    """Return a part as a share; None of nothing."""
    return part / whole if whole else None


def percent(value: float) -> str:
    """Write a share."""
    return f"{int(100 * value)}%"


def _whole(value: float) -> str:
    return count(int(value))


PLOTS = (
    Plot("attempts", lambda one: one.attempts, _whole),
    Plot("success", lambda one: share(one.success, one.attempts), percent, 1.0),
    Plot("landed", lambda one: one.landed, _whole),
    Plot("cost", lambda one: one.usd, cost),
    Plot("1st check", lambda one: share(one.first_passed, one.first_checks), percent, 1.0),
    Plot("hunks kept", lambda one: share(one.kept, one.proposed), percent, 1.0),
    Plot("review", lambda one: one.review_s or None, lasting),
    Plot("cost/landed", lambda one: one.usd_per_landed, cost),
)
"""The most telling ones first."""


def week_of(at: float) -> str:
    """Return the ISO week of a moment, as a history names it."""
    year, week, _ = datetime.fromtimestamp(at, UTC).isocalendar()
    return f"{year}-W{week:02}"


def _is_week(name: str) -> bool:
    """Say if a name is that of a week: who writes to a team's history may write what they like."""
    if found := _WEEK_NAME.fullmatch(name):
        with suppress(ValueError):
            return bool(datetime.fromisocalendar(int(found[1]), int(found[2]), 1))
    return False


def weeks_until(first: str, now: float) -> list[str]:
    """Return all weeks from one on until now, also those in which nothing was done."""
    year, _, week = first.partition("-W")
    day = datetime.fromisocalendar(int(year), int(week), 1).replace(tzinfo=UTC)
    found = [first]
    while (day := day + _WEEK) <= datetime.fromtimestamp(now, UTC):
        found.append(week_of(day.timestamp()))
    return found


def plots(
    figures: Sequence[Figures], now: float, cells: int, height: int, *, here: str = ""
) -> list[Row]:
    """Draw as many plots as there is room for; the bar of the week `here` stands out."""
    across = max((cells + _GAP) // (_LEAST_CELLS + _GAP), 1)
    wide = (cells - _GAP * (across - 1)) // across
    down = max(min(-(-len(PLOTS) // across), height // 4), 0)
    by_week = {one.name: one for one in figures if _is_week(one.name)}
    if not by_week or not down:
        return []
    tall = min(height // down - 3, _TALLEST)
    weeks = weeks_until(min(by_week), now)[-wide:]
    told = [(week, by_week.get(week)) for week in weeks]
    rows: list[Row] = []
    for first in range(0, across * down, across):
        drawn = [_plot(plot, told, wide, tall, here=here) for plot in PLOTS[first : first + across]]
        if rows and drawn:
            rows.append(())
        rows += map(_joined, zip(*drawn, strict=True))
    return rows


def _joined(pieces: Sequence[Row]) -> Row:
    row: list[Span] = []
    for piece in pieces:
        row += [*([blank(_GAP)] if row else []), *piece]
    return tuple(row)


def _plot(
    plot: Plot, told: Sequence[tuple[str, Figures | None]], cells: int, height: int, *, here: str
) -> list[Row]:
    """One figure: its name and its extremes, its bars, and the weeks they are of."""
    values = [None if one is None else plot.value(one) for _, one in told]
    known = [value for value in values if value is not None]
    most = max(known, default=0.0)
    said = [f"latest {plot.written(values[-1])}"] if values[-1] is not None else []
    said += [f"most {plot.written(most)}"] if known else [UNKNOWN]
    bar = max(min(cells // len(told), _WIDEST_BAR), 1)
    rows = [spread((Span(plot.name, BOLD),), words(", ".join(said)), cells)]
    for level in reversed(range(height)):
        row = []
        for (week, _), value in zip(told, values, strict=True):
            sign = _piece(value, plot.full or most, level, height)
            ink = Ink(Role.ACCENT if week == here else Role.STRIP)
            row.append(Span(sign * max(bar - 1, 1) + " " * (bar > 1), ink))
        rows.append(fit(row, cells))
    return [*rows, _scale(told[0][0], told[-1][0], bar * len(told), cells)]


def _piece(value: float | None, full: float, level: int, height: int) -> str:
    """The part of a bar in one row: blank above its end, a full block below it."""
    if value is None or full <= 0:
        return " "
    eighths = round(min(value / full, 1.0) * height * len(_EIGHTHS)) - level * len(_EIGHTHS)
    if value > 0 and level == 0:
        eighths = max(eighths, 1)
    return _EIGHTHS[min(eighths, len(_EIGHTHS)) - 1] if eighths > 0 else " "


def _scale(first: str, last: str, wide: int, cells: int) -> Row:
    """The first and the last week, at both ends of the line that the bars stand on."""
    begin, end = (week.partition("-")[2] for week in (first, last))
    if first == last:
        return fit((Span(begin, MUTED),), cells)
    line = max(wide - len(begin) - len(end) - 2, 1)
    return fit((Span(begin, MUTED), Span(f" {'─' * line} ", LINE), Span(end, MUTED)), cells)

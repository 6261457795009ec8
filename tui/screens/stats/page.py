"""Rows of Stats: what is counted, and the table of what it comes to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.messages.results import HistoryDelay, RunView
from engine.messages.statistics import Axis, Figures, Reach
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, clickable, fit, grounded, words
from tui.kit.lists import cursor_row, edge_mark
from tui.screens.stats.plots import percent, share
from tui.words.clean import clean, clean_name
from tui.words.cutting import wrap
from tui.words.figures import UNKNOWN, cost, count, how_long, lasting, tokens

REACHES = {
    Reach.HERE: "this repository",
    Reach.OWN: "all of yours",
    Reach.TEAM: "the team",
}
SPANS = {2: "2 weeks", 8: "8 weeks", 26: "26 weeks", 0: "all time"}
"""Of how many weeks attempts are counted, the shorter first; 0 is all."""
_LEAST_NAME, _WIDEST_NAME = 14, 44


class Column(NamedTuple):
    """A column: its head, its cells, and how soon it gives way on a narrow screen."""

    head: str
    cells: int
    rank: int
    text: Callable[[Figures], str]


def _share(part: int, whole: int) -> str:
    found = share(part, whole)
    return UNKNOWN if found is None else percent(found)


COLUMNS = (
    Column("RUNS", 7, 8, lambda one: count(one.runs)),
    Column("ATTEMPTS", 10, 0, lambda one: count(one.attempts)),
    Column("SUCCESS", 9, 1, lambda one: _share(one.success, one.attempts)),
    Column("1ST CHECK", 11, 5, lambda one: _share(one.first_passed, one.first_checks)),
    Column("CONFLICTS", 11, 7, lambda one: count(one.conflicts)),
    Column("KEPT", 6, 4, lambda one: _share(one.kept, one.proposed)),
    Column("REVIEW", 9, 6, lambda one: lasting(one.review_s)),
    Column("LANDED", 8, 2, lambda one: count(one.landed)),
    Column("COST", 8, 3, lambda one: cost(one.usd)),
    Column("TOKENS", 9, 9, lambda one: tokens(one.tokens)),
    Column("COST/LANDED", 13, 3, lambda one: cost(one.usd_per_landed)),
)


class Columns(NamedTuple):
    """The columns of a table, and the cells of its names and of the whole."""

    shown: Sequence[Column]
    name: int
    whole: int


def columns_for(cells: int, widths: Mapping[str, int]) -> Columns:
    """Return the columns that a table this wide has room for, each as wide as it was dragged."""
    usual = _fitting(COLUMNS, cells - _LEAST_NAME - 2)
    own = min(cells - 2 - sum(column.cells for column in usual), _WIDEST_NAME)
    wished = max(widths.get(_edge("name"), own), _LEAST_NAME)
    name = max(min(wished, cells - 2), 0)
    dragged = [
        column._replace(cells=max(widths.get(_edge(column.head), 0), column.cells))
        for column in usual
    ]
    return Columns(_fitting(dragged, cells - name - 2), name, cells)


def _fitting(columns: Sequence[Column], cells: int) -> list[Column]:
    """Return the columns that fit into so many cells, without those that are needed least."""
    kept = list(columns)
    while kept and sum(column.cells for column in kept) > cells:
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept


def _edge(head: str) -> str:
    """Return the name of the width of a column."""
    return f"stats.{head.lower()}"


def choices(reach: Reach, by: Axis, weeks: int, keys: dict[str, str]) -> list[Row]:
    """Return whose attempts are counted, by what and of which time; each can be clicked."""
    return [
        _choice("of", ((f"reach:{one}", said, one is reach) for one, said in REACHES.items()))
        + words("  ", Span(keys["unit_down"], KEY), " next"),
        _choice("by", ((f"by:{one}", str(one), one is by) for one in Axis))
        + words("  ", Span(keys["right"], KEY), " next"),
        _choice("in", ((f"weeks:{n}", said, n == weeks) for n, said in SPANS.items()))
        + words("  ", Span(keys["more"], KEY), " longer"),
    ]


def _choice(word: str, options: Iterable[tuple[str, str, bool]]) -> Row:
    row: list[Span] = [Span(f"  {word} ", MUTED)]
    for target, said, is_chosen in options:
        ink = Ink(Role.ACCENT, bold=True, underline=True) if is_chosen else TEXT
        row += [Span(" "), *clickable((Span(said, ink),), target), Span(" ")]
    return tuple(row)


def table_head(by: Axis, columns: Columns) -> Row:
    """The heads of the columns."""
    row = [Span(f" {str(by).upper():<{columns.name}}", MUTED)]
    before, wide = "name", columns.name
    for column in columns.shown:
        row += [
            edge_mark(_edge(before), 1, wide),
            Span(f"{column.head:>{column.cells - 1}}", MUTED),
        ]
        before, wide = column.head, column.cells
    return grounded(fit(row, columns.whole), Role.SURFACE)


def figures_row(one: Figures, columns: Columns, *, is_focused: bool) -> Row:
    """Return the figures of one name as a row."""
    name = (Span(shown_name(one.name), BOLD if is_focused else TEXT),)
    row = [*fit(name, columns.name)]
    row += [Span(f"{column.text(one):>{column.cells}}", TEXT) for column in columns.shown]
    return cursor_row(tuple(row), columns.whole, is_focused=is_focused)


def shown_name(name: str) -> str:
    """Return a name as it is shown; a dash where there is none."""
    return clean_name(name) or UNKNOWN


def delay_of(runs: Iterable[RunView]) -> HistoryDelay | None:
    """Return what has kept the team's history from having everything for longest."""
    delays = (run.history for run in runs)
    return min((one for one in delays if one), key=lambda one: one.since, default=None)


def delay_rows(delay: HistoryDelay, now: float, cells: int) -> list[Row]:
    """Say that the team's history is behind, why, and what helps."""
    mark = Span("  ▲ ", Ink(Role.WAITING, bold=True))
    since = Span(f"The team's history has been delayed for {how_long(now - delay.since)}.", TEXT)
    return [words(mark, since), *_told(f"{delay.what}. {delay.help}", cells)]


def _told(text: str, cells: int) -> list[Row]:
    return [words(f"    {line}") for line in wrap(clean(text), cells - 6)]


def refused_rows(why: str, cells: int) -> list[Row]:
    """Say why there are no figures."""
    mark = Span("  ✗ ", Ink(Role.FAILED, bold=True))
    said = words(mark, Span("plait cannot count these attempts.", BOLD))
    return [(), said, *_told(why, cells)]


def nothing_rows(reach: Reach, weeks: int, keys: dict[str, str]) -> list[Row]:
    """Say that nothing was counted, and what shows or makes some."""
    if weeks:
        said = f"  No attempt started in the last {SPANS[weeks]}."
        return [
            (),
            words(Span(said, BOLD)),
            words("  ", Span(keys["more"], KEY), " counts a longer time."),
        ]
    if reach is Reach.TEAM:
        how = "Runs with `database: {strategy: shared}` in their manifest are delivered there."
        return [(), words(Span("  The team has no attempt yet.", BOLD)), words(f"  {how}")]
    begins = words("  ", Span('plait run "Fix the bug"', KEY), " in a terminal starts the first.")
    return [(), words(Span("  There is no attempt yet.", BOLD)), begins]

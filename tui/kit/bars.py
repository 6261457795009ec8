"""The two bars that stand round every screen: its tabs above, its keys below; and the message line.

Knows nothing of runs and workers, so that a console can show where it is before it knows any.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.ink import (
    KEY,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    clickable,
    cut_row,
    fit,
    grounded,
    row_width,
    spread,
    text_of,
    words,
    wrapped,
)

TABS = (
    ("fleet", "Fleet", "go_fleet"),
    ("worker", "Worker", "go_worker"),
    ("diff", "Diff", "go_diff"),
    ("compare", "Compare", "go_compare"),
    ("review", "Review", "go_review"),
    ("inbox", "Inbox", "go_inbox"),
    ("plan", "Plan", "go_plan"),
    ("runs", "Runs", "go_runs"),
    ("stats", "Stats", "go_stats"),
)
_SELDOM = "stats"
"""The screen that has a tab only while it is seen: most look at it once a week."""
_TITLED_FIRST = ("fleet", "inbox", "worker", "diff", "review", "compare", "plan", "runs")
"""The order in which screens get their titles where not every title fits."""
_TINY = 60
_MOST_ROWS = 3
"""A message that goes on longer is cut: the rest of the screen is not to be hidden by it."""


@dataclass
class Ask:
    """Something that asks first: the same key again does it, any other leaves it."""

    idea: str
    said: Row
    then: Callable[[], None]


class Hint(NamedTuple):
    """A key and what it does, for the footer and for cards."""

    key: str
    label: str
    idea: str = ""


def tabs_bar(
    keys: Mapping[str, str], current: str, cells: int, *, ending: Row = (), count: Row = ()
) -> Row:
    """Row 0: the name, the screens with their keys, the inbox count, and what it ends with."""
    is_tiny = cells < _TINY
    ending = () if is_tiny else ending
    room = cells - row_width(ending) - 2
    often = set(_TITLED_FIRST[:6]) if is_tiny else {tab[0] for tab in TABS} - {_SELDOM}
    shown = [tab for tab in TABS if tab[0] in {current, *often}]
    tabs = [(screen, title, keys.get(idea, "")) for screen, title, idea in shown]
    titled = {current}
    for screen in _TITLED_FIRST:
        row = _tabs(tabs, current, titled | {screen}, count)
        if row_width(row) > room:
            break
        titled.add(screen)
    row = _tabs(tabs, current, titled, count)
    drawn = spread(grounded(row, Role.PANEL), grounded(ending, Role.PANEL), cells)
    return grounded(drawn, Role.PANEL)


def _tabs(
    tabs: Sequence[tuple[str, str, str]], current: str, titled: Collection[str], count: Row
) -> list[Span]:
    """The name and the screens; those that are not `titled` stand there with their key alone."""
    row: list[Span] = [Span(" plait ", Ink(Role.ACCENT, Role.PANEL, bold=True))]
    for screen, title, key in tabs:
        tab = _tab(key, title if screen in titled else "", is_current=screen == current)
        row += clickable((*tab, *(count if screen == "inbox" else ())), f"go:{screen}")
    return row


def _tab(key: str, title: str, *, is_current: bool) -> list[Span]:
    """A blank on either side: two keep tabs apart, and none moves when another is opened."""
    if is_current:
        ground = Role.BACKGROUND
        return [
            Span(f" {key} " if key else " ", Ink(Role.ACCENT, ground, bold=True)),
            Span(f"{title} ", Ink(Role.TEXT, ground, bold=True)),
        ]
    return [Span(f" {' '.join(filter(None, (key, title)))} ", MUTED)]


def footer(hints: Sequence[Hint], help_key: str, cells: int) -> Row:
    """The last row: keys of the focused thing; what does not fit falls off at the right."""
    helped = clickable((Span(help_key, KEY), Span(" keys ", MUTED)), "do:help")
    ending = helped if help_key else ()
    room = cells - row_width(ending) - 2
    row: list[Span] = [Span(" ")]
    for hint in hints:
        piece = (Span(hint.key, KEY), Span(f" {hint.label}", MUTED))
        if row_width((*row, *piece)) + 1 > room:
            break
        row += [*clickable(piece, f"do:{hint.idea}"), Span("  ")]
    return grounded(spread(row, ending, cells), Role.SURFACE)


def message(row: Row, cells: int) -> Row:
    """The message line, one cell in from the edge."""
    return fit((Span(" "), *cut_row(row, cells - 2)), cells)


def message_rows(row: Row, cells: int, most: int = _MOST_ROWS) -> list[Row]:
    """Return a message whole, over as many rows as it takes, and cut only behind the last."""
    return [message(piece, cells) for piece in wrapped(row, cells - 2, most)]


def sentence_rows(row: Row, cells: int) -> list[Row]:
    """Return a sentence in one row: a second one, in muted ink, is left out first."""
    *first, last = row or (Span(""),)
    is_second = last.ink == MUTED and text_of([tuple(first)]).rstrip().endswith((".", "?", "!"))
    if is_second and row_width(row) > cells - 2:
        row = tuple(first)
    return message_rows(row, cells, 2)


def ask_rows(said: Row, yes: Sequence[str], no: Sequence[str], cells: int) -> list[Row]:
    """Return what is asked first, whole, and under it the two answers with their keys."""
    mark = Span("? ", Ink(Role.WAITING, bold=True))
    does, leaves = (Span(" ".join(dict.fromkeys(filter(None, keys))), KEY) for keys in (yes, no))
    answer = words(Span("  ", TEXT), does, " yes   ", leaves, " no")
    return [*message_rows((mark, *said), cells), message(answer, cells)]

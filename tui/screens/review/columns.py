"""A conflicted file in three columns: target, result, incoming, aligned conflict by conflict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tui.ink import (
    BOLD,
    LINE,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    clickable,
    fit,
    row_width,
    that_does,
    words,
)
from tui.kit.meters import heading
from tui.kit.panes import Edge
from tui.screens.review.around import gap, line_in_result
from tui.screens.review.card import Look, blank_row, pickable_rows, picked_marks, result_title
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import What
from tui.screens.review.rows import (
    first_lines,
    offer_rows,
    result_rows,
    side_head,
    side_rows,
    since,
)
from tui.words.cutting import cut_end, cut_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.api import ConflictFileView, HunkView

COLUMNS_FROM = 160
_OFFERS = 7
_LEAST = 12
_MOST = 200
_ABOVE = 2
_STEADY = 20
"""So many rows lie above the proposals of a short conflict: they are near, and do not jump."""
_BAR = 3
_LEAST_COLUMN = 20
"""Numbers, marks and a few words of code: a narrower column says nothing."""
TARGET, INCOMING = "review.target", "review.incoming"
"""The names of the widths that are dragged; the result takes what both sides leave."""


class Widths(NamedTuple):
    """The cells of the three columns."""

    target: int
    result: int
    incoming: int

    @property
    def whole(self) -> int:
        """The cells of all columns with the bars between them."""
        return sum(self) + 2 * _BAR

    def joined(self, target: Row, result: Row, incoming: Row) -> Row:
        """Return a row of all three columns; the bars between them are dragged."""
        bars = (Edge(TARGET, 1, self.target), Edge(INCOMING, -1, self.incoming))
        left, right = (Span(" │ ", that_does(LINE, edge.does)) for edge in bars)
        return (*target, left, *result, right, *incoming)


def widths_for(cells: int, wished: Mapping[str, int]) -> Widths:
    """Return equal columns, or as wide as they were dragged; each keeps what it needs at least."""
    room = cells - 2 * _BAR
    usual = room // 3
    least = min(_LEAST_COLUMN, usual)
    target = max(min(wished.get(TARGET, usual), room - 2 * least), least)
    incoming = max(min(wished.get(INCOMING, usual), room - target - least), least)
    return Widths(target, room - target - incoming, incoming)


def fits(pane: ReviewPane, cells: int, height: int) -> bool:
    """Columns show texts side by side: there must be texts, and room."""
    matter = pane.matter
    return bool(matter and matter.what is What.HUNK and height >= _LEAST and cells > 0)


def columns(pane: ReviewPane, look: Look, cells: int, height: int) -> list[Row]:
    """Every conflict of the file that is looked at, and below them what can be chosen for one."""
    view, file = pane.shown, pane.file
    if view is None or file is None:
        return []
    widths = widths_for(cells, look.widths)
    offers = min(len(pane.offers), _OFFERS)
    room = max(height - offers - 4, 1)
    rows, here = _conflicts(pane, look, widths, room)
    top = max(min(here[0] - 2, len(rows) - room), 0)
    if here[1] - top > room:
        top = min(here[0], here[1] - room)
    body = rows[top : top + room]
    offered = sum(not offer.idea for offer in pane.offers)
    head = heading("PROPOSALS", cells, figure=str(offered), note="none is taken automatically")
    blank_rows = min(max(_STEADY - len(body), 1), room - len(body))
    return [
        *_heads(pane, file, look, widths),
        *body,
        *[()] * blank_rows,
        head,
        *offer_rows(pane, cells, offers, look.keys),
    ]


def _heads(pane: ReviewPane, file: ConflictFileView, look: Look, widths: Widths) -> list[Row]:
    view = pane.shown
    if view is None:
        return []
    keys = look.keys
    left, right = (
        side_head(
            keys.get(idea, ""),
            name,
            since(pane, is_target=is_target, cells=width - len(name) - 6),
            width,
            is_target=is_target,
        )
        for idea, name, width, is_target in (
            ("take_target", view.target, widths.target, True),
            ("take_incoming", view.incoming, widths.incoming, False),
        )
    )
    is_open = f"   {file.open_hunks} open" if file.open_hunks else "   all resolved"
    middle = fit(
        words(
            Span("RESULT  ", BOLD),
            cut_path(file.path, widths.result - 22),
            Span(is_open, Ink(Role.CLASH if file.open_hunks else Role.ACCENT, bold=True)),
        ),
        widths.result,
    )
    rules = (
        fit((Span("─" * width, LINE if at != 1 else Ink(Role.ACCENT)),), width)
        for at, width in enumerate(widths)
    )
    return [widths.joined(left, middle, right), widths.joined(*rules)]


def _conflicts(
    pane: ReviewPane, look: Look, widths: Widths, room: int
) -> tuple[list[Row], tuple[int, int]]:
    """The rows of the conflicts round the one looked at, and between which of them it stands."""
    rows: list[Row] = []
    here = (0, 0)
    looked_at = pane.matter.hunk if pane.matter else 0
    hunks = pane.file.hunks if pane.file else ()
    first = max(looked_at - _ABOVE, 0)
    for place, hunk in enumerate(hunks[first:], first):
        if place > looked_at and len(rows) > here[1] + room:
            break
        start = len(rows)
        is_here = place == looked_at
        rows += _conflict(pane, (place, _apart(hunks, place, look.context)), look, widths)
        if is_here:
            here = (start, len(rows))
        if place + 1 == len(hunks) or gap(hunk, hunks[place + 1]) > 2 * look.context:
            rows.append(())
    return rows, here


def _apart(hunks: Sequence[HunkView], place: int, context: int) -> HunkView:
    """A conflict with so much round it that no line is seen twice."""
    hunk, before, after = hunks[place], context, context
    if place:
        before = max(min(gap(hunks[place - 1], hunk) - context, context), 0)
    if place + 1 < len(hunks):
        after = max(min(gap(hunk, hunks[place + 1]), context), 0)
    kept = max(len(hunk.before) - before, 0)
    return replace(hunk, before=hunk.before[kept:], after=hunk.after[:after])


def _conflict(
    pane: ReviewPane,
    which: tuple[int, HunkView],
    look: Look,
    widths: Widths,
) -> list[Row]:
    place, hunk = which
    file = pane.file
    if file is None:
        return []
    is_here = bool(pane.matter and pane.matter.hunk == place)
    text = first_lines(pane.preview() if is_here else hunk.result, _MOST)
    before, after = hunk.before, hunk.after
    marks = picked_marks(pane) if is_here else ({}, {})
    sides = [
        side_rows(file.path, lines[:_MOST], width, scroll=look.scroll, picked=marks[at])
        for at, (lines, width) in enumerate(
            ((hunk.target, widths.target), (hunk.incoming, widths.incoming))
        )
    ]
    if is_here:
        sides = [pickable_rows(pane, rows, at * len(hunk.target)) for at, rows in enumerate(sides)]
        sides[1] = [*sides[1], *blank_row(pane, widths.incoming)]
    placed = replace(hunk, line=line_in_result(file.hunks, place))
    middle = result_rows(
        file.path, placed, text, widths.result, context=look.context, scroll=look.scroll
    )
    head, tail = middle[: len(before)], middle[len(middle) - len(after) :]
    inner = middle[len(before) : len(middle) - len(after)]
    tall = max(len(sides[0]), len(sides[1]), len(inner))
    rows = [_context(line, head[at], widths) for at, line in enumerate(before)]
    within: list[Row] = [_rule(pane, which, look, widths, is_here=is_here)]
    within += [
        widths.joined(
            _or_nothing(sides[0], at, widths.target),
            inner[at] if at < len(inner) else fit((), widths.result),
            _or_nothing(sides[1], at, widths.incoming),
        )
        for at in range(tall)
    ]
    ink = Ink(Role.CLASH, bold=True) if is_here else LINE
    within.append((Span(("━" if is_here else "─") * widths.whole, ink),))
    rows += within if is_here else [clickable(row, f"conflict:{place}") for row in within]
    return rows + [_context(line, tail[at], widths) for at, line in enumerate(after)]


def _context(line: str, middle: Row, widths: Widths) -> Row:
    plain = (Span("     "), Span(line, MUTED))
    return widths.joined(
        fit(plain, widths.target), fit(middle, widths.result), fit(plain, widths.incoming)
    )


def _or_nothing(rows: list[Row], at: int, width: int) -> Row:
    """A line of a side, or the sign for no line there."""
    if at < len(rows):
        return rows[at]
    return (Span("  "), Span("╱" * (width - 2), LINE))  # noqa: RUF001 - the sign for "no line here"


def _rule(
    pane: ReviewPane,
    which: tuple[int, HunkView],
    look: Look,
    widths: Widths,
    *,
    is_here: bool,
) -> Row:
    """The line above a conflict: which one it is, and what its result is the result of."""
    place, hunk = which
    count = len(pane.file.hunks) if pane.file else 0
    cells = widths.whole
    is_open = hunk.choice is None
    ink = Ink(Role.CLASH, bold=is_here) if is_here or is_open else LINE
    where = cut_end(f", {hunk.where}", cells // 4) if hunk.where else ""
    name = f" {'≠' if is_open else '✓'} conflict {place + 1} of {count}, line {hunk.line}{where} "
    dash = "━" if is_here else "─"
    row: list[Span] = [Span(dash * 2, ink), Span(name, ink if is_open else TEXT)]
    if is_here:
        title, ending = result_title(pane, look)
        row.append(Span(dash * max(widths.target + 4 - row_width(row), 1), ink))
        said = [Span(" result"), *title[1:], Span(", ", MUTED)] if title[1:] else [Span(" ")]
        row += [*said, *ending, Span(" ")]
    row.append(Span(dash * max(cells - row_width(row), 0), ink))
    return fit(row, cells)

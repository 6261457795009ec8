"""Candidates beside each other: their figures, and every hunk of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.messages.explaining import letter_of
from engine.messages.results import verdict_of
from tui.ink import (
    BOLD,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    blank,
    clickable,
    fit,
    grounded,
    spread,
    words,
)
from tui.kit.lists import cursor_row, edge_mark
from tui.kit.meters import heading
from tui.screens.compare.model import ComparePane, Spot
from tui.screens.compare.pair import chip
from tui.words.cutting import cut_apart, cut_end
from tui.words.figures import MINUS, cost, lasting, some, tokens
from tui.words.looks import PHASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.api import CandidateRow

NAMES = "compare.names"
"""The name of the width of the column of names, where it was dragged."""
_NAME = 26
_NARROW_NAME = 18
_LEAST_NAME = 10
_NARROW = 100
_ENDING = 14
_LEAST_COLUMN = 12
_PAIR = 2
_WIDE, _WIDE_NAME = 160, 48
_BOXES = frozenset({"□", "■"})


def compare_subject(pane: ComparePane, waiting: Sequence[str], cells: int) -> Row:
    """Row 1: which step, how many candidates, who waits for the choice."""
    if pane.table is None:
        return ()
    left = words(
        Span(f" {pane.table.step}", BOLD),
        "   choose 1 of ",
        Span(str(len(pane.rows)), BOLD),
        " candidates, or take hunks from any",
    )
    who = f"{waiting[0]} waits for this choice " if waiting else ""
    return spread(left, words(who), cells)


def widths(pane: ComparePane, cells: int) -> tuple[int, list[int], int]:
    """The widths of the names, of as many candidates as fit, and of the consensus."""
    name = _WIDE_NAME if cells >= _WIDE else _NAME if cells >= _NARROW else _NARROW_NAME
    if pane.name_cells:
        name = max(min(pane.name_cells, cells // 2), _LEAST_NAME)
    ending = _ENDING if cells >= _NARROW else 0
    count = max(len(pane.rows), 1)
    room = cells - name - ending - 2
    shown = max(min(count, room // _LEAST_COLUMN), 1)
    return name, [room // shown] * shown, ending


def first_column(pane: ComparePane, shown: int) -> int:
    """The first candidate on screen: the one under the cursor is always there."""
    return max(min(pane.column - shown + 1, len(pane.rows) - shown), 0)


def figures_head(pane: ComparePane, name: int) -> list[Row]:
    """Return what the rows of the candidates' figures are called; the head's end is dragged."""
    rows = [fit((Span(f"  {title}", MUTED),), name - 1) for title, _ in _figures(pane)]
    return [(*rows[0], edge_mark(NAMES, 1, name)), *rows[1:]]


def figures_of(pane: ComparePane, column: int, cells: int) -> list[Row]:
    """Return the figures of a candidate; the one under the cursor stands on a ground of its own."""
    row = pane.rows[column]
    drawn = [_head(pane, column, row, cells), *(draw(row) for _, draw in _figures(pane)[1:])]
    rows = [fit(one, cells - 1) for one in drawn]
    if column == pane.column:
        rows = [grounded(one, Role.PANEL) for one in rows]
    return [(*one, blank(1)) for one in rows]


def _figures(pane: ComparePane) -> list[tuple[str, Callable[[CandidateRow], Row]]]:
    """Return the name of each figure and what draws it, below the head of the column."""
    told = [("output", _told)] if any(map(_told, pane.rows)) else []
    return [
        ("", lambda _: ()),
        ("check", _check),
        *told,
        ("change", _change),
        ("time", lambda row: words(Span(lasting(row.worked_s), TEXT))),
        ("cost", _cost),
        ("agrees", _agrees),
        *([("alike", lambda row: _alike(pane, row))] if len(pane.rows) > _PAIR else []),
        ("phase", _phase),
    ]


def _head(pane: ComparePane, at: int, row: CandidateRow, width: int) -> Row:
    is_here = at == pane.column
    step, _, worker = row.worker.rpartition("/")
    name = row.label or worker
    lead = f" {step}/" if not row.label and len(row.worker) + 5 < width else " "
    return (chip(at, is_here=is_here), Span(lead, TEXT), Span(name, BOLD))


def _check(row: CandidateRow) -> Row:
    if row.check is None:
        return words("· not run")
    mark = Span("✓ ", Ink(Role.DONE)) if row.check.passed else Span("✗ ", Ink(Role.FAILED))
    verdict = verdict_of(row.check, is_stale=False, has_claimed=False)
    return (mark, Span(str(verdict or "failed"), TEXT))


def _told(row: CandidateRow) -> Row:
    """Return the first line of what the check itself said, where that is more than how it ended."""
    first = row.check.summary.split("\n")[0] if row.check else ""
    return () if first in {"", "passed", "failed"} else (Span(f"  {first}", TEXT),)


def _change(row: CandidateRow) -> Row:
    return (
        Span(some(row.files, "file"), TEXT),
        Span(f" +{row.insertions}", Ink(Role.ADDED)),
        Span(f" {MINUS}{row.deletions}", Ink(Role.REMOVED)),
    )


def _cost(row: CandidateRow) -> Row:
    used = [row.usage.input_tokens, row.usage.output_tokens]
    known = [count for count in used if count is not None]
    whole = tokens(sum(known)) if known else tokens(None)
    return words(Span(cost(row.usage.usd), TEXT), f"  {whole} tokens")


def _agrees(row: CandidateRow) -> Row:
    if not row.is_comparable:
        return words("has another base")
    return words(Span(str(row.agreed), TEXT), f" of {some(row.hunks, 'hunk')}")


def _alike(pane: ComparePane, row: CandidateRow) -> Row:
    """Return how many hunks it has in common with each of the others."""
    at = pane.rows.index(row)
    shared = [(other, pane.shared(at, other)) for other in range(len(pane.rows)) if other != at]
    parts = [
        part for other, count in shared for part in (letter_of(other), Span(f" {count}  ", TEXT))
    ]
    return words("with ", *parts)


def _phase(row: CandidateRow) -> Row:
    look = PHASES[row.phase]
    return words(Span(f"{look.glyph} ", Ink(look.role)), look.word.lower(), f"  {row.agent}")


def hunks_head(pane: ComparePane, cells: int) -> Row:
    """Return what stands above the hunks."""
    note = "equal candidates share a row"
    return (blank(1), *heading("HUNKS", cells - 2, figure=str(len(pane.spots)), note=note))


def hunk_rows(pane: ComparePane, cells: int) -> tuple[list[Row], int]:
    """Return a row for every place, under its file; and which row the cursor is on."""
    rows: list[Row] = []
    here, path = 0, None
    paths = list(dict.fromkeys(spot.path for spot in pane.spots))
    names = dict(zip(paths, cut_apart(paths, cells - 4), strict=True))
    for index, spot in enumerate(pane.spots):
        if spot.path != path:
            path = spot.path
            rows.append(words(f"  {names[path]}"))
        if index == pane.at:
            here = len(rows)
        row = _spot_row(pane, index, cells, is_here=index == pane.at)
        rows.append(clickable(row, f"spot:{index}"))
    if not rows:
        rows.append(words("  No candidate has a change to compare."))
    return rows, here


def _spot_row(pane: ComparePane, index: int, cells: int, *, is_here: bool) -> Row:
    spot = pane.spots[index]
    name, columns, ending = widths(pane, cells)
    first = first_column(pane, len(columns))
    told = _name_of(spot)
    row: list[Span] = [
        *fit((Span(f"   {cut_end(told, name - 6)}", BOLD if is_here else TEXT),), name - 1)
    ]
    for at, width in enumerate(columns, first):
        mark, *rest = _cell(pane, spot, at)
        if mark.text[0] in _BOXES:
            mark = Span(mark.text, mark.ink._replace(does=f"take:{index}:{at}"))
        if is_here and at == pane.column:
            rest.append(Span(" ◄", Ink(Role.FOCUS, bold=True)))
        row += clickable((*fit((mark, *rest), width - 1), blank(1)), f"cell:{index}:{at}")
    if ending:
        row += fit(_consensus(pane, spot), ending)
    return cursor_row(tuple(row), cells, is_focused=is_here)


def _name_of(spot: Spot) -> str:
    hunk = spot.hunks[0]
    if hunk.what:
        return hunk.what
    changed = next((line for line in hunk.new if line.strip() and line not in hunk.old), "")
    gone = next((line for line in hunk.old if line.strip()), "")
    return f"{spot.line} {(changed or gone).strip()}"


def _cell(pane: ComparePane, spot: Spot, column: int) -> Row:
    hunk = pane.hunk_of(spot, column)
    if hunk is None:
        return words(Span("–", MUTED))  # noqa: RUF001 - the sign for nothing there
    firsts = [at for at in range(len(pane.rows)) if pane.hunk_of(spot, at) is hunk]
    if firsts[0] != column:
        return words(Span("≡ ", MUTED), f"same as {letter_of(firsts[0])}")
    if pane.is_taken(spot, hunk):
        return (Span(f"■ take {letter_of(column)}", Ink(Role.ACCENT, bold=True)),)
    return (Span(f"□ {letter_of(column)}", TEXT),)


def _consensus(pane: ComparePane, spot: Spot) -> Row:
    who = [at for at in range(len(pane.rows)) if pane.hunk_of(spot, at) is not None]
    if len(spot.hunks) > 1:
        most = max(sum(pane.hunk_of(spot, at) is hunk for at in who) for hunk in spot.hunks)
        if most > 1:
            return words(f"{most} of {len(pane.rows)} equal")
        return (Span("differ", BOLD),)
    if len(who) == 1:
        return words(f"only {letter_of(who[0])}")
    if len(who) == len(pane.rows):
        return words("all equal")
    return words(f"{len(who)} of {len(pane.rows)} equal")

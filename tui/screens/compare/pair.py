"""Two candidates' sides of one hunk, and what the taken hunks add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.messages.explaining import letter_of
from engine.messages.results import verdict_of
from tui.ink import (
    BOLD,
    LINE,
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
    row_width,
    spread,
    words,
)
from tui.kit.syntax import code, inked_lines
from tui.screens.compare.model import ComparePane, Spot
from tui.words.cutting import cut_end
from tui.words.figures import some
from tui.words.wording import Marks, changed_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import CandidateHunkView


def side_rows(pane: ComparePane, column: int, other: int, cells: int) -> list[Row]:
    """Return a candidate's side of the hunk under the cursor, marked where another has it else."""
    spot, hunk = pane.spot, pane.hunk_of(pane.spot, column)
    is_taken = bool(hunk and spot and pane.is_taken(spot, hunk))
    said = "taken" if is_taken else "not taken" if hunk else "changed nothing here"
    name = chip(column, is_here=column == pane.column)
    head = (name, Span(f" {said} ", BOLD if is_taken else MUTED))
    rule = Span("─" * max(cells - row_width(head), 0), Ink(Role.ACCENT) if is_taken else LINE)
    rows: list[Row] = [clickable((*head, rule), f"column:{column}")]
    if hunk and hunk.what:
        rows.append(words(f"   {hunk.what}"))
    elif hunk:
        rows += context_rows(hunk.before, cells)
        rows += code_rows(hunk, pane.hunk_of(spot, other), cells)
        rows += context_rows(hunk.after, cells)
    return rows


def context_rows(lines: Sequence[str], cells: int) -> list[Row]:
    """Return lines round a hunk, which it leaves as they are."""
    room = cells - 6
    return [words(blank(6), Span(cut_end(line.rstrip(), room), MUTED)) for line in lines]


def code_rows(hunk: CandidateHunkView, other: CandidateHunkView | None, width: int) -> list[Row]:
    """The lines of a hunk, those marked that the other one has otherwise."""
    new = [line.removesuffix("\n") for line in hunk.new]
    others = [line.removesuffix("\n") for line in other.new] if other else []
    pieces = inked_lines(hunk.path, tuple(new))
    rows: list[Row] = []
    for at, line in enumerate(new):
        marks: Marks = ()
        if line not in others and at < len(others):
            marks = changed_words(others[at], line)[1]
        ground = Role.PANEL if line not in others else None
        number = str(hunk.line + at).rjust(5)
        body = code(pieces[at], marks, ground, Role.ADDED_WORD)
        rows.append((Span(f"{number} ", MUTED), *fit(body, width - 6, Ink(ground=ground))))
    if not new:
        gone = some(len(hunk.old), "line")
        rows.append(words(f"      removes {gone}"))
    return rows


def result_row(pane: ComparePane, cells: int) -> Row:
    """Say what the taken hunks add up to, and whether exactly that was checked."""
    parts: list[str | Span] = [Span(" RESULT ", BOLD)]
    for at in range(len(pane.rows)):
        count = sum(
            (hunk := pane.hunk_of(spot, at)) is not None
            and pane.is_taken(spot, hunk)
            and _owner(pane, spot, hunk) == at
            for spot in pane.spots
        )
        if count:
            parts += [
                Span("■ ", Ink(Role.ACCENT)),
                Span(f"{count}", TEXT),
                f" from {letter_of(at)}  ",
            ]
    if not pane.taken:
        parts.append("no hunk is taken")
    return grounded(spread(words(*parts), _result_check(pane), cells), Role.PANEL)


def _owner(pane: ComparePane, spot: Spot, hunk: CandidateHunkView) -> int:
    return next(at for at in range(len(pane.rows)) if pane.hunk_of(spot, at) is hunk)


def _result_check(pane: ComparePane) -> Row:
    if not pane.taken:
        return ()
    woven = pane.woven
    if woven is None or not pane.is_checked:
        stale = "stale, " if woven is not None else ""
        return words(Span("· ", Ink(Role.WAITING)), Span(f"check {stale}not run on it ", TEXT))
    if woven.worker is None:
        reason = cut_end(woven.reason or "these hunks conflict", 60)
        return words(Span("✗ ", Ink(Role.FAILED)), Span(f"{reason} ", TEXT))
    if woven.check is None:
        return words(f"{woven.worker} is ready; it has no check ")
    mark = Span("✓ ", Ink(Role.DONE)) if woven.check.passed else Span("✗ ", Ink(Role.FAILED))
    verdict = verdict_of(woven.check, is_stale=False, has_claimed=False)
    said = str(verdict or "check failed")
    return words(mark, Span(f"this composite, {woven.worker}: {said} ", TEXT))


def chip(column: int, *, is_here: bool) -> Span:
    """A candidate's letter; the one under the cursor is filled."""
    ink = Ink(Role.ON_FILL, Role.ACCENT) if is_here else Ink(Role.TEXT, Role.PANEL)
    return Span(f" {letter_of(column)} ", ink._replace(bold=True))

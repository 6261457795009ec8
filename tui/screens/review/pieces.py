"""A whole file as the merge makes it: whose every stretch is, and where both sides came close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, cut_row, fit, words
from tui.kit.meters import heading
from tui.kit.syntax import code, inked_lines
from tui.screens.review.rows import NUMBER
from tui.words.figures import MINUS, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import ConflictFileView, MergedFileView, PieceView
    from tui.screens.review.model import ReviewPane

_WHOSE = {"target": "t", "incoming": "i", "alike": "=", "own": "e", "conflict": "≠"}
_SHOWN = {"same": None, "conflict": Role.PANEL}
_BOTH = "both sides changed nearby lines here: git merged them, and nobody has looked"
_KINDS = {"A": "added", "D": "deleted", "M": "changed", "R": "moved", "T": "of another type"}


def merged_page(pane: ReviewPane, cells: int, *, context: int) -> list[Row]:
    """A file that git merged by itself, whole or folded."""
    view, merged = pane.shown, pane.merged
    if view is None or merged is None:
        return []
    who = "both sides" if merged.by == "both" else view.incoming
    rows: list[Row] = [
        fit((Span("✓ ", Ink(Role.ACCENT)), Span(merged.path, BOLD)), cells),
        words(f"  {_KINDS.get(merged.kind, 'changed')} by {who}, merged by git without a conflict"),
    ]
    if merged.near:
        rows.append(near_row(merged))
    rows.append(())
    looked_at = pane.looked_at.get(pane.raw_path)
    if looked_at is None:
        return [*rows, words("  Loading the file.")]
    if not looked_at.pieces:
        said = "It is gone." if merged.kind == "D" else "It is not text, so it cannot be shown."
        return [*rows, words(f"  {said}")]
    return rows + piece_rows(looked_at, cells, context=context)


def near_row(merged: MergedFileView) -> Row:
    """Return how often both sides came close to each other."""
    mark = Span("  ≈ ", Ink(Role.WAITING, bold=True))
    return words(mark, Span(f"{some(merged.near, 'place')} to look at: ", TEXT), _BOTH)


def file_page(pane: ReviewPane, cells: int, *, context: int) -> list[Row]:
    """The file of the conflict that is looked at, as it stands with what is decided so far."""
    looked_at = pane.looked_at.get(pane.raw_path)
    if looked_at is None or not looked_at.pieces:
        return []
    note = "the current result; t, i mark the side of a line, ≠ is open"
    return [
        (),
        heading("THE FILE", cells, note=note),
        *piece_rows(looked_at, cells, context=context),
    ]


def piece_rows(file: ConflictFileView, cells: int, *, context: int) -> list[Row]:
    """Every stretch of the file; what nobody changed is folded but for some lines beside it."""
    rows: list[Row] = []
    last = len(file.pieces) - 1
    for place, piece in enumerate(file.pieces):
        if piece.origin == "same":
            edges = (context if place else 0, context if place < last else 0)
            rows += _alike(file.path, piece, cells, edges)
        else:
            rows += _changed(file.path, piece, cells)
    return rows


def _alike(path: str, piece: PieceView, cells: int, edges: tuple[int, int]) -> list[Row]:
    head, tail = edges
    count = len(piece.lines)
    if count <= head + tail + 1:
        return _lines(path, piece, cells, (0, count))
    folded = some(count - head - tail, "line")
    unfolds = MUTED._replace(does="do:more")
    fold: Row = (Span(" " * NUMBER), Span(f"   ► {folded} as before", unfolds))
    return [
        *_lines(path, piece, cells, (0, head)),
        fold,
        *_lines(path, piece, cells, (count - tail, count)),
    ]


def _changed(path: str, piece: PieceView, cells: int) -> list[Row]:
    rows: list[Row] = []
    if piece.is_near:
        mark = Span(" " * NUMBER + " ≈ ", Ink(Role.WAITING, bold=True))
        rows.append((mark, Span("both sides changed nearby lines here", TEXT)))
    if piece.origin != "conflict":
        rows += _gone(path, piece.old, cells)
    return rows + _lines(path, piece, cells, (0, len(piece.lines)))


def _gone(path: str, old: Sequence[str], cells: int) -> list[Row]:
    pieces = inked_lines(path, tuple(old))
    room = cells - NUMBER - 3
    ground = Ink(ground=Role.REMOVED_GROUND)
    lead = Span(f" {MINUS} ", Ink(Role.REMOVED, Role.REMOVED_GROUND, bold=True))
    return [
        (
            Span(" " * NUMBER),
            lead,
            *fit(cut_row(code(each, (), Role.REMOVED_GROUND, Role.PANEL), room), room, ground),
        )
        for each in pieces
    ]


def _lines(path: str, piece: PieceView, cells: int, span: tuple[int, int]) -> list[Row]:
    ground = _SHOWN.get(piece.origin, Role.ADDED_GROUND)
    letter = Span(f" {_WHOSE.get(piece.origin, ' ')} ", KEY._replace(ground=ground))
    start, end = span
    room = cells - NUMBER - 3
    found: list[Row] = []
    for at, each in enumerate(inked_lines(path, piece.lines[start:end]), start):
        number = Span(str(piece.line + at).rjust(NUMBER - 1) + " ", MUTED)
        body = fit(cut_row(code(each, (), ground, Role.PANEL), room), room, Ink(ground=ground))
        found.append((number, letter, *body))
    return found

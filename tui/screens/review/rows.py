"""Rows of a review that card and columns share: a side's lines, the result's, the offers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui.ink import (
    BOLD,
    KEY,
    LINE,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    clickable,
    fit,
    grounded,
    moved,
    row_width,
    spread,
    words,
)
from tui.kit.lists import cursor_row
from tui.kit.syntax import changed_code, code, inked_change, inked_lines, signed
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import LETTERS, Offer, key_ideas, lines_of
from tui.words.cutting import cut_end
from tui.words.wording import Marks, changed_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.api import HunkView, LineView

NUMBER = 5
_UNTOLD = re.compile(r"Changes that .* did not commit|Work of .*, left uncommitted")
"""The subject of our commit of uncommitted work, now and in earlier versions.

It says nothing about what the work is.
"""
_LABEL = 36
_LABELS_FROM = 90


def side_rows(
    path: str, lines: Sequence[LineView], cells: int, *, scroll: int = 0, picked: Mapping[int, str]
) -> list[Row]:
    """A side's lines against the base; `picked` has a mark for those that are picked."""
    signs = tuple(line.sign for line in lines)
    pieces = inked_change(path, signs, tuple(line.text for line in lines))
    rows: list[Row] = []
    for at, line in enumerate(lines):
        inked = changed_code(pieces[at], line.sign, line.marks if line.sign != " " else ())
        lead = Span(picked.get(at, "  "), KEY)
        rows.append((lead, *signed(moved(inked, scroll, cells - 5), line.sign, cells - 2)))
    return rows


def beside_rows(
    path: str, lines: Sequence[str], others: Sequence[str], cells: int, *, is_target: bool
) -> list[Row]:
    """A side's own lines against the other side's, changed words marked; no base between them."""
    pieces = inked_lines(path, tuple(lines))
    word = Role.REMOVED_WORD if is_target else Role.ADDED_WORD
    rows: list[Row] = []
    for at, line in enumerate(lines):
        marks: Marks = ()
        if at < len(others):
            marks = changed_words(line, others[at])[0]
        rows.append(fit((Span("     "), *code(pieces[at], marks, Role.PANEL, word)), cells))
    return rows


def own_lines(lines: Sequence[LineView]) -> tuple[str, ...]:
    """Return what a side has, without what it took away."""
    return tuple(line.text for line in lines if line.sign != "-")


def result_rows(
    path: str, hunk: HunkView, text: str | None, cells: int, *, context: int, scroll: int = 0
) -> list[Row]:
    """Show what the file would have there, with lines around it, and whose each line is."""
    before = hunk.before[len(hunk.before) - min(context, len(hunk.before)) :]
    after = hunk.after[:context]
    middle = lines_of(text or "")
    whole = (*before, *middle, *after)
    pieces = inked_lines(path, whole)
    target, incoming = own_lines(hunk.target), own_lines(hunk.incoming)
    rows: list[Row] = []
    for at, line in enumerate(whole):
        number = str(hunk.line - len(before) + at).rjust(NUMBER - 1)
        place = at - len(before)
        is_ours = 0 <= place < len(middle)
        marks = _result_marks(hunk, line, place) if is_ours else ()
        ground = Role.PANEL if is_ours else None
        inked = code(pieces[at], marks, ground, Role.ADDED_WORD)
        whose = _whose(line, target, incoming, hunk.base) if is_ours else " "
        room = cells - NUMBER - 3
        body = moved(inked, scroll, room)
        lead = (Span(f"{number} ", MUTED), Span(f" {whose} ", KEY._replace(ground=ground)))
        rows.append((*lead, *fit(body, room, Ink(ground=ground))))
    if text is None:
        said = words(
            Span("      ? ", Ink(Role.CLASH, bold=True)), "open: you have chosen nothing here"
        )
        rows.insert(len(before), grounded(fit(said, cells), Role.PANEL))
    elif not middle:
        said = words("        no lines here")
        rows.insert(len(before), grounded(fit(said, cells), Role.PANEL))
    return rows


def first_lines(text: str | None, most: int) -> str | None:
    """The beginning of a text: what does not fit on the screen is not drawn either."""
    if text is None or text.count("\n") <= most:
        return text
    return "".join(text.splitlines(keepends=True)[:most])


def _result_marks(hunk: HunkView, line: str, place: int) -> Marks:
    if line in hunk.base or place >= len(hunk.base):
        return ()
    return changed_words(hunk.base[place], line)[1]


def _whose(line: str, target: Sequence[str], incoming: Sequence[str], base: Sequence[str]) -> str:
    """A letter for where a line comes from; `*` where none of the three has it."""
    if line in base:
        return " "
    if line in target:
        return " " if line in incoming else "t"
    return "i" if line in incoming else "*"


def offer_rows(
    pane: ReviewPane, cells: int, height: int, keys: Mapping[str, str], *, has_notes: bool = True
) -> list[Row]:
    """The offers round the cursor, as many as there is room for; each can be clicked."""
    count = len(pane.offers)
    shown = min(height, count)
    top = max(min(pane.cursor - shown // 2, count - shown), 0)
    ideas = key_ideas(pane.offers)
    return [
        clickable(
            _offer_row(
                offer if has_notes else offer._replace(note=""),
                cells,
                keys.get(ideas[index], ""),
                is_here=index == pane.cursor,
            ),
            f"offer:{index}",
        )
        for index, offer in enumerate(pane.offers[top : top + shown], top)
    ]


def _offer_row(offer: Offer, cells: int, key: str, *, is_here: bool) -> Row:
    ink = KEY if key and not offer.reason else MUTED
    key = key or "·"
    if offer.remembered:
        ink = Ink(Role.WAITING, bold=True)
    label = BOLD if is_here else MUTED if offer.reason else TEXT
    note = f"not here: {offer.reason}" if offer.reason else offer.note
    lead = fit((Span(key.rjust(2), ink), Span("  ")), 4)
    if cells >= _LABELS_FROM:
        name = fit((Span(cut_end(offer.label, _LABEL - 2), label),), _LABEL)
        row = (*lead, *name, Span(cut_end(note, cells - _LABEL - 8), MUTED))
    else:
        left = cut_end(offer.label, cells - 8)
        row = spread((*lead, Span(left, label)), (Span(note, MUTED),), cells - 2)
        if row_width(words(left)) + len(note) + 8 > cells:
            row = (*lead, Span(left, label), Span("  "), Span(note, MUTED))
    return cursor_row(row, cells, is_focused=is_here)


def side_head(letter: str, name: str, said: str, cells: int, *, is_target: bool) -> Row:
    """`t  main  since base`: the key of a side as a chip, whose it is, what is said of it.

    A click on the chip or the name takes the side.
    """
    ground = Role.MUTED if is_target else Role.ACCENT
    chip = Span(f" {letter} ", Ink(Role.ON_FILL, ground, bold=True))
    does = "key:take_target" if is_target else "key:take_incoming"
    named = clickable((chip, Span(" "), Span(name, BOLD)), does)
    return fit((*named, Span(f"  {said}", MUTED)), cells)


def since(pane: ReviewPane, *, is_target: bool, cells: int) -> str:
    """Say of a side what its newest commit here says it is for."""
    view, file = pane.shown, pane.file
    if view is None:
        return "since base"
    of_file = (file.target_commits if is_target else file.incoming_commits) if file else ()
    commits = (*of_file, *(view.target_commits if is_target else view.incoming_commits))
    said = next((c.subject for c in commits if not _UNTOLD.fullmatch(c.subject)), "")
    said = said or pane.prompts.get(view.target if is_target else view.incoming, "")
    return cut_end(f"since base: “{said}”", max(cells, len("since base"))) if said else "since base"


def edge_map(pane: ReviewPane, height: int) -> list[Span]:
    """The right edge: every matter in its place, open or by the letter of what was chosen."""
    rows: list[Span] = [Span("│", LINE)] * height
    matters = pane.to_decide
    count = max(len(matters), 1)
    for index, matter in enumerate(matters):
        at = min(index * height // count, height - 1)
        letter = "≠" if matter.is_open else LETTERS.get(matter.decided, "✓")
        ink = Ink(Role.CLASH, bold=True) if matter.is_open else Ink(Role.ACCENT)
        ink = ink._replace(does=f"matter:{index}")
        if rows[at].text != "│" and not matter.is_open:
            continue
        rows[at] = Span(letter, ink)
    if pane.at >= count:
        return rows
    here = min(pane.at * height // count, height - 1)
    mark = rows[here].text if rows[here].text != "│" else "┃"
    rows[here] = Span(mark, Ink(Role.FOCUS, Role.SELECTION, bold=True))
    return rows

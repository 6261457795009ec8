"""The rows of a diff, inked: heads of files and hunks, lines with changed words, comments."""

import re
from dataclasses import dataclass
from itertools import zip_longest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tui.ink import (
    BOLD,
    LINE,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    fit,
    grounded,
    moved,
    row_width,
    slice_row,
    spread,
    width_of,
    words,
)
from tui.kit.syntax import Piece, changed_code, inked_change, signed
from tui.kit.wording import Marks, changed_words, pairs_of
from tui.screens.diff.layout import Part, Place, Shape, left_out_of, seen_of
from tui.screens.diff.shifted import Spot
from tui.words.clean import clean_code
from tui.words.comments import Comment
from tui.words.cutting import cut_end, cut_path, wrap
from tui.words.figures import MINUS, some

_STRETCH = 100
"""So many lines are lexed at once."""
_NUMBER = 5
_NO_END = " \\ no line end"
_MOST_ROWS = 400
"""So many rows of one line are drawn: a file of one line could fill the whole view for ever."""


def code_columns(part: Part | None, cells: int, *, is_old: bool) -> tuple[int, int]:
    """Return the first column of the code of a row, and the one behind its last."""
    if part is Part.LINE:
        return 2 * _NUMBER + 4, cells
    if part is not Part.PAIR:
        return 1, cells
    width = (cells - 3) // 2
    return (_NUMBER + 4, width) if is_old else (width + 3 + _NUMBER + 4, cells)


def line_room(cells: int) -> int:
    """Return the cells of the code of a row that shows one line."""
    return max(cells - 2 * _NUMBER - 5, 1)


def side_room(cells: int) -> int:
    """Return the cells of the code of one side of a row that shows two lines."""
    return max(cells - _NUMBER - 5, 1)


def height_of(line: DiffLine, room: int) -> int:
    """Return the rows that a line takes where long ones go on: only what changed has several."""
    if line.sign is Sign.KEPT:
        return 1
    cells = width_of(line.text) + (0 if line.has_newline else len(_NO_END))
    return min(max(-(-cells // room), 1), _MOST_ROWS)


@dataclass(kw_only=True)
class DiffPainter:
    """Inks rows of one diff. `scroll` is how far code is moved to the left."""

    diff: ChangeDiff
    shape: Shape
    scroll: int = 0
    shows_blanks: bool = False
    wraps: bool = False
    query: str = ""

    def rows(self, place: Place, cells: int, *, is_here: bool) -> list[Row]:
        """The rows of a place; only a comment, or a wrapped line, has more than one."""
        rows = self._drawn(place, cells)
        return [_pointed(row) for row in rows] if is_here else rows

    def _drawn(self, place: Place, cells: int) -> list[Row]:
        file = self.diff.files[place.file]
        match place.part:
            case Part.FILE:
                return [self._file_row(place, file, cells)]
            case Part.NOTE:
                note = file.note or f"{file.kind}, nothing to show line by line"
                return [fit(words(f"   {note}"), cells)]
            case Part.HUNK:
                return [self._hunk_row(place, file, cells)]
            case Part.LINE:
                return self._unified(file, place, cells)
            case Part.PAIR:
                return self._beside(place, cells)
            case Part.COMMENT:
                comment = self.shape.comments[place.other]
                return comment_rows(comment, cells, is_stale=place.hunk < 0)
            case Part.BLANK:
                return [fit((), cells)]

    def _file_row(self, place: Place, file: FileDiff, cells: int) -> Row:
        seen, whole = seen_of(self.diff, place.file, self.shape.seen)
        name = f"{file.old_path} → {file.path}" if file.old_path else file.path
        left = words(Span(f" {cut_path(name, cells - 30)}", BOLD), f"  {file.kind}")
        if self.shape.is_folded_file(file):
            why = "generated, " if file.is_generated else "huge, " if file.is_huge else ""
            left = words(*left, f"  ► {why}folded")
        elif file.is_generated:
            left = words(*left, "  generated")
        if told := self.shape.told.get(file.path):
            left = words(*left, Span(f"  {told}", Ink(Role.ACCENT)))
        out = left_out_of(self.diff, place.file, self.shape.left_out)
        if out:
            left = words(*left, Span(f"  ✗ {out} left out", Ink(Role.REMOVED, bold=True)))
        right = words(
            *_counts(file.added, file.removed),
            f"   {seen} of {some(whole, 'hunk')} seen " if file.hunks else f"   {_seen(seen)} ",
        )
        return spread(left, right, cells)

    def _hunk_row(self, place: Place, file: FileDiff, cells: int) -> Row:
        hunk = file.hunks[place.hunk]
        key = self.diff.keys[place.file][place.hunk]
        is_out = key in self.shape.left_out
        is_seen = key in self.shape.seen or is_out
        mark = Span("✓ seen", MUTED) if is_seen else Span("○ new ", TEXT)
        if is_out:
            mark = Span("✗ left out", Ink(Role.REMOVED, bold=True))
        where = hunk.where or f"line {hunk.lines[0].new or hunk.lines[0].old or 1}"
        note = "  only white space" if hunk.is_blank_only else ""
        note += self._moved(place, hunk)
        chosen = self.shape.chosen(file, hunk)
        by = (Span(f"  ≠ {chosen}", Ink(Role.ACCENT)),) if chosen else ()
        left = words(" ", mark, "  ", Span(where, MUTED if is_seen else BOLD), note, *by)
        right = words(
            f"hunk {place.hunk + 1} of {len(file.hunks)}  ", *_counts(hunk.added, hunk.removed), " "
        )
        return spread(left, right, cells)

    def _moved(self, place: Place, hunk: Hunk) -> str:
        """Say how much of a hunk was moved, and from where or to where."""
        told: dict[str, int] = {}
        for at, line in enumerate(hunk.lines):
            spot = self.shape.moves.get(Spot(place.file, place.hunk, at))
            if spot is not None:
                other = self.diff.files[spot.file]
                way = "from" if line.sign is Sign.ADDED else "to"
                where = other.path.rpartition("/")[2]
                told[f"{way} {where}"] = told.get(f"{way} {where}", 0) + 1
        return "".join(f"  » {some(count, 'line')} moved {way}" for way, count in told.items())

    def _unified(self, file: FileDiff, place: Place, cells: int) -> list[Row]:
        line = file.hunks[place.hunk].lines[place.line]
        numbers = f" {_number(line.old)} {_number(line.new)} "
        room = line_room(cells)
        codes = self._codes(file, place.hunk, place.line, room)
        is_moved = Spot(place.file, place.hunk, place.line) in self.shape.moves
        return [
            (
                Span(" " * len(numbers) if at else numbers, MUTED),
                *signed(code, line.sign, room + 4, is_more=at > 0, is_moved=is_moved),
            )
            for at, code in enumerate(codes)
        ]

    def _beside(self, place: Place, cells: int) -> list[Row]:
        width = (cells - 3) // 2
        left = self._side(place, place.line, width, is_old=True)
        right = self._side(place, place.other, cells - 3 - width, is_old=False)
        blanks = (fit((), width), fit((), cells - 3 - width))
        rows = zip_longest(left, right)
        return [(*(one or blanks[0]), Span(" │ ", LINE), *(two or blanks[1])) for one, two in rows]

    def _side(self, place: Place, line: int, cells: int, *, is_old: bool) -> list[Row]:
        file = self.diff.files[place.file]
        if line < 0:
            return [(Span("╱" * cells, LINE),)]  # noqa: RUF001 - the sign for "no line here"
        given = file.hunks[place.hunk].lines[line]
        number = f" {_number(given.old if is_old else given.new)} "
        is_moved = Spot(place.file, place.hunk, line) in self.shape.moves
        return [
            (
                Span(" " * len(number) if at else number, MUTED),
                *signed(code, given.sign, cells - 6, is_more=at > 0, is_moved=is_moved),
            )
            for at, code in enumerate(self._codes(file, place.hunk, line, side_room(cells)))
        ]

    def _codes(self, file: FileDiff, hunk: int, line: int, cells: int) -> list[Row]:
        """The code of a line with syntax and changed words: cut at the edge, or in several rows."""
        given = file.hunks[hunk].lines[line]
        marks = self._marks(file.hunks[hunk], line)
        row = changed_code(self._pieces(file, hunk, line), given.sign, marks)
        if self.shows_blanks:
            row = tuple(Span(span.text.replace(" ", "·"), span.ink) for span in row)
        row = _ended(row, given)
        if self.query:
            row = lit(row, self.query)
        count = height_of(given, cells) if self.wraps else 1
        if count == 1:
            return [moved(row, self.scroll, cells)]
        return [slice_row(row, at * cells, (at + 1) * cells) for at in range(count)]

    def _pieces(self, file: FileDiff, hunk: int, line: int) -> tuple[Piece, ...]:
        start = line - line % _STRETCH
        stretch = file.hunks[hunk].lines[start : start + _STRETCH]
        signs, texts = tuple(each.sign for each in stretch), tuple(each.text for each in stretch)
        return inked_change(file.path, signs, texts)[line - start]

    def _marks(self, hunk: Hunk, line: int) -> Marks:
        given = hunk.lines[line]
        if given.sign is Sign.KEPT:
            return ()
        other = pairs_of(hunk).get(line)
        if other is None:
            return ()
        if given.sign is Sign.REMOVED:
            return changed_words(given.text, hunk.lines[other].text)[0]
        return changed_words(hunk.lines[other].text, given.text)[1]


def _ended(row: Row, line: DiffLine) -> Row:
    """The row with what its end hides: blanks that were added there, and a missing line end."""
    text = line.text
    hidden = len(text) - len(text.rstrip(" "))
    if line.sign is Sign.ADDED and hidden:
        cells = row_width(row) - hidden
        row = (*slice_row(row, 0, cells), Span("·" * hidden, Ink(Role.TEXT, Role.ADDED_WORD)))
    return row if line.has_newline else (*row, Span(_NO_END, MUTED))


def lit(row: Row, query: str) -> Row:
    """The row with every hit of what is searched for filled."""
    text = "".join(span.text for span in row)
    flags = 0 if query != query.casefold() else re.IGNORECASE
    fill = Ink(Role.ON_WAITING, Role.WAITING_FILL, bold=True)
    lit_row: list[Span] = []
    at = 0
    for found in re.finditer(re.escape(query), text, flags):
        start, end = width_of(text[: found.start()]), width_of(text[: found.end()])
        lit_row += [*slice_row(row, at, start), Span(found[0], fill)]
        at = end
    return (*lit_row, *slice_row(row, at, row_width(row))) if lit_row else row


def comment_rows(comment: Comment, cells: int, *, is_stale: bool = False) -> list[Row]:
    """A comment in its box under the line it is about."""
    width = max(min(cells - 16, 80), 20)
    ink = Ink(Role.ACCENT)
    lead = Span(" " * 12)
    state = "sent" if comment.is_sent else "not sent yet"
    if comment.suggestion is not None and not comment.is_sent:
        state = "not sent yet; a applies it"
    state = f"{state}, the code has changed since" if is_stale else state
    lines = f"line {comment.number}"
    if comment.suggestion is not None and comment.first < comment.number:
        lines = f"lines {comment.first} to {comment.number}"
    what = "you suggest" if comment.suggestion is not None else "you"
    title = f" {what}, {lines} "
    rows: list[Row] = [(lead, Span(f"╭─{title}{'─' * (width - len(title) - 3)}╮", ink))]
    if is_stale:
        quoted = cut_end(comment.code.split("\n")[0].strip(), width - 4)
        rows.append(
            (lead, Span("│ ", ink), *fit((Span(quoted, MUTED),), width - 4), Span(" │", ink))
        )
    if comment.suggestion is not None:
        changed = [(f"{MINUS} ", line, Role.REMOVED) for line in comment.code.split("\n")]
        changed += [("+ ", line, Role.ADDED) for line in comment.suggestion.split("\n")]
        rows += [
            (lead, Span("│ ", ink), *fit((Span(text, Ink(role)),), width - 4), Span(" │", ink))
            for sign, line, role in changed
            for text in wrap(f"{sign}{clean_code(line)}", width - 4)
        ]
    if comment.text or comment.suggestion is None:
        rows += [
            (lead, Span("│ ", ink), *fit((Span(text, TEXT),), width - 4), Span(" │", ink))
            for text in wrap(comment.text, width - 4)
        ]
    rows.append(
        (
            lead,
            Span(f"╰{'─' * (width - len(state) - 5)} ", ink),
            Span(state, MUTED),
            Span(" ─╯", ink),
        )
    )
    return [fit(row, cells) for row in rows]


def _pointed(row: Row) -> Row:
    """The row under the cursor: a bar in its first cell, and a ground where it has none."""
    rest = slice_row(row, 1, row_width(row))
    return grounded((Span("▌", Ink(Role.FOCUS)), *rest), Role.SELECTION)


def _counts(added: int, removed: int) -> Row:
    row: list[Span] = []
    if added:
        row.append(Span(f"+{added}", Ink(Role.ADDED)))
    if removed:
        row += [Span(" " if added else ""), Span(f"{MINUS}{removed}", Ink(Role.REMOVED))]
    return tuple(row)


def _seen(count: int) -> str:
    return "✓ seen" if count else "○ new"


def _number(number: int | None) -> str:
    return str(number if number is not None else "").rjust(_NUMBER - 1)

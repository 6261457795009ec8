"""The rows of a diff, inked: heads of files and hunks, lines with changed words, comments."""

import re
from collections.abc import Iterable, Iterator, Sequence
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
from tui.screens.diff.fates import rows_of
from tui.screens.diff.layout import Part, Place, Shape, left_out_of, seen_of, stretch_of
from tui.screens.diff.threads import thread_rows
from tui.words.clean import TAB_SIGN, plain_line, with_signs
from tui.words.cutting import cut_path
from tui.words.figures import MINUS, some
from tui.words.shifted import Spot
from tui.words.wording import Marks, changed_blanks, changed_words

_ONE_COLUMN = frozenset({Part.LINE, Part.WAS})
_STRETCH = 100
"""So many lines are lexed at once."""
_NUMBER = 5
_BEFORE_PATH, _SHORTEST_PATH = 23, 8
_NO_END = " \\ no newline at end"


def code_columns(part: Part | None, cells: int, *, is_old: bool) -> tuple[int, int]:
    """Return the first column of the code of a row, and the one behind its last."""
    if part in _ONE_COLUMN:
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
    cells = width_of(plain_line(line.text)) + (0 if line.has_newline else len(_NO_END))
    return max(-(-cells // room), 1)


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
                note = file.note or f"{file.kind}, no lines to show"
                return [fit(words(f"   {note}"), cells)]
            case Part.UNIT:
                return [self._unit_row(place, cells)]
            case Part.HUNK:
                return [self._hunk_row(place, file, cells)]
            case Part.COMMENT:
                key, is_stale = self.shape.key_to_apply, place.hunk < 0
                return thread_rows(self.shape.thread(place), cells, key, is_stale=is_stale)
            case Part.BLANK:
                return [fit((), cells)]
            case _:
                return self._code_rows(place, cells)

    def _code_rows(self, place: Place, cells: int) -> list[Row]:
        match place.part:
            case Part.PAIR:
                return self._beside(place, cells)
            case Part.MOVED:
                return [self._moved_row(place, cells)]
            case Part.WAS:
                return self._unified(self._was(place), cells)
            case _:
                return self._unified(Spot(*place[1:4]), cells)

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

    def _unit_row(self, place: Place, cells: int) -> Row:
        """Say what became of a function, and where it stands."""
        name, said = rows_of(self.shape.fates[place.file])[place.other]
        return fit(words("   ", Span(name, TEXT), f"  {said}"), cells)

    def _hunk_row(self, place: Place, file: FileDiff, cells: int) -> Row:
        hunk = file.hunks[place.hunk]
        key = self.diff.keys[place.file][place.hunk]
        is_out = key in self.shape.left_out
        is_seen = key in self.shape.seen or is_out
        mark = Span("✓ seen", MUTED) if is_seen else Span("○ new ", TEXT)
        if is_out:
            mark = Span("✗ left out", Ink(Role.REMOVED, bold=True))
        where = hunk.where or f"line {hunk.lines[0].new or hunk.lines[0].old or 1}"
        note = "  only whitespace" if hunk.is_blank_only else ""
        if not note and self.shape.is_only_set(place.file, hunk):
            note = "  reformatted only"
        note += self._moved(place, hunk) if self.shape.is_folded(key, hunk, place.file) else ""
        chosen = self.shape.chosen(file, hunk)
        by = (Span(f"  ≠ {chosen}", Ink(Role.ACCENT)),) if chosen else ()
        left = words(" ", mark, "  ", Span(where, MUTED if is_seen else BOLD), note, *by)
        right = words(
            f"hunk {place.hunk + 1} of {len(file.hunks)}  ", *_counts(hunk.added, hunk.removed), " "
        )
        return spread(left, right, cells)

    def _moved(self, place: Place, hunk: Hunk) -> str:
        """Say how much of a folded hunk was moved, and from where or to where."""
        told: dict[str, int] = {}
        for at, line in enumerate(hunk.lines):
            spot = self.shape.moves.lines.get(Spot(place.file, place.hunk, at))
            if spot is not None:
                other = self.diff.files[spot.file]
                way = "from" if line.sign is Sign.ADDED else "to"
                where = other.path.rpartition("/")[2]
                told[f"{way} {where}"] = told.get(f"{way} {where}", 0) + 1
        return "".join(f"  » {some(count, 'line')} moved {way}" for way, count in told.items())

    def _moved_row(self, place: Place, cells: int) -> Row:
        """Say of a moved block where the other place is, how long it is, and what differs."""
        move = self.shape.moves.of[Spot(*place[1:4])]
        here = stretch_of(self.diff, self.shape.moves, place)
        is_new = here is move.new
        other = move.old if is_new else move.new
        line = self.diff.files[place.file].hunks[place.hunk].lines[place.line]
        path = self.diff.files[other.first.file].path
        said = [some(here.size, "line")]
        if move.deeper:
            said.append(f"indented {'+' if move.deeper > 0 else MINUS}{abs(move.deeper)}")
        if move.edits:
            said.append(f"{move.changed} changed{'' if is_new else ' there'}")
        elif not move.deeper:
            said.append("unchanged")
        way, rest = "from" if is_new else "to", f"{other.number}, {', '.join(said)}"
        room = max(cells - len(way) - len(rest) - _BEFORE_PATH, _SHORTEST_PATH)
        name = "line " if other.first.file == place.file else f"{cut_path(path, room)}:"
        text = f" moved {way} {name}{rest}"
        row = changed_code(((text, Role.COMMENT),), line.sign, ())
        numbers = Span(f" {_number(line.old)} {_number(line.new)} ", MUTED)
        return fit((numbers, *signed(row, line.sign, cells - 11, is_moved=True)), cells)

    def _was(self, place: Place) -> Spot:
        """Return where the line stood that a line of a moved block was."""
        old = self.shape.moves.of[Spot(*place[1:4])].old.first
        return old._replace(line=place.other)

    def _unified(self, spot: Spot, cells: int) -> list[Row]:
        line = self._line(spot)
        numbers = f" {_number(line.old)} {_number(line.new)} "
        room = line_room(cells)
        is_moved = spot in self.shape.moves.lines
        return [
            (
                Span(" " * len(numbers) if at else numbers, MUTED),
                *signed(code, line.sign, room + 4, is_more=at > 0, is_moved=is_moved),
            )
            for at, code in enumerate(self._codes(spot, room))
        ]

    def _beside(self, place: Place, cells: int) -> list[Row]:
        width = (cells - 3) // 2
        left = self._side(place, place.line, width, is_old=True)
        right = self._side(place, place.other, cells - 3 - width, is_old=False)
        blanks = (fit((), width), fit((), cells - 3 - width))
        rows = zip_longest(left, right)
        return [(*(one or blanks[0]), Span(" │ ", LINE), *(two or blanks[1])) for one, two in rows]

    def _side(self, place: Place, line: int, cells: int, *, is_old: bool) -> list[Row]:
        if line < 0:
            return [(Span("╱" * cells, LINE),)]  # noqa: RUF001 - the sign for "no line here"
        spot = Spot(place.file, place.hunk, line)
        given = self._line(spot)
        number = f" {_number(given.old if is_old else given.new)} "
        is_moved = spot in self.shape.moves.lines
        return [
            (
                Span(" " * len(number) if at else number, MUTED),
                *signed(code, given.sign, cells - 6, is_more=at > 0, is_moved=is_moved),
            )
            for at, code in enumerate(self._codes(spot, side_room(cells)))
        ]

    def _codes(self, spot: Spot, cells: int) -> list[Row]:
        """The code of a line with syntax and changed words: cut at the edge, or in several rows."""
        given = self._line(spot)
        partner = self._partner(spot, given)
        marks, shown = _marks(given, partner), _with_blanks(given, partner)
        if self.shows_blanks:
            shown = with_signs(given.text)
        row = _ended(changed_code(self._pieces(spot, shown), given.sign, marks), given)
        if self.query:
            row = lit(row, self.query)
        count = height_of(given, cells) if self.wraps else 1
        if count == 1:
            return [moved(row, self.scroll, cells)]
        return [slice_row(row, at * cells, (at + 1) * cells) for at in range(count)]

    def _line(self, spot: Spot) -> DiffLine:
        return self.diff.files[spot.file].hunks[spot.hunk].lines[spot.line]

    def _pieces(self, spot: Spot, shown: str) -> Sequence[Piece]:
        """Return a line with its syntax, its blanks as they are to be shown."""
        file = self.diff.files[spot.file]
        start = spot.line - spot.line % _STRETCH
        stretch = file.hunks[spot.hunk].lines[start : start + _STRETCH]
        signs = tuple(each.sign for each in stretch)
        texts = tuple(plain_line(each.text) for each in stretch)
        pieces = inked_change(file.path, signs, texts)[spot.line - start]
        return pieces if shown == texts[spot.line - start] else tuple(_respelled(pieces, shown))

    def _partner(self, spot: Spot, given: DiffLine) -> DiffLine | None:
        """Return what a changed line was, or became: of a moved one, where it stood or stands."""
        if given.sign is Sign.KEPT:
            return None
        other = self.shape.moves.partners.get(spot)
        if other is None:
            hunk = self.diff.files[spot.file].hunks[spot.hunk]
            at = self.shape.partners(spot.file, spot.hunk, hunk).get(spot.line)
            other = None if at is None else spot._replace(line=at)
        return None if other is None else self._line(other)


def _respelled(pieces: Iterable[Piece], text: str) -> Iterator[Piece]:
    """Yield pieces with another text of the same length."""
    at = 0
    for piece, role in pieces:
        yield text[at : at + len(piece)], role
        at += len(piece)


def _marks(given: DiffLine, partner: DiffLine | None) -> Marks:
    """Return what of a line changed: its words, or the blanks where all words are the same."""
    if partner is None:
        return ()
    if (blanks := changed_blanks(given.text, partner.text)) is not None:
        return (blanks,) if blanks[0] < blanks[1] else ()
    if given.sign is Sign.REMOVED:
        return changed_words(given.text, partner.text)[0]
    return changed_words(partner.text, given.text)[1]


def _with_blanks(given: DiffLine, partner: DiffLine | None) -> str:
    """Return a line as it is shown: with signs for the blanks that are what changed."""
    plain = plain_line(given.text)
    if partner is None or given.text == partner.text:
        return plain
    start, end = changed_blanks(given.text, partner.text) or _odd_indent(given, partner)
    return f"{plain[:start]}{with_signs(given.text)[start:end]}{plain[end:]}"


def _odd_indent(given: DiffLine, partner: DiffLine) -> tuple[int, int]:
    """Return the indent of a line where tabs and blanks took each other's place in it."""
    indents = [line.text[: len(line.text) - len(line.text.lstrip())] for line in (given, partner)]
    has_tab = [TAB_SIGN in indent for indent in indents]
    return (0, len(indents[0])) if has_tab[0] != has_tab[1] and all(indents) else (0, 0)


def _ended(row: Row, line: DiffLine) -> Row:
    """The row with what its end hides: blanks that were added there, and a missing line end."""
    text = line.text
    hidden = len(text) - len(text.rstrip())
    if line.sign is Sign.ADDED and hidden:
        blanks = Span(with_signs(text)[-hidden:], Ink(Role.TEXT, Role.ADDED_WORD))
        row = (*slice_row(row, 0, row_width(row) - hidden), blanks)
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

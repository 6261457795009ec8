"""Define rows of text with roles for colors; every screen makes them before Textual draws them.

A row is a tuple of spans; a span is text with one ink; an ink names roles, never colors.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, east_asian_width

if TYPE_CHECKING:  # the first frame needs nothing of the engine
    from engine.terminal.pens import Pen

_FEW = 24
_SHORT = 400
"""Longer texts are foreign lines, which are not worth remembering."""


class Role(StrEnum):
    """Name what a color is for. A theme gives each of them a value."""

    BACKGROUND = "background"
    SURFACE = "surface"
    PANEL = "panel"
    LINE = "line"
    TEXT = "text"
    MUTED = "muted"
    ACCENT = "accent"
    FOCUS = "focus"
    SELECTION = "selection"
    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    LIMIT = "limit"
    CLASH = "clash"
    ADDED = "added"
    REMOVED = "removed"
    ADDED_GROUND = "added_ground"
    REMOVED_GROUND = "removed_ground"
    ADDED_WORD = "added_word"
    REMOVED_WORD = "removed_word"
    WAITING_FILL = "waiting_fill"
    ON_WAITING = "on_waiting"
    ON_FILL = "on_fill"
    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    DEFINITION = "definition"
    TYPE = "type"
    METER = "meter"
    STRIP = "strip"
    ACCENT_DEEP = "accent_deep"


class Ink(NamedTuple):
    """Say how a span is drawn: a role for the text, perhaps one for its ground, and weight.

    `is_selected` says that the mouse selected it, `does` what a click on it means. Only what a
    program in a terminal drew has a `pen`: its colors are the program's own, and win.
    """

    role: Role = Role.TEXT
    ground: Role | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    is_selected: bool = False
    does: str = ""
    pen: "Pen | None" = None


class Span(NamedTuple):
    """Text of one ink."""

    text: str
    ink: Ink = Ink()


Row = tuple[Span, ...]

TEXT = Ink()
MUTED = Ink(Role.MUTED)
BOLD = Ink(bold=True)
KEY = Ink(Role.ACCENT, bold=True)
LINE = Ink(Role.LINE)


_ODD_WIDTHS = (
    (0x1160, 0x11FF, 0),  # Hangul vowels and finals, which join the letter before them
    (0xD7B0, 0xD7FB, 0),
    (0x2630, 0x2637, 2),  # symbols that became wide after this Python's tables were made
    (0x268A, 0x268F, 2),
    (0x4DC0, 0x4DFF, 2),
    (0x1D300, 0x1D356, 2),
    (0x1D360, 0x1D376, 2),
    (0x1F3FB, 0x1F3FF, 0),  # skin tones, which join the sign before them
)
"""Widths that the terminal library, which lays rows out, counts otherwise than Unicode does."""


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if category(char) in {"Mn", "Me", "Mc"}:
        return 0
    code = ord(char)
    for first, last, cells in _ODD_WIDTHS:
        if first <= code <= last:
            return cells
    return 2 if east_asian_width(char) in {"W", "F"} else 1


def width_of(text: str) -> int:
    """Return how many cells a cleaned text takes."""
    if text.isascii():
        return len(text)
    return _known_width(text) if len(text) <= _SHORT else _counted(text)


@lru_cache(maxsize=4096)
def _known_width(text: str) -> int:
    """Frames, meters and names: a page asks for the width of the same few again and again."""
    return _counted(text)


def _counted(text: str) -> int:
    return sum(1 if char < "\u0300" else _char_width(char) for char in text)


def row_width(row: Iterable[Span]) -> int:
    """Return how many cells a row takes."""
    cells = 0
    for text, _ in row:  # half of what drawing a page costs, so nothing is called for plain text
        cells += len(text) if text.isascii() else width_of(text)
    return cells


def head_of(text: str, cells: int) -> str:
    """The longest beginning of `text` that fits into so many cells."""
    if text.isascii():
        return text[: max(cells, 0)]
    used = 0
    for index, char in enumerate(text):
        used += _char_width(char)
        if used > cells:
            return text[:index]
    return text


def tail_of(text: str, cells: int) -> str:
    """The longest end of `text` that fits into so many cells."""
    if cells <= 0:
        return ""
    if text.isascii():
        return text[-cells:]
    used = 0
    for index in range(len(text) - 1, -1, -1):
        used += _char_width(text[index])
        if used > cells:
            return text[index + 1 :]
    return text


def blank(cells: int, ink: Ink = TEXT) -> Span:
    """So many empty cells."""
    return Span(" " * max(cells, 0), ink)


def cut_row(row: Iterable[Span], cells: int) -> Row:
    """A row cut to so many cells; what is cut off loses its end to `…`."""
    spans = tuple(row)
    return spans if row_width(spans) <= cells else _cut(spans, cells)


def _cut(spans: Row, cells: int) -> Row:
    kept: list[Span] = []
    left = cells - 1
    for span in spans:
        taken = head_of(span.text, left)
        kept.append(Span(taken, span.ink))
        left -= width_of(taken)
        if taken != span.text:
            kept.append(Span("…", span.ink))
            break
    return tuple(kept) if cells > 0 else ()


def fit(row: Iterable[Span], cells: int, ink: Ink = TEXT) -> Row:
    """A row of exactly so many cells: cut, or padded at its end."""
    spans = tuple(row)
    missing = cells - row_width(spans)
    if missing < 0:
        spans = _cut(spans, cells)
        missing = cells - row_width(spans)
    return (*spans, blank(missing, ink)) if missing > 0 else spans


def spread(left: Iterable[Span], right: Iterable[Span], cells: int, ink: Ink = TEXT) -> Row:
    """Left part, blanks, right part: exactly so many cells; the left part is cut first."""
    ending = cut_row(right, cells)
    room = cells - row_width(ending)
    gap = 2 if ending and room > 2 else 0  # noqa: PLR2004 - two blanks keep the parts apart
    beginning = cut_row(left, room - gap)
    return (*beginning, blank(room - row_width(beginning), ink), *ending)


def grounded(row: Iterable[Span], ground: Role) -> Row:
    """The row on a ground; spans that have one of their own keep it."""
    return tuple(
        span if span.ink.ground else Span(span.text, _on_ground(span.ink, ground)) for span in row
    )


def clickable(row: Iterable[Span], does: str) -> Row:
    """The row as what means something when it is clicked; spans that mean something keep it."""
    return tuple(
        span if span.ink.does else Span(span.text, that_does(span.ink, does)) for span in row
    )


@lru_cache(maxsize=1024)
def _on_ground(ink: Ink, ground: Role) -> Ink:
    """Return the ink on a ground: rows ask for the same few again and again."""
    return ink._replace(ground=ground)


@lru_cache(maxsize=4096)
def that_does(ink: Ink, does: str) -> Ink:
    """Return the ink with what a click on it means."""
    return ink._replace(does=does)


def words(*parts: str | Span) -> Row:
    """A row from spans and plain words, the plain ones in muted ink."""
    return tuple(part if isinstance(part, Span) else Span(part, MUTED) for part in parts)


def slice_row(row: Row, start: int, stop: int) -> Row:
    """The cells from `start` up to `stop` of a row; a wide character cut in two becomes a blank."""
    kept: list[Span] = []
    at = 0
    for text, ink in row:
        cells = width_of(text)
        if at + cells > start and at < stop:
            kept.append(Span(_slice_text(text, start - at, stop - at), ink))
        at += cells
    return tuple(kept)


def wrapped(row: Row, cells: int, most: int) -> list[Row]:
    """Break a row at blanks into rows of at most so many cells; the last of `most` is cut."""
    text, room = "".join(span.text for span in row), max(cells, 1)
    rows: list[Row] = []
    start = end = 0
    for word in re.finditer(r"\S+", text):
        begins, end_before, end = width_of(text[: word.start()]), end, width_of(text[: word.end()])
        if len(rows) == most - 1:
            break
        if end - start > room and begins > start:
            rows.append(slice_row(row, start, end_before))
            start = begins
        while end - start > room and len(rows) < most - 1:
            rows.append(slice_row(row, start, start + room))
            start += room
    return [*rows, cut_row(slice_row(row, start, width_of(text.rstrip())), room)]


def cut_middle(row: Row, cells: int) -> Row:
    """Return a row that loses its middle where it does not fit: names differ at either end.

    In few cells only the end stays, which says most.
    """
    whole = row_width(row)
    if whole <= cells:
        return row
    head = (cells - 1) // 3 if cells >= _FEW else 0
    tail = max(cells - 1 - head, 0)
    row = (*slice_row(row, 0, head), Span("…", MUTED), *slice_row(row, whole - tail, whole))
    return row if cells > 0 else ()


def moved(row: Row, by: int, cells: int) -> Row:
    """The row moved out at the left by so many cells, and cut to what there is room for."""
    return cut_row(slice_row(row, by, row_width(row)) if by else row, cells)


def _slice_text(text: str, start: int, stop: int) -> str:
    if text.isascii():
        return text[max(start, 0) : stop]
    kept: list[str] = []
    at = 0
    for char in text:
        cells = _char_width(char)
        if at >= start and at + cells <= stop:
            kept.append(char)
        elif at + cells > start and at < stop:
            kept.append(" ")
        at += cells
    return "".join(kept)


def overlaid(base: Sequence[Row], box: Sequence[Row], x: int, y: int) -> list[Row]:
    """The rows with a box of rows laid over them at a place."""
    rows = list(base)
    for index, row in enumerate(box):
        if 0 <= y + index < len(rows):
            under = rows[y + index]
            width = row_width(row)
            rows[y + index] = (
                *fit(slice_row(under, 0, x), x),
                *row,
                *slice_row(under, x + width, row_width(under)),
            )
    return rows


def text_of(rows: Iterable[Row]) -> str:
    """Return what a reader without colors sees."""
    return "\n".join("".join(span.text for span in row).rstrip() for row in rows)

"""Draw one thing on a log: its time, its label, its text in as many rows as that takes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.messages.logs import LogKind, LogLine
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, fit, row_width, width_of, words
from tui.words.cutting import cut_end, wrap
from tui.words.figures import lasting
from tui.words.said import is_bad_ending

FOLD_FROM = 3
OPENS = "do:open"
_LINK = Ink(Role.ACCENT, underline=True, does="link:")
PATH = re.compile(
    r"(?<![\w@+-])(?<![\w.@+-]/)(?:[\w.@+-]{1,255}/){0,60}[\w@+-]{1,255}"
    r"\.[^\W\d]\w*(?::\d+)?(?=$|[\s:,;)'\"])"
)
"""A path with an ending; an ending begins with a letter, so that `0.03s` is none."""
_LABEL, _TIME = 8, 8
_LEAST = 10


@dataclass(frozen=True, kw_only=True)
class HunkLine(LogLine):
    """A line of a diff that was opened on the log; `place` tells it from the others there."""

    sign: str
    place: int


def hunk_lines(of: LogLine, rows: Sequence[tuple[str, str]]) -> list[HunkLine]:
    """Return lines of a diff, each with its sign, as lines on the log."""
    return [
        HunkLine(at=of.at, kind=of.kind, text=text, sign=sign, place=place)
        for place, (sign, text) in enumerate(rows)
    ]


@dataclass
class Item:
    """One thing on the log: a line, perhaps with its tool's result, or a fold of output lines.

    The lines of a fold that was opened are items of their own, each with its `lead`.
    """

    line: LogLine
    number: int
    result: str = ""
    folded: list[LogLine] = field(default_factory=list)
    is_open: bool = False
    lead: "Item | None" = None

    @property
    def is_fold(self) -> bool:
        """Return whether lines of it are hidden."""
        return len(self.folded) >= FOLD_FROM


class Look(NamedTuple):
    """Hold what all items have in common when they are drawn."""

    cells: int = 80
    is_wrapped: bool = True
    has_times: bool = True
    started_at: float = 0.0
    query: str = ""

    @property
    def shape(self) -> tuple[int, bool, bool]:
        """Return the part that makes items higher or lower."""
        return self.cells, self.is_wrapped, self.has_times

    @property
    def indent(self) -> int:
        """The columns before the text."""
        return _LABEL + (_TIME if self.has_times else 0)


class LogRow(NamedTuple):
    """A row, and the text on it: `piece` begins at `start` of `text`."""

    row: Row
    number: int
    text: str = ""
    start: int = 0
    piece: str = ""
    result: str = ""


def height_of(item: Item, look: Look) -> int:
    """Return the number of rows that an item takes."""
    high = len(_pieces(item.line, item.result, look))
    if item.is_fold:
        return high + 1
    return high + sum(len(_pieces(line, "", look)) for line in item.folded)


def rows_of(item: Item, look: Look, *, has_head: bool) -> Iterator[LogRow]:
    """Return the rows of an item; an error that goes on has no head again."""
    yield from _line_rows(item.line, item.number, look, item.result, has_head=has_head)
    if item.is_fold:
        text = Span(f"► {len(item.folded)} lines folded", MUTED._replace(does=OPENS))
        yield LogRow(words(" " * (look.indent + 1), text), item.number)
    else:
        for number, line in enumerate(item.folded, item.number + 1 + bool(item.result)):
            yield from _line_rows(line, number, look, has_head=False)


def _room(result: str, look: Look) -> int:
    return max(look.cells - look.indent - (len(result) + 2 if result else 0), _LEAST)


def _pieces(line: LogLine, result: str, look: Look) -> list[str]:
    """Return the text as it stands on its rows; blanks before what fits are kept."""
    text, room = _parts(line)[1], _room(result, look)
    if not look.is_wrapped:
        return [cut_end(text.partition("\n")[0], room)]
    return [text] if "\n" not in text and width_of(text) <= room else wrap(text, room)


def _line_rows(
    line: LogLine, number: int, look: Look, result: str = "", *, has_head: bool = True
) -> Iterator[LogRow]:
    label, text, ink = _parts(line)
    number = -1 - line.place if isinstance(line, HunkLine) else number
    head: list[Span] = []
    if look.has_times:
        time = lasting(line.at - look.started_at) if has_head and label else ""
        head.append(Span(time.rjust(_TIME - 2) + "  ", MUTED))
    head += fit((Span(label if has_head else "", _label_ink(line.kind)),), _LABEL)
    at = 0
    for piece in _pieces(line, result, look):
        at = max(text.find(piece.removesuffix("…"), at), at)
        row = (*head, *_marked(piece, ink, line.kind, look.query))
        if result:
            bad = Ink(Role.FAILED) if is_bad_ending(result) else MUTED
            gap = look.cells - row_width(row) - len(result) - 1
            row = (*row, Span(" " * max(gap, 1)), Span(result, bad))
        yield LogRow(row, number, text, at, piece, result)
        head, result, at = [Span(" " * look.indent)], "", at + len(piece)


def _marked(text: str, ink: Ink, kind: LogKind, query: str) -> Row:
    """Return the text with search hits filled, and a tool's path as a link."""
    if query:
        return _highlighted(text, query, ink)
    found = PATH.search(text) if kind in {LogKind.TOOL, LogKind.ERROR} else None
    if not found:
        return (Span(text, ink),)
    return (
        Span(text[: found.start()], ink),
        Span(found[0], _LINK),
        Span(text[found.end() :], ink),
    )


def _highlighted(text: str, query: str, ink: Ink) -> Row:
    """Return the text with every hit of the query filled."""
    row: list[Span] = []
    hit = Ink(Role.ON_WAITING, Role.WAITING_FILL, bold=True)
    at = 0
    for found in re.finditer(re.escape(query), text, re.IGNORECASE):
        row += [Span(text[at : found.start()], ink), Span(found[0], hit)]
        at = found.end()
    row.append(Span(text[at:], ink))
    return tuple(span for span in row if span.text)


_INKS = {
    LogKind.SAYS: ("says", TEXT),
    LogKind.YOU: ("you", Ink(Role.ACCENT)),
    LogKind.ERROR: ("error", Ink(Role.FAILED)),
    LogKind.THOUGHT: ("thinks", Ink(Role.MUTED, italic=True)),
    LogKind.NOTE: ("plait", MUTED),
}
"""The label and the ink of a kind; what is not here has no label and is muted."""
_SIGNS = {"+": Ink(Role.ADDED), "-": Ink(Role.REMOVED), "": Ink(bold=True)}


def _parts(line: LogLine) -> tuple[str, str, Ink]:
    """Return the label, the text and its ink; a tool is its own label."""
    if isinstance(line, HunkLine):
        return "", f"{line.sign}{line.text}", _SIGNS.get(line.sign, MUTED)
    if line.kind is not LogKind.TOOL:
        label, ink = _INKS.get(line.kind, ("", MUTED))
        return label, line.text, ink
    verb, _, rest = line.text.partition(" ")
    if rest and len(verb) < _LABEL and verb.isalpha():
        return verb, rest, TEXT
    return "tool", line.text, TEXT


def _label_ink(kind: LogKind) -> Ink:
    if kind is LogKind.SAYS:
        return Ink(bold=True)
    if kind is LogKind.ERROR:
        return Ink(Role.FAILED, bold=True)
    return Ink(Role.ACCENT, bold=True) if kind is LogKind.YOU else MUTED

"""A worker's log as state: a ring of lines, what of them is shown, where the eye is.

The log follows its end until somebody moves; then it holds, and counts what comes in below. Only
the rows on screen are ever wrapped and inked, so a log of any length costs the same.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.messages.logs import LogKind, LogLine, LogLines
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, fit, grounded, row_width, words
from tui.kit.lists import cursor_row
from tui.words.cutting import cut_end, wrap
from tui.words.figures import lasting

CAPACITY = 20_000
_FOLD_FROM = 3
_RESULT = 28
_LABEL, _TIME = 8, 8
_PATH = re.compile(r"(?:[\w.@+-]+/)*[\w@+-]+\.\w+(?::\d+)?(?=$|[\s:,;)'\"])")
DETAILS = (
    frozenset({LogKind.SAYS, LogKind.YOU, LogKind.ERROR}),
    frozenset(
        {LogKind.SAYS, LogKind.YOU, LogKind.ERROR, LogKind.TOOL, LogKind.TOOL_END, LogKind.NOTE}
    ),
    frozenset(LogKind),
)
"""What each level of detail shows: says; says and tools; everything."""
_NAMES = ("says", "says tools", "says tools output")
_NEEDS_LOOK = frozenset({LogKind.ERROR})
_BAD_RESULT = re.compile(r"exit [1-9]|fail|error", re.IGNORECASE)


@dataclass
class Item:
    """One thing on the log: a line, perhaps with its tool's result, or a fold of output lines."""

    line: LogLine
    number: int
    result: str = ""
    folded: list[LogLine] = field(default_factory=list)
    is_open: bool = False


@dataclass
class LogPane:
    """What is known of one log, and how it is looked at."""

    started_at: float = 0.0
    detail: int = 2
    is_wrapped: bool = True
    has_times: bool = True
    is_following: bool = True
    query: str = ""
    cursor: int = 0
    below: int = 0
    lines: list[LogLine] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    _top: int = 0
    _dropped: int = 0

    def clear(self, started_at: float, *, earlier: int = 0) -> None:
        """Begin another log, of which so many lines were written before those that come."""
        self.started_at = started_at
        self.lines.clear()
        self.items.clear()
        self.cursor = self._top = self.below = 0
        self._dropped = earlier
        self.is_following = True

    def take(self, lines: Iterable[LogLine]) -> None:
        """More lines at the end; the oldest go when the ring is full."""
        before = len(self.items)
        for piece in (lines if isinstance(lines, LogLines) else LogLines.of(lines)).pieces:
            number, made = self._dropped + len(self.lines), list(piece)
            self.lines += made
            if piece.kind is LogKind.OUTPUT:
                self._add_output(made, number)
            else:
                for place, line in enumerate(made, number):
                    self._add(line, place)
        if len(self.lines) > CAPACITY * 1.2:
            self._drop(len(self.lines) - CAPACITY)
        if self.is_following:
            self.cursor = max(len(self.items) - 1, 0)
        else:
            self.below += max(len(self.items) - before, 0)

    def _drop(self, count: int) -> None:
        del self.lines[:count]
        self._dropped += count
        gone = sum(item.number < self._dropped for item in self.items)
        if left := self._left_of(gone):
            gone -= 1
            self.items[gone] = left
        del self.items[:gone]
        self.cursor, self._top = max(self.cursor - gone, 0), max(self._top - gone, 0)

    def _left_of(self, gone: int) -> Item | None:
        """What is left of the last item that has lost its beginning: output is one item."""
        if not gone or self.items[gone - 1].line.kind is not LogKind.OUTPUT:
            return None
        end = self.items[gone].number - self._dropped if gone < len(self.items) else None
        kept = [line for line in self.lines[:end] if line.kind is LogKind.OUTPUT]
        if not kept:
            return None
        is_open = self.items[gone - 1].is_open
        return Item(kept[0], self._dropped, folded=kept[1:], is_open=is_open)

    def _add_output(self, lines: list[LogLine], number: int) -> None:
        """Put lines of output on the log, all at once."""
        if LogKind.OUTPUT not in DETAILS[self.detail]:
            return
        last = self.items[-1] if self.items else None
        if last and last.line.kind is LogKind.OUTPUT:
            last.folded += lines
        else:
            self.items.append(Item(lines[0], number, folded=lines[1:]))

    def _add(self, line: LogLine, number: int) -> None:
        """Put a line that is no output on the log: joined to its tool, or alone."""
        if line.kind not in DETAILS[self.detail]:
            return
        last = self.items[-1] if self.items else None
        if last and _joins(line, last):
            last.result = line.text
        else:
            self.items.append(Item(line, number))

    def show(self, detail: int) -> None:
        """Another level of detail; the cursor stays near the line it was on."""
        here = self.items[self.cursor].number if self.items else 0
        self.detail = max(min(detail, len(DETAILS) - 1), 0)
        self.items = []
        for number, line in enumerate(self.lines, self._dropped):
            if line.kind is LogKind.OUTPUT:
                self._add_output([line], number)
            else:
                self._add(line, number)
        near = [index for index, item in enumerate(self.items) if item.number <= here]
        self.cursor = max(len(self.items) - 1, 0) if self.is_following else (near or [0])[-1]
        self._top = self.cursor

    # Moving.

    def move(self, by: int) -> None:
        """Move the cursor; the log holds from then on, until the end is reached again."""
        last = max(len(self.items) - 1, 0)
        self.hold()
        self.cursor = max(min(self.cursor + by, last), 0)
        if self.cursor == last and by > 0:
            self.follow()

    def hold(self) -> None:
        """Stand still while lines come in."""
        if self.is_following:
            self.is_following = False
            self.below = 0

    def follow(self) -> None:
        """Stay at the end."""
        self.is_following = True
        self.below = 0
        self.cursor = max(len(self.items) - 1, 0)

    def first(self) -> None:
        """Go to the beginning."""
        self.hold()
        self.cursor = self._top = 0

    def to_next(self, by: int) -> bool:
        """To the next hit of the search, or the next error where nothing is searched."""
        indices = (
            range(self.cursor + 1, len(self.items)) if by > 0 else range(self.cursor - 1, -1, -1)
        )
        return self._to(index for index in indices if self._matters(self.items[index]))

    def to_tool(self, by: int) -> bool:
        """To the next tool call."""
        indices = (
            range(self.cursor + 1, len(self.items)) if by > 0 else range(self.cursor - 1, -1, -1)
        )
        return self._to(i for i in indices if self.items[i].line.kind is LogKind.TOOL)

    def _to(self, found: Iterator[int]) -> bool:
        index = next(found, None)
        if index is None:
            return False
        self.hold()
        self.cursor = index
        return True

    def _matters(self, item: Item) -> bool:
        if self.query:
            wanted = self.query.casefold()
            return any(wanted in line.text.casefold() for line in (item.line, *item.folded))
        return item.line.kind in _NEEDS_LOOK or bool(_BAD_RESULT.search(item.result))

    @property
    def hits(self) -> int:
        """How many items the search finds."""
        return sum(map(self._matters, self.items)) if self.query else 0

    def toggle_fold(self) -> bool:
        """Open or close the fold under the cursor; says whether there was one."""
        item = self.here
        if item is None or len(item.folded) < _FOLD_FROM:
            return False
        self.hold()
        item.is_open = not item.is_open
        return True

    @property
    def here(self) -> Item | None:
        """What the cursor is on."""
        return self.items[self.cursor] if self.items else None

    @property
    def link(self) -> str:
        """The path in the line under the cursor, if there is one: `src/a.py:88`."""
        item = self.here
        found = _PATH.search(item.line.text) if item else None
        return found[0] if found else ""

    # Drawing.

    def draw(self, cells: int, height: int) -> list[Row]:
        """The rows that are seen, the hold bar at the bottom where the log holds."""
        bar = [] if self.is_following else [self._hold_bar(cells)]
        room = max(height - len(bar), 1)
        rows = self._from_end(cells, room) if self.is_following else self._around(cells, room)
        rows += [fit((), cells)] * (room - len(rows))
        return [*rows[:room], *bar]

    def _hold_bar(self, cells: int) -> Row:
        mark = Span(" ‖ HOLD  ", Ink(Role.ACCENT, bold=True))
        news = f"{self.below} new lines below" if self.below else "nothing new below"
        if self._dropped and not self._top:
            news = f"{self._dropped:,} lines before these: `plait logs` has them"
        return grounded(fit((mark, Span(news, TEXT)), cells), Role.PANEL)

    def _from_end(self, cells: int, room: int) -> list[Row]:
        rows: list[Row] = []
        for index in range(len(self.items) - 1, -1, -1):
            drawn = self._rows_of(index, cells)
            rows = drawn + rows
            self._top = index
            if len(rows) >= room:
                break
        return rows[-room:]

    def _around(self, cells: int, room: int) -> list[Row]:
        self._top = min(self._top, self.cursor)
        while True:
            rows: list[Row] = []
            index = self._top
            while index < len(self.items) and len(rows) < room:
                rows += self._rows_of(index, cells)
                index += 1
            if index > self.cursor and (len(rows) <= room or index - 1 > self.cursor):
                return rows[:room]
            if self._top >= self.cursor:
                return rows[:room]
            self._top += max((self.cursor - index) + 1, 1)

    def _rows_of(self, index: int, cells: int) -> list[Row]:
        item = self.items[index]
        is_here = index == self.cursor and not self.is_following
        rows = self._line_rows(item.line, item.result, cells - 1, has_head=not self._goes_on(index))
        if item.folded and (item.is_open or len(item.folded) < _FOLD_FROM):
            for line in item.folded:
                rows += self._line_rows(line, "", cells - 1, has_head=False)
        elif item.folded:
            lead = " " * (self._indent + 1)
            rows.append(words(lead, f"► {len(item.folded)} lines folded"))
        return [cursor_row(row, cells, is_focused=is_here) for row in rows]

    def _goes_on(self, index: int) -> bool:
        """An error of many lines is one error: it is named once."""
        if not index or self.items[index].line.kind is not LogKind.ERROR:
            return False
        before = self.items[index - 1].line
        return before.kind is LogKind.ERROR and self.items[index].line.at - before.at < 1

    @property
    def _indent(self) -> int:
        return _LABEL + (_TIME if self.has_times else 0)

    def _line_rows(
        self, line: LogLine, result: str, cells: int, *, has_head: bool = True
    ) -> list[Row]:
        label, text, ink = _parts(line)
        room = max(cells - self._indent - (len(result) + 2 if result else 0), 10)
        pieces = wrap(text, room) if self.is_wrapped else [cut_end(text.split("\n")[0], room)]
        head: list[Span] = []
        if self.has_times:
            time = lasting(line.at - self.started_at) if has_head else ""
            head.append(Span(time.rjust(_TIME - 2) + "  ", MUTED))
        head += fit((Span(label if has_head else "", _label_ink(line.kind)),), _LABEL)
        rows: list[Row] = []
        for place, piece in enumerate(pieces):
            lead = tuple(head) if place == 0 else (Span(" " * self._indent),)
            rows.append((*lead, *self._marked(piece, ink, line.kind)))
        if result:
            bad = Ink(Role.FAILED) if _BAD_RESULT.search(result) else MUTED
            gap = cells - row_width(rows[0]) - len(result) - 1
            rows[0] = (*rows[0], Span(" " * max(gap, 1)), Span(result, bad))
        return rows

    def _marked(self, text: str, ink: Ink, kind: LogKind) -> Row:
        """The text with search hits filled, and a tool's path as a link."""
        if self.query:
            return _highlighted(text, self.query, ink)
        found = _PATH.search(text) if kind in {LogKind.TOOL, LogKind.ERROR} else None
        if not found:
            return (Span(text, ink),)
        link = Ink(Role.ACCENT, underline=True)
        return (
            Span(text[: found.start()], ink),
            Span(found[0], link),
            Span(text[found.end() :], ink),
        )

    @property
    def shown_kinds(self) -> str:
        """What is shown now, in words."""
        return _NAMES[self.detail]


def _highlighted(text: str, query: str, ink: Ink) -> Row:
    """The text with every hit of the query filled."""
    row: list[Span] = []
    hit = Ink(Role.ON_WAITING, Role.WAITING_FILL, bold=True)
    at = 0
    for found in re.finditer(re.escape(query), text, re.IGNORECASE):
        row += [Span(text[at : found.start()], ink), Span(found[0], hit)]
        at = found.end()
    row.append(Span(text[at:], ink))
    return tuple(span for span in row if span.text)


def _joins(line: LogLine, last: Item) -> bool:
    """A tool's short result stands at the end of its own row."""
    is_result = line.kind is LogKind.TOOL_END and last.line.kind is LogKind.TOOL
    return is_result and not last.result and len(line.text) <= _RESULT


_INKS = {
    LogKind.SAYS: ("says", TEXT),
    LogKind.YOU: ("you", Ink(Role.ACCENT)),
    LogKind.ERROR: ("error", Ink(Role.FAILED)),
    LogKind.THOUGHT: ("thinks", Ink(Role.MUTED, italic=True)),
    LogKind.NOTE: ("plait", MUTED),
}
"""The label and the ink of a kind; what is not here has no label and is muted."""


def _parts(line: LogLine) -> tuple[str, str, Ink]:
    """The label, the text and its ink; a tool is its own label."""
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

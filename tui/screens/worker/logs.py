"""A worker's log as state: a ring of lines, what of them is shown, where the eye is.

The log follows its end until somebody moves; then it holds, and counts what comes in below. It
knows at which row each item begins, so that only the rows on screen are ever inked.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.messages.logs import LogKind, LogLine, LogLines
from tui.screens.worker.lines import (
    PATH,
    HunkLine,
    Item,
    LogRow,
    Look,
    height_of,
    hunk_lines,
    rows_of,
)
from tui.words.said import is_bad_ending

CAPACITY = 20_000
_RESULT = 28
DETAILS = (
    frozenset({LogKind.SAYS, LogKind.YOU, LogKind.ERROR}),
    frozenset(
        {LogKind.SAYS, LogKind.YOU, LogKind.ERROR, LogKind.TOOL, LogKind.TOOL_END, LogKind.NOTE}
    ),
    frozenset(LogKind),
)
"""The kinds of line at each level of detail: says; says and tools; everything."""
_NAMES = ("says", "says tools", "says tools output")
_NEEDS_LOOK = frozenset({LogKind.ERROR})
_SPEAKS = frozenset({LogKind.SAYS, LogKind.YOU})
_OF_TOOL = frozenset({LogKind.TOOL, LogKind.TOOL_END})
_LATELY = 12
"""Of so many items before, one may be the tool whose end is told."""


@dataclass
class Log:
    """Hold one log: its lines, its items, and how it is looked at.

    Rows are counted forever: they keep their numbers while the oldest go. `base` is the first row
    that is still there, `ends` has for each item the row behind its last one. Whatever gives rows
    other numbers than before counts `layouts` up.
    """

    started_at: float = 0.0
    detail: int = 2
    is_wrapped: bool = True
    has_times: bool = True
    is_following: bool = True
    query: str = ""
    cursor: int = 0
    below: int = 0
    dropped: int = 0
    lines: list[LogLine] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    base: int = 0
    layouts: int = 0
    look: Look = field(default_factory=Look)
    is_filtered: bool = False
    """Only lines that the search finds are on the log."""
    _counted: tuple[object, int] = (None, 0)

    def clear(self, started_at: float, *, earlier: int = 0) -> None:
        """Begin another log, of which so many lines were written before those that come."""
        self.started_at = started_at
        self.lines.clear()
        self.items.clear()
        self._measure()
        self.cursor = self.below = 0
        self.dropped = earlier
        self.is_following = True

    def take(self, lines: Iterable[LogLine]) -> None:
        """Add lines at the end; the oldest go when the ring is full."""
        before = len(self.items)
        for piece in (lines if isinstance(lines, LogLines) else LogLines.of(lines)).pieces:
            number, made = self.dropped + len(self.lines), list(piece)
            self.lines += made
            if self.is_filtered:
                self._put_hits(made, number)
            elif piece.kind is LogKind.OUTPUT:
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

    def _put_hits(self, lines: Iterable[LogLine], number: int) -> None:
        """Put the lines that the search finds, each by itself."""
        wanted, kinds = self.query.casefold(), DETAILS[self.detail]
        for place, line in enumerate(lines, number):
            if line.kind in kinds and wanted in line.text.casefold():
                self._put(Item(line, place))

    def _drop(self, count: int) -> None:
        self._shut_hunks()
        del self.lines[:count]
        self.dropped += count
        gone = sum(item.number < self.dropped for item in self.items)
        if left := self._left_of(gone):
            gone -= 1
            self.items[gone] = left
        del self.items[:gone]
        del self.ends[:gone]
        self.base = self.ends[0] - height_of(self.items[0], self.look) if self.items else 0
        self.cursor = max(self.cursor - gone, 0)

    def _left_of(self, gone: int) -> Item | None:
        """Return the rest of the last item that has lost its beginning: output is one item."""
        if not gone or not self.items[gone - 1].folded:
            return None
        end = self.items[gone].number - self.dropped if gone < len(self.items) else None
        kept = self.lines[:end]
        return Item(kept[0], self.dropped, folded=kept[1:]) if kept else None

    def _add_output(self, lines: list[LogLine], number: int) -> None:
        """Put lines of output on the log, all at once."""
        if LogKind.OUTPUT not in DETAILS[self.detail]:
            return
        last = self.items[-1] if self.items else None
        if last is None or last.line.kind is not LogKind.OUTPUT:
            self._put(Item(lines[0], number, folded=lines[1:]))
        elif last.is_open or last.lead:
            for place, line in enumerate(lines, number):
                self._put(Item(line, place, lead=last.lead or last))
        else:
            was_fold = last.is_fold
            last.folded += lines
            if not was_fold:
                self._measure_last()

    def _add(self, line: LogLine, number: int) -> None:
        """Put a line that is no output on the log: joined to its tool, or alone."""
        if line.kind not in DETAILS[self.detail]:
            return
        last = self.items[-1] if self.items else None
        if last and _joins(line, last):
            last.result = line.text
            self._measure_last()
        elif last and line.kind is LogKind.TOOL_END and self._belongs(line, last):
            if last.is_open or last.lead:
                self._put(Item(line, number, lead=last.lead or last))
            else:
                last.folded.append(line)
                self._measure_last()
        else:
            self._put(Item(line, number))

    def _belongs(self, line: LogLine, last: Item) -> bool:
        """Say if a line is what the last tool printed, and not the end of another one."""
        lead = last.lead or last
        if lead.line.kind not in _OF_TOOL:
            return False
        tools = (item.line.text for item in self.items[-_LATELY:] if item.line.kind is LogKind.TOOL)
        return not any(line.text.startswith(f"{tool}: ") for tool in tools)

    def _put(self, item: Item) -> None:
        self.ends.append((self.ends[-1] if self.ends else self.base) + height_of(item, self.look))
        self.items.append(item)

    def _measure_last(self) -> None:
        begin = self.ends[-2] if len(self.ends) > 1 else self.base
        self.ends[-1] = begin + height_of(self.items[-1], self.look)

    def show(self, detail: int) -> None:
        """Show another level of detail; the cursor stays near the line it was on."""
        here = self.items[self.cursor].number if self.items else 0
        self.detail = max(min(detail, len(DETAILS) - 1), 0)
        self.items.clear()
        self._measure()
        if self.is_filtered:
            self._put_hits(self.lines, self.dropped)
        for number, line in enumerate(() if self.is_filtered else self.lines, self.dropped):
            if line.kind is LogKind.OUTPUT:
                self._add_output([line], number)
            else:
                self._add(line, number)
        near = bisect_right(self.items, here, key=lambda item: item.number) - 1
        self.cursor = max(len(self.items) - 1, 0) if self.is_following else max(near, 0)

    def filter_hits(self, *, is_on: bool) -> None:
        """Show only what the search finds, or all again."""
        if self.is_filtered != is_on:
            self.is_filtered = is_on
            self.show(self.detail)

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
        self.cursor = 0

    def to_next(self, by: int) -> bool:
        """Go to the next hit of the search, or the next error where nothing is searched."""
        return self.to(self.is_next, by)

    def to(self, wanted: Callable[[int], bool], by: int) -> bool:
        """Go to the next item that is wanted."""
        return self._to(filter(wanted, self._further(by)))

    def all(self, wanted: Callable[[int], bool]) -> list[int]:
        """Return the items that are wanted."""
        return list(filter(wanted, range(len(self.items))))

    def is_next(self, index: int) -> bool:
        """Say if an item is a hit of the search, or an error where nothing is searched."""
        return self._matters(self.items[index])

    def is_tool(self, index: int) -> bool:
        """Say if an item is a tool call."""
        return self.items[index].line.kind is LogKind.TOOL

    def begins_turn(self, index: int) -> bool:
        """Say if the agent begins to speak at an item, or a human does."""
        kind = self.items[index].line.kind
        return kind in _SPEAKS and (not index or self.items[index - 1].line.kind is not kind)

    def _further(self, by: int) -> range:
        if by > 0:
            return range(self.cursor + 1, len(self.items))
        return range(self.cursor - 1, -1, -1)

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
        return item.line.kind in _NEEDS_LOOK or is_bad_ending(item.result)

    def search(self, query: str, since: int) -> bool:
        """Go to the hit nearest to an item, backwards first; say whether there is one."""
        self.query = query
        self.cursor = min(since, max(len(self.items) - 1, 0))
        if self.items and self._matters(self.items[self.cursor]):
            self.hold()
            return True
        return self.to_next(-1) or self.to_next(1)

    @property
    def hits(self) -> int:
        """Return how many items the search finds; count anew when there are other lines."""
        if not self.query:
            return 0
        state = (self.query, self.detail, self.dropped + len(self.lines), len(self.items))
        if self._counted[0] != state:
            self._counted = (state, sum(map(self._matters, self.items)))
        return self._counted[1]

    def toggle_fold(self) -> bool:
        """Open or close the fold under the cursor; say whether there was one."""
        item = self.here
        if item and item.is_fold:
            self._open(item)
        elif item and (item.is_open or item.lead):
            self._close(item.lead or item)
        else:
            return False
        self.hold()
        self._measure()
        return True

    @property
    def tool(self) -> Item | None:
        """Return the call of a tool under the cursor, of which nothing was opened yet."""
        item = self.here
        is_call = item is not None and item.line.kind is LogKind.TOOL and item.lead is None
        return item if is_call and item and not item.is_open else None

    def open_tool(self, item: Item, rows: Sequence[tuple[str, str]]) -> None:
        """Open the call of a tool: all that it printed, and lines of a diff with their signs."""
        if item not in self.items or item.is_open:
            return
        self.hold()
        self.cursor = self.items.index(item)
        self._open(item, hunk_lines(item.line, rows))
        self._measure()

    def _open(self, item: Item, more: Sequence[LogLine] = ()) -> None:
        """Make the lines of a fold items of their own."""
        lines, item.folded, item.is_open = item.folded, [], True
        # A result that stands beside its tool is a line too, though no item.
        at = item.number + 1 + bool(item.result)
        opened = [Item(line, n, lead=item) for n, line in enumerate(lines, at)]
        opened += [Item(line, item.number, lead=item) for line in more]
        self.items[self.cursor + 1 : self.cursor + 1] = opened

    def _shut_hunks(self) -> None:
        """Take lines of diffs off the log: they are no lines of it, and have no numbers there."""
        if any(isinstance(item.line, HunkLine) for item in self.items):
            here = self.here
            self.items = [item for item in self.items if not isinstance(item.line, HunkLine)]
            self.cursor = self.items.index(here) if here in self.items else self.cursor
            self.cursor = min(self.cursor, max(len(self.items) - 1, 0))
            self._measure()

    def _close(self, lead: Item) -> None:
        """Fold what was opened together; some of it may have gone from the ring."""
        group = [i for i, item in enumerate(self.items) if item is lead or item.lead is lead]
        first, last = group[0], group[-1]
        kept = self.items[first]
        opened = [item.line for item in self.items[first + 1 : last + 1]]
        kept.folded = [line for line in opened if not isinstance(line, HunkLine)]
        kept.lead, kept.is_open = None, False
        del self.items[first + 1 : last + 1]
        self.cursor = first

    @property
    def here(self) -> Item | None:
        """Return the item under the cursor."""
        return self.items[self.cursor] if self.items else None

    @property
    def link(self) -> str:
        """Return the path in the line under the cursor, if there is one: `src/a.py:88`."""
        item = self.here
        found = PATH.search(item.line.text) if item else None
        return found[0] if found else ""

    # Rows.

    def lay(self, look: Look) -> None:
        """Draw all items like this from now on."""
        before, self.look = self.look, look
        if look.shape != before.shape:
            self._measure()

    def _measure(self) -> None:
        """Find out where each item begins."""
        self.base = row = 0
        self.ends = [row := row + height_of(item, self.look) for item in self.items]
        self.layouts += 1

    @property
    def row_count(self) -> int:
        """Return the number of rows."""
        return self.ends[-1] - self.base if self.items else 0

    def rows_of(self, index: int) -> tuple[int, int]:
        """Return the first row of an item, and the row behind its last one."""
        return self.ends[index - 1] if index else self.base, self.ends[index]

    def item_at(self, row: int) -> int:
        """Return the item that a row belongs to, the last one for a row behind it."""
        return min(bisect_right(self.ends, row), max(len(self.items) - 1, 0))

    def rows(self, begin: int, end: int) -> Iterator[tuple[int, LogRow]]:
        """Return rows by their numbers, each with the item it belongs to."""
        index = self.item_at(begin)
        while index < len(self.items) and self.rows_of(index)[0] < end:
            row, _ = self.rows_of(index)
            for drawn in rows_of(self.items[index], self.look, has_head=not self._goes_on(index)):
                if begin <= row < end:
                    yield index, drawn
                row += 1
            index += 1

    def _goes_on(self, index: int) -> bool:
        """An error of many lines is one error: it is named once."""
        if not index or self.items[index].line.kind is not LogKind.ERROR:
            return False
        before = self.items[index - 1].line
        return before.kind is LogKind.ERROR and self.items[index].line.at - before.at < 1

    @property
    def shown_kinds(self) -> str:
        """Return the words for the kinds that are shown."""
        return _NAMES[self.detail]


def _joins(line: LogLine, last: Item) -> bool:
    """A tool's short result stands at the end of its own row."""
    is_result = line.kind is LogKind.TOOL_END and last.line.kind is LogKind.TOOL
    return is_result and not last.result and len(line.text) <= _RESULT

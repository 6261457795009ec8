"""Show a log: it follows its end, or holds where it is read while lines come in below."""

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.message import Message
from textual.selection import Selection

from tui.ink import TEXT, Ink, Role, Row, Span, fit, grounded
from tui.kit.lists import cursor_row
from tui.kit.scrolled import Scrolled
from tui.screens.worker.lines import LogRow, Look
from tui.screens.worker.logs import Log
from tui.words.figures import some

_HOLD = Span(" ‖ HOLD  ", Ink(Role.ACCENT, bold=True))


class _Eye(NamedTuple):
    """Remember the item under the cursor, and how far below the top its row is."""

    layouts: int = 0
    base: int = 0
    cursor: int = 0
    room: int = 0
    below_top: int = 0


class LogView(Scrolled):
    """The rows of a log on screen. Whatever moves the log's cursor is followed at the next draw.

    Rows are counted forever: a selection stays with its text while lines come at the end and go
    at the beginning.
    """

    class Held(Message):
        """The log stands still now, or follows again: the mouse said so."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log_lines = log
        self.instead: Sequence[Row] = ()
        self._eye = _Eye()

    # Drawing.

    @property
    def base(self) -> int:
        """Return how many rows have gone before the first."""
        return self.log_lines.base

    @property
    def room(self) -> int:
        """Return the number of rows that scroll: where the log holds, the last one says so."""
        return self.size.height - self._is_held

    @property
    def _is_held(self) -> bool:
        return bool(self.log_lines.items) and not self.log_lines.is_following

    def update(self) -> None:
        """Go to where the log is looked at, and paint what is new there."""
        known, cells = self.log_lines, self.cells
        if not cells:
            return
        known.lay(Look(cells - 1, known.is_wrapped, known.has_times, known.started_at, known.query))
        self.lead = known.look.indent + 1
        if known.layouts != self._eye.layouts and self.text_selection:
            self.screen.clear_selection()
        self.measure(known.row_count + self._is_held)
        self.go_to(self.base + self._wanted_top())
        self.paint()

    def _wanted_top(self) -> int:
        """Return how many rows are scrolled away: following, under the cursor, or as before."""
        known, room = self.log_lines, self.room
        if not self._is_held:
            return known.row_count - room
        was, top = self._eye, self.scroll_offset.y
        begin, end = (row - known.base for row in known.rows_of(known.cursor))
        if was.layouts != known.layouts:
            top = begin - was.below_top
        elif was.base != known.base:
            top -= known.base - was.base
        elif (was.cursor, was.room) == (known.cursor, room):
            return top  # scrolled by hand, perhaps into the middle of a long item
        return max(min(top, begin), min(end - room, begin))

    def seen(self) -> Sequence[Row]:
        """Return the rows on screen, below them that the log holds."""
        known = self.log_lines
        begin = known.rows_of(known.cursor)[0] if known.items else 0
        self._eye = _Eye(known.layouts, known.base, known.cursor, self.room, begin - self.top)
        if not known.items:
            return self.instead
        here = known.cursor if self._is_held and not self.text_selection else -1
        rows = [
            cursor_row(drawn.row, self.size.width, is_focused=index == here)
            for index, drawn in known.rows(self.top, self.top + self.room)
        ]
        if self._is_held:
            rows += [()] * (self.room - len(rows))
            rows.append(self._foot())
        return rows

    def _foot(self) -> Row:
        """Say what has come in below since the log holds, or what is missing above."""
        known = self.log_lines
        news = f"{some(known.below, 'new line')} below" if known.below else "no new lines below"
        if known.dropped and not self.scroll_offset.y:
            news = f"{known.dropped:,} earlier lines: `plait logs` shows them"
        return grounded(fit((_HOLD, Span(news, TEXT)), self.size.width), Role.PANEL)

    # Selecting.

    def columns(self, selection: Selection, number: int, text: str) -> tuple[int, int]:
        """Return the selected columns of a row of the log; of the last row on screen none."""
        is_foot = number >= self.base + self.log_lines.row_count
        return (0, 0) if is_foot else super().columns(selection, number, text)

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint what is selected, without the cursor; rows stay what they are."""
        del selection
        self.refresh()
        self.paint()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text without times and labels, its lines whole where they wrapped."""
        known = self.log_lines
        begin, end = self.touched(selection)
        lines: list[str] = []
        before, until = -1, 0
        for number, (_, drawn) in enumerate(known.rows(begin, end), begin):
            text, start, stop = self._chosen_of(drawn, selection, number)
            if drawn.number == before:
                lines[-1] += drawn.text[until:start] + text
            else:
                lines.append(text)
            before, until = drawn.number, stop
        return "\n".join(lines), "\n"

    def _chosen_of(self, drawn: LogRow, selection: Selection, number: int) -> tuple[str, int, int]:
        """Return what is selected of a row, and where in its line that begins and ends."""
        ending = f"  {drawn.result}" if drawn.result else ""
        shown = " " * self.lead + drawn.piece + ending
        start, stop = (x - self.lead for x in self.columns(selection, number, shown))
        return (drawn.piece + ending)[start:stop], drawn.start + start, drawn.start + stop

    # The mouse.

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Hold where somebody scrolls to, and follow again where that is the end."""
        known = self.log_lines
        if known.items and round(new_value) < self.max_scroll_y:
            known.hold()
        elif known.items and new_value > old_value:
            known.follow()
        if known.items and not known.is_following:  # the cursor stays on screen
            begin, end = known.item_at(self.top), known.item_at(self.top + self.room - 1)
            known.cursor = max(min(known.cursor, end), begin)
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Held())

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Hold before anything can be selected: lines would go by under the mouse."""
        known = self.log_lines
        if known.items and event.button == 1 and event.y < self.room:
            known.hold()
            known.cursor = known.item_at(self.top + min(event.y, self.room - 1))
            self.paint()
            self.post_message(self.Held())

    def on_click(self, event: events.Click) -> None:
        """Follow where the last row was clicked, which says that it holds."""
        if event.y >= self.room:
            event.prevent_default()
            self.log_lines.follow()
            self.post_message(self.Held())

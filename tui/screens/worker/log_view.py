"""Show a log: it follows its end, or holds where it is read while lines come in below."""

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.message import Message
from textual.selection import Selection
from textual.widget import Widget

from tui.ink import TEXT, Ink, Role, Row, Span, fit, grounded
from tui.kit.lists import cursor_row
from tui.kit.scrolled import Scrolled, columns_of
from tui.screens.worker.lines import FOLD, LINK, LogRow, Look
from tui.screens.worker.logs import Log

_HOLD = Span(" ‖ HOLD  ", Ink(Role.ACCENT, bold=True))


class _Eye(NamedTuple):
    """Remember the item under the cursor, and how far below the top its row is."""

    layouts: int = 0
    base: int = 0
    cursor: int = 0
    room: int = 0
    below_top: int = 0


class LogView(Scrolled):
    """The rows of a log on screen. Whatever moves the log's cursor is followed at the next draw."""

    class Held(Message):
        """The log stands still now, or follows again: the mouse said so."""

    class Opened(Message):
        """A link or a fold was clicked."""

    def __init__(self, log: Log, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.log_lines = log
        self.instead: Sequence[Row] = ()
        self._eye = _Eye()

    @property
    def first(self) -> int:
        """The number of the first row that is still there."""
        return self.log_lines.base

    # Drawing.

    def update(self) -> None:
        """Go to where the log is looked at, and paint what is new there."""
        known = self.log_lines
        if not self.cells:
            return
        look = Look(
            self.cells - 1, known.is_wrapped, known.has_times, known.started_at, known.query
        )
        known.lay(look)
        self.lead = look.indent + 1
        if known.layouts != self._eye.layouts and self.text_selection:
            self.screen.clear_selection()
        is_held = bool(known.items) and not known.is_following
        self.foot = (_HOLD,) if is_held else ()
        self.measure(known.row_count or len(self.instead))
        self._go_to(self._wanted_top())
        self._look_at()
        if is_held:
            self.foot = self._foot()
        super().update()

    def _wanted_top(self) -> int:
        """Return how many rows are scrolled away: following, under the cursor, or as before."""
        known, high = self.log_lines, self.room
        if known.is_following or not known.items:
            return known.row_count - high
        was, top = self._eye, self.scroll_offset.y
        begin, end = (row - known.base for row in known.rows_of(known.cursor))
        if was.layouts != known.layouts:
            top = begin - was.below_top
        elif was.base != known.base:
            top -= known.base - was.base
        elif (was.cursor, was.room) == (known.cursor, high):
            return top  # scrolled by hand, perhaps into the middle of a long item
        return max(min(top, begin), min(end - high, begin))

    def _go_to(self, top: int) -> None:
        """Scroll without its watchers, which would paint everything."""
        top = max(min(top, self.log_lines.row_count - self.room), 0)
        if top == self.scroll_offset.y:
            return
        self.set_reactive(Widget.scroll_y, float(top))
        self.set_reactive(Widget.scroll_target_y, float(top))
        self.vertical_scrollbar.position = top

    def _look_at(self) -> None:
        known = self.log_lines
        begin = known.rows_of(known.cursor)[0] if known.items else 0
        self._eye = _Eye(known.layouts, known.base, known.cursor, self.room, begin - self.top)

    def _foot(self) -> Row:
        """Say what has come in below since the log holds, or what is missing above."""
        known = self.log_lines
        news = f"{known.below} new lines below" if known.below else "nothing new below"
        if known.dropped and not self.scroll_offset.y:
            news = f"{known.dropped:,} lines before these: `plait logs` has them"
        return grounded(fit((_HOLD, Span(news, TEXT)), self.cells), Role.PANEL)

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        known = self.log_lines
        if not known.items:
            return self.instead[number : number + count]
        here = -1 if known.is_following else known.cursor
        return [
            cursor_row(drawn.row, self.cells, is_focused=index == here)
            for index, drawn in known.rows(number, number + count)
        ]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text without times and labels, its lines whole where they wrapped."""
        lines: list[str] = []
        before = (-1, 0)
        begin, end = self.chosen(selection)
        for number, (_, drawn) in enumerate(self.log_lines.rows(begin, end), begin):
            text, start, stop = self._chosen_of(drawn, selection, number)
            if drawn.number == before[0] and lines:
                lines[-1] += drawn.text[before[1] : start] + text
            else:
                lines.append(text)
            before = drawn.number, stop
        return "\n".join(lines), "\n"

    def _chosen_of(self, drawn: LogRow, selection: Selection, number: int) -> tuple[str, int, int]:
        """Return what is selected of a row, and where in its line that begins and ends."""
        text = drawn.text[drawn.start : drawn.start + len(drawn.piece)]
        ending = f"  {drawn.result}" if drawn.result else ""
        start, stop = columns_of(selection, number, " " * self.lead + text + ending, self.lead)
        chosen = (text + ending)[start - self.lead : stop - self.lead]
        return chosen, drawn.start + start - self.lead, drawn.start + stop - self.lead

    # The mouse.

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Hold where somebody scrolls to, and follow again where that is the end."""
        super().watch_scroll_y(old_value, new_value)
        known = self.log_lines
        if not known.items:
            return
        if round(new_value) < self.max_scroll_y:
            known.hold()
        elif new_value > old_value:
            known.follow()
        if not known.is_following:  # the cursor stays on screen
            begin, end = known.item_at(self.top), known.item_at(self.top + self.room - 1)
            known.cursor = max(min(known.cursor, end), begin)
        self._look_at()
        self.post_message(self.Held())

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Hold before anything can be selected: lines would go by under the mouse."""
        known = self.log_lines
        if known.items and event.button == 1 and event.y < self.room:
            known.hold()
            known.cursor = known.item_at(self.top + min(event.y, self.high - 2))
            self._look_at()
            self.post_message(self.Held())

    def on_click(self, event: events.Click) -> None:
        """Open the link or the fold that was clicked; follow where the foot was."""
        if event.y >= self.room:
            self.log_lines.follow()
            self.post_message(self.Held())
            return
        row = self.rows[event.y] if event.y < len(self.rows) else ()
        at = 0
        for text, ink in row:
            at += len(text)
            if event.x < at:
                if ink._replace(ground=None) == LINK or text.startswith(FOLD):
                    self.post_message(self.Opened())
                return

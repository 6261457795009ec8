"""Show a diff: its rows scroll, its code can be selected, its scrollbar is a map of its hunks."""

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.selection import Selection

from engine.messages.diffs import Sign
from tui.ink import Row, Span, head_of
from tui.kit.scrolled import Scrolled
from tui.screens.diff.layout import Part
from tui.screens.diff.page import edge_map
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.rows import code_columns
from tui.words.clean import with_tabs

_ABOVE = 2
"""So many rows above the head of a long hunk stay on screen."""


class DiffView(Scrolled):
    """The rows of a diff on screen. Whatever moves its cursor is followed at the next draw."""

    class Moved(Message):
        """The mouse moved the cursor."""

    class Opened(Message):
        """Tell that the thing under the cursor was clicked twice."""

    def __init__(self, pane: DiffPane) -> None:
        super().__init__(edge=self._map_of_hunks)
        self.pane = pane
        self.instead: Sequence[Row] = ()
        self._eye: tuple[object, ...] = ()
        self._measured: tuple[object, ...] = ()
        self._jumps = 0
        self._selects_old = False

    @property
    def code_cells(self) -> int:
        """The width of a row, without the blank before the scrollbar."""
        return self.cells - 1

    def _map_of_hunks(self, height: int) -> Sequence[Span]:
        """Return where hunks stand in the whole, and what of it is on screen."""
        return edge_map(self.pane, height, self.seen_rows)

    # Drawing.

    def update(self) -> None:
        """Bring the cursor on screen where it moved, and paint what differs."""
        if self.cells <= 1:
            return
        pane = self.pane
        measured = (pane, pane.layouts, self.code_cells, len(self.instead))
        if measured != self._measured:
            self._measured = measured
            if self.text_selection:
                self.screen.clear_selection()
            self.measure(pane.measure(self.code_cells) if pane.places else len(self.instead))
        if self._eye != (eye := self._looked_at()):
            is_jump = self._jumps != self.pane.jumps
            self._eye, self._jumps = eye, self.pane.jumps
            self._follow(is_jump=is_jump)
        self.paint()

    def _looked_at(self) -> tuple[object, ...]:
        return (*self._measured, self.pane.cursor, self.pane.jumps, self.size.height)

    def _follow(self, *, is_jump: bool) -> None:
        """Scroll as little as brings the cursor on screen; after a jump, all of its hunk."""
        pane, height = self.pane, self.size.height
        begin = pane.row_of(pane.cursor)
        end = begin
        if is_jump and pane.places:
            end = min(pane.row_of(pane.hunk_end()), begin + height - 1 - _ABOVE)
        self.go_to(max(min(self.top, begin), end + 1 - height))

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        if not self.pane.places:
            return self.instead[number : number + count]
        return tuple(self.pane.rows(self.code_cells, number, count))

    # Selecting.

    def columns(self, selection: Selection, number: int, text: str) -> tuple[int, int]:
        """Return the selected columns of a row: those of code, and of one side."""
        span = selection.get_span(number)
        if span is None:
            return 0, 0
        first, end = self._code_at(number)
        stop = end if span[1] < 0 else min(span[1], end)
        return max(span[0], first), len(text[:stop].rstrip())

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint what is selected; rows stay what they are until they are laid out anew."""
        del selection
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected code, and what stands between it and the next."""
        chosen: list[str] = []
        last = -1
        for number, row in self.texts(selection).items():
            text, place = self._chosen_of(selection, number, row), self.pane.place_at(number)
            if text is None:
                continue
            if chosen and place == last and self.pane.is_wrapped:
                chosen[-1] += text  # the same line, gone on in the next row
            else:
                chosen.append(text)
            last = place
        return "\n".join(chosen), "\n"

    def _chosen_of(self, selection: Selection, number: int, text: str) -> str | None:
        """Return the selected code, a line whole where it is cut; None where there is no line."""
        start, stop = self.columns(selection, number, text)
        line = self.pane.line_at(number, is_old=self._selects_old)
        if line is None:
            return None if self._part_at(number) is Part.PAIR else text[start:stop]
        first, end = self._code_at(number)
        above = number - self.pane.row_of(self.pane.place_at(number))
        before = self.pane.aside + above * (end - first - 1)
        moved = len(head_of(line.text, before)) - first
        span = selection.get_span(number)
        is_to_end = span is None or not 0 <= span[1] < end
        if is_to_end and self.pane.is_wrapped and line.sign is not Sign.KEPT:
            stop, is_to_end = end - 1, False
        chosen = line.text[start + moved : None if is_to_end else stop + moved]
        return with_tabs(chosen, start + moved)

    def _part_at(self, number: int) -> Part | None:
        places = self.pane.places
        return places[self.pane.place_at(number)].part if places else None

    def _code_at(self, number: int) -> tuple[int, int]:
        return code_columns(self._part_at(number), self.code_cells, is_old=self._selects_old)

    # The mouse.

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Keep the cursor on screen where somebody scrolls."""
        is_by_hand = self._eye[-1:] == (self.size.height,)  # and not because of another height
        if self.pane.places and is_by_hand:
            self.pane.come_between(*self.seen_rows)
            self._eye = self._looked_at()
            self.post_message(self.Moved())
        super().watch_scroll_y(old_value, new_value)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to select on the side that is under the mouse."""
        self._selects_old = event.x < self.code_cells // 2

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on what was clicked; a second click opens it."""
        event.prevent_default()  # of Textual, two clicks select everything
        if self.text_selection or not self.pane.places:
            return
        row = self.top + event.y
        self.pane.come_between(row, row)
        self.post_message(self.Opened() if event.chain > 1 else self.Moved())

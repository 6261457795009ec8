"""Draw a terminal in a pane, and lead keys, pastes and the mouse into it."""

from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from textual import events
from textual.message import Message
from textual.timer import Timer

from engine.terminal.grid import Grid
from engine.terminal.keys import Button, key_bytes, mouse_bytes, paste_bytes
from engine.terminal.terminal import Terminal
from tui.ink import Row
from tui.kit.scrolled import Scrolled
from tui.terminals.rows import line_at, row_of, with_cursor

_FRAME_S = 1 / 60
_SOON_S = 0.001
"""Textual divides by the time of a timer."""
_WHEEL_LINES = 3
_BUTTONS = {1: Button.LEFT, 2: Button.MIDDLE, 3: Button.RIGHT}


class Program(Protocol):
    """A program whose terminal can be shown and typed into."""

    terminal: Terminal

    def write(self, data: bytes) -> None:
        """Type into it."""

    def resize(self, rows: int, columns: int) -> None:
        """Give it another size."""


class TerminalView(Scrolled, can_focus=True):
    """A terminal, with what has left its screen above it.

    While it has the focus, all keys are for the program but those that leave it.
    """

    class Left(Message):
        """The key was pressed that leaves the terminal."""

    class Entered(Message):
        """The terminal was clicked: keys are to be for it."""

    def __init__(self, *, id: str | None = None, leaving: Sequence[str] = ()) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.program: Program | None = None
        self.instead: Sequence[Row] = ()
        self.resizes = True
        self._leaving = leaving
        self._drawn_at = 0.0
        self._later: Timer | None = None
        self._is_held = False

    # Drawing.

    @property
    def base(self) -> int:
        """Return how many lines have gone before the first one that is kept."""
        program = self.program
        if program is None:
            return 0
        grid = program.terminal.grid
        return grid.scrolled - len(grid.history)

    def show_program(self, program: Program | None) -> None:
        """Show a program's terminal; the one before goes on unseen."""
        if program is not self.program:
            self.program, self._is_held = program, False
            self.fit()
            self.clear_selection()
        self.update()

    def clear_selection(self) -> None:
        """Forget what was selected: it was of another terminal."""
        if self.text_selection:
            self.screen.clear_selection()

    def fit(self) -> None:
        """Give the program the size of the pane."""
        if self.program and self.resizes and self.size.height and self.cells:
            self.program.resize(self.size.height, self.cells)

    def on_resize(self) -> None:
        """Give the program the new size."""
        self.fit()

    def changed(self) -> None:
        """Draw what the program has drawn, at most so often as a frame is seen."""
        if self._later is not None or not self.is_mounted:
            return
        wait_s = self._drawn_at + _FRAME_S - monotonic()
        self._later = self.set_timer(max(wait_s, _SOON_S), self._draw_now)

    def _draw_now(self) -> None:
        self._later = None
        if self.is_on_screen:
            self.update()

    def update(self) -> None:
        """Follow the end, unless somebody reads above it, and paint what is new."""
        self._drawn_at = monotonic()
        program = self.program
        if program is None:
            self.measure(len(self.instead))
        else:
            grid = program.terminal.grid
            at_top = self.top
            self.measure(len(grid.history) + grid.rows)
            self.go_to(at_top if self._is_held else self._end(grid))
        self.paint()

    def _end(self, grid: Grid) -> int:
        """Return the row at the top where the end is followed; of a large screen, the cursor."""
        below = max(grid.at[0] - self.size.height + 1, 0)
        return self.base + (
            len(grid.history) + below if grid.rows > self.size.height else self.count
        )

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return lines of the terminal, from one on."""
        program = self.program
        if program is None:
            return self.instead[number : number + count]
        grid, begin = program.terminal.grid, max(number - self.base, 0)
        last = min(begin + count, len(grid.history) + grid.rows)
        rows = [row_of(line_at(grid, y).drawn()) for y in range(begin, last)]
        y, x = grid.at
        at = len(grid.history) + y - begin
        if self.has_focus and grid.modes.shows_cursor and 0 <= at < len(rows):
            rows[at] = with_cursor(rows[at], x)
        return rows

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Hold where somebody scrolled to; at the end, follow again."""
        super().watch_scroll_y(old_value, new_value)
        self._is_held = new_value < self.count - self.size.height

    def scroll_lines(self, by: int) -> None:
        """Look at earlier or later lines."""
        top = self.top + by
        self.go_to(top)
        self._is_held = self.scroll_offset.y < self.count - self.size.height
        self.paint()

    # Typing.

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Take every key: the program knows what it means."""
        del key, character
        return self.program is not None

    def on_key(self, event: events.Key) -> None:
        """Lead a key to the program, or out of it."""
        event.stop()
        event.prevent_default()
        if event.key in self._leaving:
            self.post_message(self.Left())
        elif self.program:
            modes = self.program.terminal.grid.modes
            self._is_held = False
            self.program.write(key_bytes(event.key, event.character, modes))

    def on_paste(self, event: events.Paste) -> None:
        """Lead a paste to the program."""
        event.stop()
        event.prevent_default()
        if self.program:
            self.program.write(paste_bytes(event.text, self.program.terminal.grid.modes))

    def on_focus(self) -> None:
        """Show the cursor."""
        self.update()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.update()

    # The mouse.

    def _hears_mouse(self) -> bool:
        return bool(self.has_focus and self.program and self.program.terminal.grid.modes.mouse)

    def _tell_mouse(
        self,
        event: events.MouseEvent,
        button: Button,
        *,
        is_down: bool = True,
        is_move: bool = False,
    ) -> bool:
        """Tell the program of the mouse, if it wants to hear of it; say if it did."""
        program = self.program
        at = event.get_content_offset(self)
        if program is None or at is None or not self._hears_mouse():
            return False
        modes = program.terminal.grid.modes
        data = mouse_bytes(button, at.x, at.y, modes, is_down=is_down, is_move=is_move)
        program.write(data)
        event.stop()
        event.prevent_default()
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Tell the program; without its wish, a selection begins."""
        self._tell_mouse(event, _BUTTONS.get(event.button, Button.LEFT))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Tell the program."""
        self._tell_mouse(event, _BUTTONS.get(event.button, Button.LEFT), is_down=False)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell the program."""
        self._tell_mouse(event, _BUTTONS.get(event.button, Button.NONE), is_move=True)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Tell the program, or look at earlier lines."""
        self._wheel(event, Button.WHEEL_UP, -_WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Tell the program, or look at later lines."""
        self._wheel(event, Button.WHEEL_DOWN, _WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, button: Button, lines: int) -> None:
        if self._tell_mouse(event, button):
            return
        event.stop()
        event.prevent_default()
        program = self.program
        if program and self.has_focus and program.terminal.grid.is_alternate:
            name = "up" if lines < 0 else "down"
            modes = program.terminal.grid.modes
            program.write(key_bytes(name, None, modes) * abs(lines))
        else:
            self.scroll_lines(lines)

    def on_click(self, event: events.Click) -> None:
        """Let keys be for the program from now on. The end of a selection is no click."""
        event.prevent_default()
        if self.program and not self.text_selection:
            self.post_message(self.Entered())

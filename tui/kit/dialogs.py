"""The one dialog of the console: leaving while workers are alive."""

from dataclasses import dataclass

from tui.ink import BOLD, KEY, TEXT, Role, Row, Span, fit, words
from tui.kit.frames import framed
from tui.kit.lists import cursor_row

_WIDTH = 62


@dataclass
class LeaveDialog:
    """Leave the workers running, stop them, or stay; the first one is marked and harmless."""

    live: int
    can_stop: bool = True
    index: int = 0

    @property
    def options(self) -> list[tuple[str, str, str]]:
        """Key, words and what comes of it."""
        stop = [("s", "stop them", "their work is kept")] if self.can_stop else []
        return [
            ("l", "leave them running", "plait attach comes back"),
            *stop,
            ("esc", "stay here", ""),
        ]

    def move(self, by: int) -> None:
        """Move the mark."""
        self.index = (self.index + by) % len(self.options)

    def draw(self, cells: int, height: int) -> list[Row]:
        """The dialog in its frame."""
        del height
        width = min(cells - 4, _WIDTH)
        rows: list[Row] = [()]
        for place, (key, title, note) in enumerate(self.options):
            is_here = place == self.index
            name = Span(f"{title:<20}", BOLD if is_here else TEXT)
            row = words(*fit((Span(f" {key}", KEY),), 6), name, note)
            rows.append(cursor_row(row, width - 4, is_focused=is_here))
        rows += [(), words(" Nothing is lost either way."), ()]
        noun = "worker is" if self.live == 1 else "workers are"
        heading = (Span(f"{self.live} {noun} live", BOLD),)
        return framed(
            rows, (width, len(rows) + 2), title=heading, is_focused=True, ground=Role.SURFACE
        )

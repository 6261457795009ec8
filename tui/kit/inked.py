"""A board paints rows of inked text, and repaints only the cells that changed."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.ink import Row, Zone, row_width
from tui.kit.ascii import ascii_row
from tui.kit.palette import Palette


class Board(Widget):
    """A grid of rows. It never parses markup: what it is given is text and inks."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Board { width: 1fr; height: 1fr; layer: board; }"

    class Clicked(Message):
        """A zone was clicked; `times` is 2 for a double click."""

        def __init__(self, target: str, times: int) -> None:
            super().__init__()
            self.target = target
            self.times = times

    class Wheeled(Message):
        """The wheel was turned: so many rows, downwards positive."""

        def __init__(self, rows: int) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, palette: Palette, *, is_ascii: bool = False) -> None:
        super().__init__()
        self.palette = palette
        self.is_ascii = is_ascii
        self.rows: tuple[Row, ...] = ()
        self.zones: tuple[Zone, ...] = ()
        self._strips: dict[int, Strip] = {}

    def show(self, rows: Sequence[Row], zones: Sequence[Zone] = ()) -> None:
        """Show these rows; only what differs from the rows before is painted."""
        before, self.rows, self.zones = self.rows, tuple(rows), tuple(zones)
        if len(before) != len(self.rows):
            self._strips.clear()
            self.refresh()
            return
        changed = [
            _changed(y, old, new)
            for y, (old, new) in enumerate(zip(before, self.rows, strict=True))
            if old != new
        ]
        for region in changed:
            self._strips.pop(region.y, None)
        if changed:
            self.refresh(*changed)

    def wear(self, palette: Palette) -> None:
        """Take other colours."""
        self.palette = palette
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row as the terminal library wants it."""
        strip = self._strips.get(y)
        if strip is None:
            row = self.rows[y] if y < len(self.rows) else ()
            strip = self._strips[y] = self._strip(row)
        return strip

    def _strip(self, row: Row) -> Strip:
        style = self.palette.style
        shown = ascii_row(row) if self.is_ascii else row
        segments = [Segment(text, style(ink)) for text, ink in shown if text]
        return Strip(segments).simplify().adjust_cell_length(self.size.width, self.palette.paper)

    def on_resize(self) -> None:
        """Rows are drawn for a width: old strips are of no use."""
        self._strips.clear()

    def on_click(self, event: events.Click) -> None:
        """Tell which zone was clicked."""
        for zone in reversed(self.zones):
            if zone.x <= event.x < zone.x + zone.width and zone.y <= event.y < zone.y + zone.height:
                self.post_message(self.Clicked(zone.target, event.chain))
                return

    def on_mouse_scroll_down(self) -> None:
        """Three rows down."""
        self.post_message(self.Wheeled(3))

    def on_mouse_scroll_up(self) -> None:
        """Three rows up."""
        self.post_message(self.Wheeled(-3))


def _changed(y: int, old: Row, new: Row) -> Region:
    """The cells of a row that may differ: what both have at their beginning and end is left out."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    start = row_width(new[:first])
    width = max(row_width(old), row_width(new))
    same_end = row_width(new[len(new) - last :]) if row_width(old) == row_width(new) else 0
    return Region(start, y, max(width - start - same_end, 0), 1)

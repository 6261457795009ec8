"""Paint rows of ink in a widget, and repaint only the cells that changed."""

from collections.abc import Sequence
from typing import Protocol, cast

from rich.segment import Segment
from textual import events
from textual.color import Color
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.ink import Ink, Page, Row, Zone, row_width, text_of
from tui.kit.ascii import ascii_row
from tui.kit.palette import Palette


class Painter(Protocol):
    """An application that says how inks look."""

    palette: Palette
    is_ascii: bool


class Inked(Widget):
    """Rows of text and inks; never markup."""

    ALLOW_SELECT = False
    rows: tuple[Row, ...] = ()
    zones: tuple[Zone, ...] = ()

    class Clicked(Message):
        """A zone was clicked; `times` is 2 for a double click."""

        def __init__(self, target: str, times: int) -> None:
            super().__init__()
            self.target = target
            self.times = times

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._strips: dict[int, Strip] = {}

    @property
    def painter(self) -> Painter:
        """The application, as far as this room knows it."""
        return cast("Painter", self.app)

    @property
    def text(self) -> str:
        """Return what a reader without colours sees."""
        return text_of(self.rows)

    def show(self, page: Page | Sequence[Row]) -> None:
        """Show these rows; only what differs from the rows before is painted."""
        rows, zones = (page.rows, page.zones) if isinstance(page, Page) else (page, ())
        before, self.rows, self.zones = self.rows, tuple(rows), zones
        if len(before) != len(self.rows):
            self._strips.clear()
            self.refresh(layout=self.styles.is_auto_height)
            return
        changed = [
            changed_cells(y, old, new)
            for y, (old, new) in enumerate(zip(before, self.rows, strict=True))
            if old != new
        ]
        for region in changed:
            self._strips.pop(region.y, None)
        if changed:
            self.refresh(*changed)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows there are, for a height that follows them."""
        del container, viewport, width
        return len(self.rows)

    def notify_style_update(self) -> None:
        """Forget what was painted in other colours."""
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Return one row as the terminal library wants it."""
        strip = self._strips.get(y)
        if strip is None:
            row = self.rows[y] if y < len(self.rows) else ()
            strip = self._strips[y] = self._strip(row)
        return strip

    def _strip(self, row: Row) -> Strip:
        style, paper = self.painter.palette.style, self.painter.palette.paper
        shown = ascii_row(row) if self.painter.is_ascii else row
        segments = [Segment(text, style(ink)) for text, ink in shown if text]
        return Strip(segments).simplify().adjust_cell_length(self.content_size.width, paper)

    def on_resize(self) -> None:
        """Forget strips of another width."""
        self._strips.clear()

    def on_click(self, event: events.Click) -> None:
        """Tell which zone was clicked."""
        if target := zone_at(self.zones, event.x, event.y):
            self.post_message(self.Clicked(target, event.chain))


def zone_at(zones: Sequence[Zone], x: int, y: int) -> str:
    """Return what lies at a place, the topmost zone first; empty where nothing does."""
    for zone in reversed(zones):
        if zone.x <= x < zone.x + zone.width and zone.y <= y < zone.y + zone.height:
            return zone.target
    return ""


def content_of(row: Row, palette: Palette) -> Content:
    """Return a row as the content of a widget of Textual's own."""
    return Content.assemble(*((text, _style(palette, ink)) for text, ink in row if text))


def _style(palette: Palette, ink: Ink) -> Style:
    """Return an ink as a style that keeps the ground it lies on."""
    made = palette.style(ink)
    return Style(
        background=Color.from_rich_color(made.bgcolor) if ink.ground and made.bgcolor else None,
        foreground=Color.from_rich_color(made.color) if made.color else None,
        bold=ink.bold,
        italic=ink.italic,
        underline=ink.underline,
    )


def changed_cells(y: int, old: Row, new: Row) -> Region:
    """Return the cells of a row that may differ, without what both begin and end with."""
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

"""Scroll rows of ink: draw those on screen, paint those that differ, let their text be selected."""

from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.ink import LINE, Ink, Page, Role, Row, Span, text_of, width_of
from tui.kit.ascii import ascii_row
from tui.kit.inked import Inked, Painter, changed_cells, zone_at

_KEPT_STRIPS = 512


class WholeCells(ScrollBarRender):
    """A scrollbar without parts of cells: every terminal has a blank."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]


class Scrolled(ScrollView, can_focus=False):
    """Rows that scroll. Subclasses say which rows there are; `update` paints what is new of them.

    Rows are counted for ever: a selection holds numbers of rows, and stays with its text while
    rows come at the end and go at the beginning.
    """

    lead = 0
    """The columns before the text: they are neither selected nor copied."""
    foot: Row = ()
    """What stands over the last row on screen."""
    cells = 0
    """The width that there is for rows."""
    high = 0
    """The number of rows that there is room for."""

    class Resized(Message):
        """There is another number of cells to draw for."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._seen: Sequence[Row] = ()
        self._seen_from = 0
        self._count = 0
        self._strips: dict[Row, Strip] = {}
        self._palette: object = None

    # What subclasses say.

    @property
    def first(self) -> int:
        """The number of the first row that is still there."""
        return 0

    def bar(self) -> Callable[..., ScrollBarRender]:
        """Return what draws the scrollbar."""
        return WholeCells

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        raise NotImplementedError

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, and what stands between it and the next."""
        lines = []
        begin, end = self.chosen(selection)
        for number, row in enumerate(self.rows_at(begin, end - begin), begin):
            text = text_of([row])
            start, stop = self.columns(selection, number, text)
            lines.append(text[start:stop])
        return "\n".join(lines), "\n"

    def columns(self, selection: Selection, number: int, text: str) -> tuple[int, int]:
        """Return the selected columns of a row."""
        return columns_of(selection, number, text, self.lead)

    def chosen(self, selection: Selection) -> tuple[int, int]:
        """Return the first selected row that is still there, and the one behind the last."""
        end = self.first + self._count
        begin = self.first if selection.start is None else max(selection.start.y, self.first)
        return begin, end if selection.end is None else min(selection.end.y + 1, end)

    def edge(self, height: int) -> Sequence[Span]:
        """Return the cells of the scrollbar, for a view whose bar is a map."""
        seen = range(*(row * height // max(self.count, 1) for row in self.seen_rows))
        return [Span("┃", Ink(Role.FOCUS)) if y in seen else Span("│", LINE) for y in range(height)]

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._count

    @property
    def seen_rows(self) -> tuple[int, int]:
        """The first and the last row on screen."""
        return self.top, self.top + max(self.room - 1, 0)

    # Drawing.

    @property
    def painter(self) -> Painter:
        """The application, as far as this room knows it."""
        return cast("Painter", self.app)

    @property
    def rows(self) -> Sequence[Row]:
        """Return the rows on screen."""
        return self._seen

    @property
    def room(self) -> int:
        """The number of rows that scroll."""
        return self.high - bool(self.foot)

    @property
    def top(self) -> int:
        """The number of the row at the top of the screen."""
        return self.first + self.scroll_offset.y

    def on_mount(self) -> None:
        """Scroll by whole cells."""
        self.vertical_scrollbar.renderer = self.bar()  # type: ignore[misc,assignment]

    def on_resize(self) -> None:
        """Draw for the new size; rows depend on the width alone."""
        before, (self.cells, self.high) = self.cells, self.scrollable_content_region.size
        if before != self.cells:
            self._strips.clear()
            self.post_message(self.Resized())
        self.measure(self._count)
        self.update()

    def update(self) -> None:
        """Paint the rows on screen that differ from those painted last."""
        before, seen_from = self._seen, self._seen_from
        self._look()
        if self._palette is not self.painter.palette:
            self._palette = self.painter.palette
            self._strips.clear()
            self.refresh()
        elif seen_from != self._seen_from or len(before) != len(self._seen):
            self.refresh()
        elif changed := [
            changed_cells(y, old, new)
            for y, (old, new) in enumerate(zip(before, self._seen, strict=True))
            if old != new
        ]:
            self.refresh(*changed)

    def measure(self, count: int) -> None:
        """Say how many rows there are; a virtual size that is assigned lays out the screen anew."""
        self._count = count
        size = Size(self.cells, count + bool(self.foot))
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.refresh()

    def _look(self) -> None:
        self._seen_from = self.top
        rows = self.rows_at(self.top, self.room)
        blanks = [()] * (self.room - len(rows)) if self.foot else ()
        self._seen = [*rows, *blanks, self.foot] if self.foot else rows

    def render_line(self, y: int) -> Strip:
        """Return one row as the terminal library wants it."""
        if self._seen_from != self.top:
            self._look()
        row = self._seen[y] if y < len(self._seen) else ()
        number, strip = self._seen_from + y, self._strip(row)
        if y >= self.room:
            return strip
        if selection := self.text_selection:
            strip = self._selected(strip, selection, number)
        is_pointed = self.mouse_hover or selection  # the mouse alone asks what is where
        return strip.apply_offsets(0, number) if is_pointed else strip

    def _strip(self, row: Row) -> Strip:
        strip = self._strips.get(row)
        if strip is None:
            if len(self._strips) >= _KEPT_STRIPS:
                self._strips.clear()
            style, paper = self.painter.palette.style, self.painter.palette.paper
            shown = ascii_row(row) if self.painter.is_ascii else row
            segments = [Segment(text, style(ink)) for text, ink in shown if text]
            strip = Strip(segments).simplify().adjust_cell_length(self.cells, paper)
            self._strips[row] = strip
        return strip

    def _selected(self, strip: Strip, selection: Selection, number: int) -> Strip:
        text = strip.text.rstrip()
        start, stop = self.columns(selection, number, text)
        if start >= stop:
            return strip
        left, right = width_of(text[:start]), width_of(text[:stop])
        turned = [Segment(part, _turned(style)) for part, style, _ in strip.crop(left, right)]
        return Strip.join([strip.crop(0, left), Strip(turned), strip.crop(right)])

    def notify_style_update(self) -> None:
        """Forget what was painted in other colours."""
        self._strips.clear()
        super().notify_style_update()


class MapBar(ScrollBarRender):
    """A scrollbar that its view draws as a map."""

    def __init__(self, view: Scrolled, **known: object) -> None:
        super().__init__(**known)  # type: ignore[arg-type]
        self.view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a cell for each row; those on screen can be dragged."""
        view, height = self.view, options.height or console.height
        edge = tuple(view.edge(height))
        shown = ascii_row(edge) if view.painter.is_ascii else edge
        begin, end = (row * height // max(view.count, 1) for row in view.seen_rows)
        segments = []
        for y, (text, ink) in enumerate(shown):
            does = "grab" if begin <= y <= end else "scroll_up" if y < begin else "scroll_down"
            style = view.painter.palette.style(ink) + Style(meta={"@mouse.down": does})
            segments.append(Segment(text, style))
        yield Segments(segments, new_lines=True)


def columns_of(selection: Selection, number: int, text: str, lead: int) -> tuple[int, int]:
    """Return the selected columns of a row."""
    span = selection.get_span(number)
    if span is None:
        return 0, 0
    start, stop = span
    return max(start, lead), len(text) if stop < 0 else min(stop, len(text))


def _turned(style: Style | None) -> Style:
    """Return a style with its two colours exchanged, which every theme shows."""
    style = style or Style()
    return style + Style(reverse=not style.reverse)


class Rows(Scrolled):
    """Rows of ink that are all known; zones of them can be clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._page = Page(())
        self._revealed = -1

    def show(self, page: Page | Sequence[Row]) -> None:
        """Show these rows; where somebody scrolled to is kept."""
        self._page = page if isinstance(page, Page) else Page(tuple(page))
        self.measure(len(self._page.rows))
        self.update()

    def reveal(self, number: int) -> None:
        """Bring a row on screen, where it has come to be another one."""
        if number != self._revealed:
            self._revealed = number
            top = max(min(self.top, number), number + 3 - self.room, 0)
            self.scroll_to(y=top, animate=False, force=True)

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        return self._page.rows[number : number + count]

    def on_click(self, event: events.Click) -> None:
        """Tell which zone was clicked."""
        if target := zone_at(self._page.zones, event.x, event.y + self.scroll_offset.y):
            self.post_message(Inked.Clicked(target, event.chain))

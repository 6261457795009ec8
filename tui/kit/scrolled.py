"""Scroll numbered rows of ink: draw those on screen, let their text be selected and copied."""

from collections.abc import Callable, Sequence

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

from tui.ink import LINE, Ink, Page, Role, Row, Span, text_of
from tui.kit.ascii import ascii_row
from tui.kit.inked import Inked
from tui.kit.readable import marked


class Scrolled(Inked, ScrollView, can_focus=False, inherit_bindings=False):
    """Rows that scroll. Subclasses say which rows there are; `update` paints what is new of them.

    A selection holds numbers of rows, so it stays with its text while rows scroll.
    """

    ALLOW_SELECT = True

    class Resized(Message):
        """There is another number of cells to draw for."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.count = 0
        self._cells = 0

    # What subclasses say.

    def rows_at(self, number: int, count: int) -> Page:
        """Return at most so many rows, from one on, and what a click on them means."""
        raise NotImplementedError

    def columns(self, selection: Selection, number: int, text: str) -> tuple[int, int]:
        """Return the selected columns of a row."""
        start, stop = selection.get_span(number) or (0, 0)
        end = len(text.rstrip())
        return start, end if stop < 0 else min(stop, end)

    def edge(self, height: int) -> Sequence[Span]:
        """Return the cells of the scrollbar: which rows are on screen."""
        begin, end = (row * height // max(self.count, 1) for row in self.seen_rows)
        seen, rest = Span("┃", Ink(Role.FOCUS)), Span("│", LINE)
        return [seen if begin <= y <= end else rest for y in range(height)]

    def bar(self) -> Callable[..., ScrollBarRender] | None:
        """Return what draws the scrollbar, where Textual does not."""

    # Drawing.

    @property
    def cells(self) -> int:
        """The width that there is for rows, beside the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def top(self) -> int:
        """The number of the row at the top of the screen."""
        return self.scroll_offset.y

    @property
    def seen_rows(self) -> tuple[int, int]:
        """The first and the last row on screen."""
        return self.top, self.top + max(self.size.height - 1, 0)

    def on_mount(self) -> None:
        """Draw the scrollbar in its own way."""
        if bar := self.bar():
            vars(self.vertical_scrollbar)["renderer"] = bar

    def on_resize(self) -> None:
        """Draw as many rows as there is room for now; another width needs other rows."""
        super().on_resize()
        if self._cells != self.cells:
            self._cells = self.cells
            self.post_message(self.Resized())
        self.measure(self.count)
        self.update()

    def update(self) -> None:
        """Paint the rows on screen that differ from those painted last."""
        super().show(self.rows_at(self.top, self.size.height))

    def measure(self, count: int) -> None:
        """Say how many rows there are; a size that is assigned would lay out the screen anew."""
        self.count = count
        size = Size(self.cells, count)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = count
            self.go_to(self.top)

    def go_to(self, top: int) -> None:
        """Scroll without Textual's watchers, which would paint everything."""
        top = max(min(top, self.count - self.size.height), 0)
        if top != self.top:
            self.set_reactive(Widget.scroll_y, float(top))
            self.set_reactive(Widget.scroll_target_y, float(top))
            self.vertical_scrollbar.position = top

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the rows that somebody scrolled to."""
        super().watch_scroll_y(old_value, new_value)
        self.update()

    # Selecting.

    def render_line(self, y: int) -> Strip:
        """Return one row; the one under the mouse tells where its signs are."""
        strip, number, selection = super().render_line(y), self.top + y, self.text_selection
        if selection and y < len(self.rows):
            start, stop = self.columns(selection, number, text_of([self.rows[y]]))
            if start < stop:
                strip = self._strip(marked(self.rows[y], start, stop))
        is_pointed = self.app.mouse_position.y - self.content_region.y == y
        return strip.apply_offsets(0, number) if is_pointed else strip

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, and what stands between it and the next."""
        begin = selection.start.y if selection.start else 0
        end = min(selection.end.y + 1, self.count) if selection.end else self.count
        rows = self.rows_at(begin, end - begin).rows
        chosen = (self.chosen(selection, n, text_of([row])) for n, row in enumerate(rows, begin))
        return "\n".join(text for text in chosen if text is not None), "\n"

    def chosen(self, selection: Selection, number: int, text: str) -> str | None:
        """Return what is selected of a row; None where it is to be left out."""
        start, stop = self.columns(selection, number, text)
        return text[start:stop]

    def on_click(self, event: events.Click) -> None:
        """Let neither the end of a selection be a click, nor two clicks select everything."""
        event.prevent_default()
        if not self.text_selection:
            super().on_click(event)


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
            self.go_to(max(min(self.top, number), number + 3 - self.size.height))
            self.update()

    def rows_at(self, number: int, count: int) -> Page:
        """Return at most so many rows, from one on, and what a click on them means."""
        zones = tuple(zone._replace(y=zone.y - number) for zone in self._page.zones)
        return Page(self._page.rows[number : number + count], zones)

"""Scroll numbered rows of ink: draw those on screen, let their text be selected and copied."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.selection import Selection
from textual.widget import Widget

from tui.ink import LINE, Ink, Role, Row, Span, text_of
from tui.kit.ascii import ascii_row
from tui.kit.inked import Inked
from tui.kit.panes import Draws

_NOWHERE = range(0)


class Scrolled(Inked, ScrollView, can_focus=False, inherit_bindings=False):
    """Rows that scroll. Subclasses say which rows there are; `update` paints what is new of them.

    A selection holds numbers of rows, so it stays with its text while rows scroll.
    """

    ALLOW_SELECT = True
    is_map_of_rows = True
    """The map beside it is of its own rows, not of something larger."""

    class Resized(Message):
        """There is another number of cells to draw for."""

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        edge: Callable[[int], Sequence[Span]] | None = None,
    ) -> None:
        """Show rows; where an edge is given, its cells are the scrollbar: a map of the rows."""
        super().__init__(id=id)
        self.count = 0
        self.edge = edge
        self._edge: Sequence[Span] = ()
        self._size_before = Size()

    # What subclasses say.

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        raise NotImplementedError

    @property
    def base(self) -> int:
        """The number of the first row: of a log, so many have gone before it."""
        return 0

    # Drawing.

    def _lies_bare(self) -> bool:
        """Leave the lines to Textual: a scrollbar comes and goes beside them."""
        return False

    @property
    def cells(self) -> int:
        """The width that there is for rows, beside a scrollbar."""
        return max(self.content_size.width - self.styles.scrollbar_size_vertical, 0)

    @property
    def top(self) -> int:
        """The number of the row at the top of the screen."""
        return self.base + self.scroll_offset.y

    @property
    def seen_rows(self) -> tuple[int, int]:
        """The first and the last row on screen."""
        return self.top, self.top + max(self.size.height - 1, 0)

    def edge_of_rows(self, height: int) -> Sequence[Span]:
        """Return an edge that tells which rows are on screen."""
        begin, end = (row * height // max(self.count, 1) for row in self.seen_rows)
        seen, rest = Span("┃", Ink(Role.FOCUS)), Span("│", LINE)
        return [seen if begin <= y <= end else rest for y in range(height)]

    def on_mount(self) -> None:
        """Let the scrollbar be a map, where there is one."""
        if self.edge:
            vars(self.vertical_scrollbar)["renderer"] = partial(MapBar, self, self.edge)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows there are, also of those that are not on screen."""
        del container, viewport, width
        return self.count

    def on_resize(self) -> None:
        """Draw as many rows as there is room for now; another width needs other rows."""
        if self._size_before != self.size:
            self._size_before = self.size
            self.post_message(self.Resized())
        self.measure(self.count)
        self.update()

    def update(self) -> None:
        """Go to where the rows are looked at, and paint what is new there."""
        self.paint()

    def seen(self) -> Sequence[Row]:
        """Return the rows on screen."""
        return self.rows_at(self.top, self.size.height)

    def paint(self) -> None:
        """Paint the rows on screen that differ from those painted last, and the map."""
        Inked.show(self, self.seen())
        if self.edge and self._edge != (edge := self.edge(self.size.height)):
            self._edge = edge
            self.vertical_scrollbar.refresh()

    def measure(self, count: int) -> None:
        """Say how many rows there are.

        A size that is assigned lays the screen out anew. So it is only where a scrollbar may come
        or go, or where the height follows.
        """
        self.count = count
        size = Size(self.size.width, count)
        if size == self.virtual_size:
            return
        if self.styles.overflow_y == "auto":
            self.virtual_size = size
        else:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = count
        self.go_to(self.top)

    def go_to(self, top: int) -> None:
        """Scroll to a row without Textual's watchers, which would paint everything."""
        offset = max(min(top - self.base, self.count - self.size.height), 0)
        if offset != self.scroll_offset.y:
            self.set_reactive(Widget.scroll_y, float(offset))
            self.set_reactive(Widget.scroll_target_y, float(offset))
            self.vertical_scrollbar.position = offset

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the rows that somebody scrolled to."""
        super().watch_scroll_y(old_value, new_value)
        self.paint()

    # Selecting.

    def touched(self, selection: Selection) -> tuple[int, int]:
        """Return the first row that a selection touches, and the one behind its last."""
        last = self.base + self.count
        begin = selection.start.y if selection.start else self.base
        end = selection.end.y + 1 if selection.end else last
        return max(begin, self.base), min(end, last)

    def texts(self, selection: Selection) -> Mapping[int, str]:
        """Return the rows that a selection touches, by their numbers."""
        begin, end = self.touched(selection)
        rows = self.rows_at(begin, end - begin)
        return {number: text_of([row]) for number, row in enumerate(rows, begin)}


class MapBar(ScrollBarRender):
    """A scrollbar that its view draws as a map."""

    def __init__(
        self, view: Scrolled, edge: Callable[[int], Sequence[Span]], **known: object
    ) -> None:
        super().__init__(**known)  # type: ignore[arg-type]
        self.view = view
        self.edge = edge

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a cell for each row; those on screen can be dragged, and what is marked clicked.

        A map of rows that are all on screen has nothing to show.
        """
        view, height = self.view, options.height or console.height
        is_seen = view.count > height or not view.is_map_of_rows
        edge = tuple(self.edge(height)) if is_seen else (Span(" "),) * height
        shown = ascii_row(edge) if view.painter.is_ascii else edge
        begin, end = (row * height // max(view.count, 1) for row in view.seen_rows)
        segments = []
        for y, (text, ink) in enumerate(shown):
            does = "grab" if begin <= y <= end else "scroll_up" if y < begin else "scroll_down"
            does = f"screen.point('{ink.does}')" if ink.does else does
            style = view.painter.palette.style(ink) + Style(meta={"@mouse.down": does})
            segments.append(Segment(text, style))
        yield Segments(segments, new_lines=True)


class Rows(Scrolled):
    """Rows of which those on screen are drawn.

    The rows under the cursor are brought on screen when they have moved, and when a key was
    pressed. `read_to` is how far down every row was once on screen.
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        edge: Callable[[int], Sequence[Span]] | None = None,
        is_map_of_rows: bool = True,
        lead: int = 0,
    ) -> None:
        super().__init__(id=id, edge=edge)
        self.is_map_of_rows = is_map_of_rows
        self.lead = lead
        self._draw: Callable[[int], Row] = lambda _: ()
        self._more: Callable[[int], Row] | None = None
        self._of: object = None
        self._seen: object = None
        self.read_to = 0

    def show(self, rows: Sequence[Row], here: range = _NOWHERE, *, of: object = None) -> None:
        """Show these rows; see `fill`."""
        self.fill(len(rows), rows.__getitem__, here, of=of)

    def fill(
        self,
        count: int,
        draw: Callable[[int], Row],
        here: range = _NOWHERE,
        *,
        of: object = None,
        more: Callable[[int], Row] | None = None,
    ) -> None:
        """Show so many rows; only those on screen are drawn.

        Args:
            count: How many rows there are.
            draw: Return the row of an index.
            here: The rows that are under the cursor.
            of: What they are of: where that is another thing, they begin at their top.
            more: Return what stands in place of so many rows that do not fit; by default they are
                cut off.
        """
        self._draw, self._more = draw, more
        self.measure(count)
        if of != self._of:
            self._of, self.read_to = of, 0
            self.go_to(0)
        fingered_at = self.screen.fingered_at if isinstance(self.screen, Draws) else 0.0
        seen = (here, count, self.size, fingered_at)
        if seen != self._seen and self.size.height:
            self._seen = seen
            if here:
                self.go_to(max(min(self.top, here.start), here.stop - self.size.height))
        self.update()

    def rows_at(self, number: int, count: int) -> Sequence[Row]:
        """Return at most so many rows, from one on."""
        return [self._draw(y) for y in range(number, min(number + count, self.count))]

    def seen(self) -> Sequence[Row]:
        """Return the rows on screen; the last of them may say how many more there are."""
        rows = list(super().seen())
        left = self.count - self.top - len(rows)
        is_cut = left > 0 and len(rows) > 1 and self._more is not None
        if self.top <= self.read_to:  # what was jumped over was not read
            self.read_to = max(self.read_to, self.top + len(rows) - is_cut)
        if is_cut and self._more:
            rows[-1] = self._more(left + 1)
        return rows

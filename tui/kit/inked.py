"""Paint rows of ink in a widget, repaint only the cells that changed, let their text be copied."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Protocol, TypeVar, cast

from rich.segment import Segment
from textual import events
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.ink import KEY, Ink, Role, Row, Span, row_width, text_of, width_of
from tui.kit.ascii import ascii_row, ascii_text
from tui.kit.bindings import pressed_by
from tui.kit.palette import Palette
from tui.kit.panes import Edge, Edged, edge_of
from tui.kit.working import Survives

_LAID_OVER = (
    *(f"outline_{side}" for side in ("top", "right", "bottom", "left")),
    "tint",
    "text_opacity",
    "hatch",
)
"""The rules of a style sheet that change cells of rows; borders and padding take cells away."""


class Painter(Protocol):
    """An application that says how inks look."""

    palette: Palette
    is_ascii: bool


class Inked(Widget):
    """Rows of text and inks; never markup.

    What was selected stays what it was when it was selected, while the rows go on changing.
    """

    ALLOW_SELECT = False
    rows: tuple[Row, ...] = ()
    does = ""
    """Do this at a click where the ink under it means nothing."""
    lead = 0
    """So many columns stand before the text: they are neither selected nor copied."""
    _chosen: Mapping[int, str] = MappingProxyType({})
    edge_name, edge_way = "", 1
    """The name of its width, if its border is dragged: the right one (1) or the left one (-1)."""
    _taken: tuple[Edge, int] | None = None
    """The edge that the mouse holds, and where it took it."""
    _is_bare: bool | None = None
    """None: not known for the style and the size that it has now."""

    class Clicked(Message):
        """Something was clicked that means something; `times` is 2 for a double click."""

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
        """Return what a reader without colors sees."""
        return text_of(self.rows)

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; only what differs from the rows before is painted."""
        before, self.rows = self.rows, tuple(rows)
        if len(before) != len(self.rows):
            self._strips.clear()
            self.refresh(layout=self.styles.is_auto_height)
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

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows there are, for a height that follows them."""
        del container, viewport, width
        return len(self.rows)

    def notify_style_update(self) -> None:
        """Forget what was painted in other colors."""
        self._strips.clear()
        self._is_bare = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Return one row; the one under the mouse tells where its signs are."""
        return self._line(y, *self._touched())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows as they are, where no style sheet puts anything round or over them.

        Textual's way costs as much again as drawing the rows: most of a frame of many tiles.
        """
        if self._is_bare is None:
            self._is_bare = self._lies_bare()
        if not self._is_bare:
            return super().render_lines(crop)
        touched = self._touched()
        strips = [self._line(y, *touched) for y in crop.line_range]
        if crop.column_span == (0, self.outer_size.width):
            return strips
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def _touched(self) -> tuple[Selection | None, int]:
        """Return what is selected here, and the row that the mouse is over; -1 for none."""
        if not (
            self.ALLOW_SELECT and self.is_attached
        ):  # one that was removed is painted once more
            return None, -1
        return self.text_selection, self.app.mouse_position.y - self.content_region.y

    def _line(self, y: int, selection: Selection | None, pointed: int) -> Strip:
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._drawn(self.rows[y] if y < len(self.rows) else ())
        number = self.top + y if selection or y == pointed else 0
        if selection and y < len(self.rows):
            start, stop = self.columns(selection, number, text_of([self.rows[y]]))
            if start < stop:
                strip = self._drawn(marked(self.rows[y], start, stop))
        return strip.apply_offsets(0, number) if y == pointed else strip

    def _drawn(self, row: Row) -> Strip:
        """Return a row as it is painted; blank where that fails, or no frame could be painted."""
        try:
            return self._strip(row)
        except Exception as error:  # whatever painting raises: this row is blank
            if not isinstance(self.app, Survives):
                raise
            self.app.call_later(self.app.work_failed, error)
            return Strip.blank(self.content_size.width)

    def _lies_bare(self) -> bool:
        """Say if the colors of the rows are final, and the rows fill the widget."""
        palette = self.painter.palette
        is_final = palette.has_truecolor and not palette.is_plain
        if not is_final or self.content_size != self.outer_size or self.opacity != 1:
            return False
        return not self.styles.has_any_rules(*_LAID_OVER)

    def _strip(self, row: Row) -> Strip:
        style, paper = self.painter.palette.style, Ink(ground=self._ground)
        shown = ascii_row(row) if self.painter.is_ascii else row
        if paper.ground:  # an ink without a ground of its own lies on that of the dialog
            shown = tuple(
                Span(text, ink if ink.ground else ink._replace(ground=paper.ground))
                for text, ink in shown
            )
        styled = ((style(ink), text) for text, ink in shown if text)
        segments = [
            Segment("".join(text for _, text in parts), look)
            for look, parts in groupby(styled, itemgetter(0))
        ]
        return Strip(segments).adjust_cell_length(self.content_size.width, style(paper))

    @property
    def _ground(self) -> Role | None:
        """The ground of rows in a dialog; None on a screen, whose ground is the usual one."""
        return Role.SURFACE if self.is_attached and self.screen.is_modal else None

    def on_resize(self) -> None:
        """Forget strips of another width."""
        self._strips.clear()
        self._is_bare = None

    def on_click(self, event: events.Click) -> None:
        """Tell what was clicked. The end of a selection is no click."""
        event.prevent_default()  # of Textual, two clicks select everything
        edge = self.edge_at(event.screen_x, event.screen_y)
        if edge and event.chain > 1:
            self.post_message(Edged(edge.name, None))
        at = event.get_content_offset(self)
        if at is None or self.text_selection:
            return
        span = self._span_at(at.x, at.y)
        for key in pressed_by(span.text) if _is_key(span.ink) and event.chain == 1 else ():
            self.app.simulate_key(key)
        does = span.ink.does or self.does
        if does and not edge_of(does) and not _is_key(span.ink):
            self.post_message(self.Clicked(does, event.chain))

    def _span_at(self, x: int, y: int) -> Span:
        """Return the span of a cell."""
        end = 0
        for span in self.rows[y] if y < len(self.rows) else ():
            end += width_of(span.text)
            if x < end:
                return span
        return Span("")

    # Dragging.

    @property
    def has_edge(self) -> bool:
        """Say if it has a border that is dragged."""
        right, left = self.styles.border_right[0], self.styles.border_left[0]
        return bool(self.edge_name and (right if self.edge_way > 0 else left))

    def edge_at(self, x: int, y: int) -> Edge | None:
        """Return the edge at a place of the screen, if there is one."""
        inside, outside = self.content_region, self.region
        at_edge = outside.right - 1 if self.edge_way > 0 else outside.x
        if self.has_edge and x == at_edge and outside.contains(x, y):
            return Edge(self.edge_name, self.edge_way, outside.width)
        return (
            edge_of(self._span_at(x - inside.x, y - inside.y).ink.does)
            if inside.contains(x, y)
            else None
        )

    @property
    def allow_select(self) -> bool:
        """Select no text from an edge on: it is dragged."""
        return super().allow_select and not self.edge_at(*self.app.mouse_position)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take the edge under the mouse."""
        if edge := self.edge_at(event.screen_x, event.screen_y):
            self._taken = edge, event.screen_x
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the edge that is held along; show where one can be taken."""
        if self._taken:
            edge, start = self._taken
            wished = edge.cells + edge.way * (event.screen_x - start)
            self.post_message(Edged(edge.name, max(wished, 1)))
        elif self.is_attached:
            self.set_class(self.edge_at(event.screen_x, event.screen_y) is not None, "-edge")

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let the edge go."""
        del event
        if self._taken:
            self._taken = None
            self.release_mouse()

    def on_leave(self) -> None:
        """No edge is under the mouse any more."""
        self.remove_class("-edge")

    # Selecting.

    @property
    def top(self) -> int:
        """The number of the row at the top: a selection holds numbers of rows."""
        return 0

    def texts(self, selection: Selection) -> Mapping[int, str]:
        """Return the rows that a selection touches, by their numbers."""
        return {y: text_of([row]) for y, row in enumerate(self.rows) if selection.get_span(y)}

    def columns(self, selection: Selection, number: int, text: str) -> tuple[int, int]:
        """Return the selected columns of a row; none where it has changed since."""
        if self._chosen.get(number, text) != text:
            return 0, 0
        start, stop = selection.get_span(number) or (0, 0)
        end = len(text.rstrip())
        return max(start, self.lead), end if stop < 0 else min(stop, end)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text that was selected, and what stands between it and the next."""
        lines = []
        for number, text in sorted(self._chosen.items()):
            start, stop = self.columns(selection, number, text)
            lines.append(text[start:stop])
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Keep the text that is selected now."""
        self._chosen = self.texts(selection) if selection else {}
        self.refresh()


def marked(row: Row, start: int, stop: int) -> Row:
    """Return a row with its signs from `start` up to `stop` as selected ones."""
    spans: list[Span] = []
    at = 0
    for text, ink in row:
        begin = min(max(start - at, 0), len(text))
        end = min(max(stop - at, 0), len(text))
        spans += [
            Span(text[:begin], ink),
            Span(text[begin:end], ink._replace(is_selected=True)),
            Span(text[max(end, begin) :], ink),
        ]
        at += len(text)
    return tuple(span for span in spans if span.text)


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


P = TypeVar("P", bound=Inked)


class Widths:
    """The widths to which panes and columns of a screen were dragged, by their names."""

    def __init__(self, screen: str, kept: dict[str, int]) -> None:
        self._screen = screen
        self._kept = kept
        self._panes: list[Inked] = []

    def beside(self, pane: P, way: int) -> P:
        """Let the right (1) or left (-1) border of a pane be dragged."""
        pane.edge_name, pane.edge_way = f"{self._screen}.{pane.id}", way
        self._panes.append(pane)
        return pane

    def keep(self, edged: Edged, most: int) -> None:
        """Keep how wide something was made, or let it have its own width again."""
        if edged.cells is None:
            self._kept.pop(edged.name, None)
        else:
            self._kept[edged.name] = min(edged.cells, most)

    def apply(self) -> None:
        """Give panes the widths that they were dragged to, where there is an edge to drag."""
        for pane in self._panes:
            wished = self._kept.get(pane.edge_name) if pane.has_edge else None
            if wished:
                pane.styles.width = wished
            elif pane.styles.inline.has_rule("width"):
                pane.styles.width = None


class Head(Inked):
    """The head of a table. The marks of its columns' edges show while the mouse is over it."""

    ALLOW_SELECT = True

    def on_enter(self) -> None:
        """Show the marks."""
        self._repaint()

    def on_leave(self) -> None:
        """Hide the marks."""
        self._repaint()

    def _repaint(self) -> None:
        self._strips.clear()
        self.refresh()

    def _strip(self, row: Row) -> Strip:
        if self.mouse_hover:
            return super()._strip(row)
        plain = (Span(" ", ink) if edge_of(ink.does) else Span(text, ink) for text, ink in row)
        return super()._strip(tuple(plain))


def _is_key(ink: Ink) -> bool:
    """Say if text of this ink is a key that a click presses: one that means nothing else."""
    return (ink.role, ink.bold, ink.does) == (KEY.role, KEY.bold, "")


def _changed(y: int, old: Row, new: Row) -> Region:
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


class AsciiOnly(LineFilter):
    """Let nothing but ASCII reach the terminal, also from Textual's own widgets."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return segments of the same width."""
        del background
        return [segment._replace(text=ascii_text(segment.text)) for segment in segments]

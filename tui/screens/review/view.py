"""Show a conflict: a card or columns, or a page that scrolls; its edge is a map of them all."""

from collections.abc import Callable, Sequence
from functools import partial

from textual.scrollbar import ScrollBarRender

from tui.ink import Page, Row, Span, blank
from tui.kit.scrolled import MapBar, Scrolled
from tui.screens.review.model import ReviewPane
from tui.screens.review.rows import edge_map


class ConflictView(Scrolled):
    """Show what is looked at; a page begins at its top whenever it is another one."""

    def __init__(self, pane: ReviewPane) -> None:
        super().__init__(id="conflict")
        self.pane = pane
        self._of: object = None
        self._page: Sequence[Row] = ()
        self._edge: Sequence[Span] = ()

    def bar(self) -> Callable[..., ScrollBarRender]:
        """Return a scrollbar that is a map."""
        return partial(MapBar, self)

    def edge(self, height: int) -> Sequence[Span]:
        """Return where each conflict stands in the whole; of a page, what is on screen."""
        if self.count > self.size.height:
            return super().edge(height)
        return edge_map(self.pane, height) if self.pane.shown else [blank(1)] * height

    def rows_at(self, number: int, count: int) -> Page:
        """Return at most so many rows, from one on."""
        return Page(tuple(self._page[number : number + count]))

    def show_of(self, of: object, rows: Sequence[Row]) -> None:
        """Show the rows of something."""
        if of != self._of:
            self._of = of
            self.go_to(0)
        self._page = rows
        self.measure(len(rows))
        self.update()
        if self._edge != (edge := self.edge(self.size.height)):
            self._edge = edge
            self.vertical_scrollbar.refresh()

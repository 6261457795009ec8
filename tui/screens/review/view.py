"""Show a conflict: a card or columns, or a page that scrolls; its edge is a map of them all."""

from collections.abc import Callable, Sequence
from functools import partial

from textual.scrollbar import ScrollBarRender

from tui.ink import Row, Span, blank
from tui.kit.scrolled import MapBar, Rows
from tui.screens.review.model import ReviewPane
from tui.screens.review.rows import edge_map


class ConflictView(Rows):
    """Show what is looked at; a page begins at its top whenever it is another one."""

    def __init__(self, pane: ReviewPane) -> None:
        super().__init__(id="conflict")
        self.pane = pane
        self._of: object = None
        self._edge: Sequence[Span] = ()

    def bar(self) -> Callable[..., ScrollBarRender]:
        """Return a scrollbar that is a map."""
        return partial(MapBar, self)

    def edge(self, height: int) -> Sequence[Span]:
        """Return where each conflict stands in the whole; of a page, what is on screen."""
        if self.count > self.room:
            return super().edge(height)
        return edge_map(self.pane, height) if self.pane.shown else [blank(1)] * height

    def show_of(self, of: object, rows: Sequence[Row]) -> None:
        """Show the rows of something."""
        if of != self._of:
            self._of = of
            self.scroll_to(y=0, animate=False, force=True)
        self.show(rows)
        if self._edge != (edge := self.edge(self.high)):
            self._edge = edge
            self.vertical_scrollbar.refresh()

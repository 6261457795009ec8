"""Hold the middle of a screen: panes that are widgets of their own."""

from collections.abc import Iterable
from typing import ClassVar, Protocol, runtime_checkable

from textual.containers import Container
from textual.scrollbar import ScrollBarRender
from textual.widget import Widget


@runtime_checkable
class Draws(Protocol):
    """A screen that draws its panes when there is another size for them."""

    fingered_at: float

    def draw(self) -> None:
        """Draw everything anew."""


class WholeCells(ScrollBarRender):
    """A scrollbar without the half blocks at its ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


def use_whole_cells(widgets: Iterable[Widget]) -> None:
    """Draw the scrollbars of these widgets with blanks alone, as ASCII has no half blocks.

    A pane that has a renderer of its own keeps it.
    """
    for pane in widgets:
        if pane.is_scrollable:
            for bar in (pane.vertical_scrollbar, pane.horizontal_scrollbar):
                vars(bar).setdefault("renderer", WholeCells)  # a pane may have its own


class Panes(Container):
    """The middle of a screen whose panes are widgets of their own."""

    def on_resize(self) -> None:
        """Draw for the new size."""
        if isinstance(self.screen, Draws):
            self.screen.draw()

"""Hold the middle of a screen: one page of rows, or panes that are widgets of their own."""

from collections.abc import Iterable
from typing import ClassVar, Protocol, runtime_checkable

from textual.containers import Container
from textual.message import Message
from textual.scrollbar import ScrollBarRender
from textual.widget import Widget

from tui.kit.inked import Inked


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


class Body(Inked):
    """The middle of a screen that is drawn as one page of rows."""

    class Wheeled(Message):
        """The wheel was turned: so many rows, downwards positive."""

        def __init__(self, rows: int) -> None:
            super().__init__()
            self.rows = rows

    def on_resize(self) -> None:
        """Draw for the new size."""
        super().on_resize()
        if isinstance(self.screen, Draws):
            self.screen.draw()

    def on_mouse_scroll_down(self) -> None:
        """Tell that the wheel went three rows down."""
        self.post_message(self.Wheeled(3))

    def on_mouse_scroll_up(self) -> None:
        """Tell that the wheel went three rows up."""
        self.post_message(self.Wheeled(-3))


class Panes(Container):
    """The middle of a screen whose panes are widgets of their own."""

    def on_resize(self) -> None:
        """Draw for the new size."""
        if isinstance(self.screen, Draws):
            self.screen.draw()

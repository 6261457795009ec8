"""Hold the middle of a screen: panes that are widgets of their own, and edges that are dragged."""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from textual.containers import Container
from textual.message import Message
from textual.scrollbar import ScrollBarRender
from textual.widget import Widget


@runtime_checkable
class Draws(Protocol):
    """A screen that draws its panes when there is another size for them."""

    fingered_at: float

    def draw(self) -> None:
        """Draw everything anew."""


_EDGE = "edge"


class Edge(NamedTuple):
    """An edge that the mouse can take.

    Attributes:
        name: The pane or column whose width it changes.
        way: 1 where a move to the right makes that wider, -1 where a move to the left does.
        cells: How wide it is now.
    """

    name: str
    way: int
    cells: int

    @property
    def does(self) -> str:
        """Return what an ink does that stands for this edge."""
        return f"{_EDGE}:{self.name}:{self.way}:{self.cells}"


def edge_of(does: str) -> Edge | None:
    """Return the edge that an ink stands for, if it stands for one."""
    kind, _, rest = does.partition(":")
    if kind != _EDGE:
        return None
    name, way, cells = rest.split(":")
    return Edge(name, int(way), int(cells))


class Edged(Message):
    """An edge was dragged to so many cells; None gives back the width that it has by itself."""

    def __init__(self, name: str, cells: int | None) -> None:
        super().__init__()
        self.name = name
        self.cells = cells


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

"""Show a list of which only the rows on screen are drawn; Textual scrolls it."""

from collections.abc import Callable, Sequence

from textual.geometry import Size
from textual.scroll_view import ScrollView

from tui.ink import Page, Row, Zone
from tui.kit.panes import Draws
from tui.kit.readable import Readable

_NOWHERE = range(0)


class RowList(Readable, ScrollView, can_focus=False, inherit_bindings=False):
    """Rows of which those on screen are drawn. A click tells the target of its row.

    The row under the cursor is brought on screen when it has moved, and when a key was pressed.
    `read_to` is how far down any row was ever on screen.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._targets: Sequence[str] = ()
        self._draw: Callable[[int], Row] = lambda _: ()
        self._more: Callable[[int], Row] | None = None
        self._seen: object = None
        self.read_to = 0

    @property
    def cells(self) -> int:
        """The cells of a row that a scrollbar leaves free."""
        return max(self.content_size.width - 1, 0)

    def fill(
        self,
        targets: Sequence[str],
        draw: Callable[[int], Row],
        here: range = _NOWHERE,
        more: Callable[[int], Row] | None = None,
    ) -> None:
        """Show a row for each target, the rows of the cursor among those on screen.

        Args:
            targets: What a click on each row means; nothing where it means nothing.
            draw: Return the row of an index.
            here: The rows that are under the cursor.
            more: Return what stands in place of so many rows that do not fit; by default they are
                cut off.
        """
        self._targets, self._draw, self._more = targets, draw, more
        if len(targets) != self.virtual_size.height:
            self.virtual_size = Size(self.size.width, len(targets))
        fingered_at = self.screen.fingered_at if isinstance(self.screen, Draws) else 0.0
        seen = (here, len(targets), self.size, fingered_at)
        if seen != self._seen:
            self._seen = seen
            self._reveal(here)
        self._draw_seen()

    def _reveal(self, here: range) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if here and height:
            wanted = max(min(top, here.start), here.stop - height)
            if wanted != top:
                self.scroll_to(y=wanted, animate=False, force=True)

    def _draw_seen(self) -> None:
        top, (cells, height) = self.scroll_offset.y, self.size
        targets, last = self._targets, len(self._targets)
        left = last - top - height
        is_cut = left > 0 and height > 1 and self._more is not None
        seen = range(top, min(top + height - is_cut, last))
        rows = [*map(self._draw, seen)]
        if is_cut and self._more:
            rows.append(self._more(left + 1))
        zones = tuple(Zone(0, y - top, cells, 1, targets[y]) for y in seen if targets[y])
        self.show(Page(tuple(rows), zones))
        self.read_to = max(self.read_to, seen.stop)

    def start_over(self) -> None:
        """Go back to the first row, as if no other had ever been seen."""
        self.scroll_to(y=0, animate=False, force=True)
        self.read_to = 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the rows that have come on screen."""
        super().watch_scroll_y(old_value, new_value)
        self._draw_seen()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows there are, also of those that are not on screen."""
        del container, viewport, width
        return len(self._targets)

    def on_resize(self) -> None:
        """Draw for the new size."""
        super().on_resize()
        if isinstance(self.screen, Draws):
            self.screen.draw()

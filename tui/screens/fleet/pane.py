"""Show the pieces of Fleet as widgets in one pane that scrolls."""

from collections.abc import Sequence

from textual.containers import VerticalScroll
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from tui.kit.inked import Inked
from tui.screens.fleet.page import MORE, Piece


class WorkerTile(Inked):
    """A worker's card, tile or line; or the heading of a band."""

    ALLOW_SELECT = True

    def __init__(self, piece: Piece | None = None, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.piece = piece

    def draw(self) -> None:
        """Draw what is to be seen of it now."""
        piece = self.piece
        if piece is None:
            return
        self.does = f"worker:{piece.name}" if piece.is_worker else ""
        if piece.name == MORE:
            self.does = "more:"
        self.show(piece.draw())


class _AsLaidOut(Layout):
    """Put every piece where the page has it."""

    name = "fleet"

    def arrange(
        self,
        parent: Widget,
        children: list[Widget],
        size: Size,
        greedy: bool = True,  # noqa: FBT001, FBT002 - Textual's own
    ) -> ArrangeResult:
        del parent, greedy
        return [
            WidgetPlacement(
                Region(piece.x, piece.y, min(piece.width, size.width - piece.x), piece.height),
                NULL_OFFSET,
                Spacing(),
                tile,
            )
            for tile in children
            if isinstance(tile, WorkerTile) and (piece := tile.piece)
        ]


class FleetPane(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Every worker is one widget for as long as it is on the page; those on screen are drawn."""

    _as_laid_out = _AsLaidOut()

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._tiles: dict[str, WorkerTile] = {}
        self._seen: tuple[str, tuple[int, int, int, int] | None, Size, float] | None = None

    @property
    def layout(self) -> Layout:
        """The layout of the page, in place of one that the style sheet names."""
        return self._as_laid_out

    def fill(self, pieces: Sequence[Piece], here: str, fingered_at: float) -> None:
        """Show these pieces, the worker under the cursor among those on screen.

        Its tile is brought there when it has moved, and when a key was pressed.
        """
        names = {piece.name for piece in pieces}
        known = [(tile, piece) for piece in pieces if (tile := self._tiles.get(piece.name))]
        moved = [tile for tile, piece in known if tile.piece and tile.piece.place != piece.place]
        has_moved = bool(moved) or names != self._tiles.keys()
        for name in self._tiles.keys() - names:
            _ = self._tiles.pop(name).remove()
        new = [WorkerTile(piece) for piece in pieces if piece.name not in self._tiles]
        self._tiles.update({tile.piece.name: tile for tile in new if tile.piece})
        for tile, piece in known:
            tile.piece = piece
        if new:
            _ = self.mount(*new)
        elif moved:
            moved[0].refresh(layout=True)  # a pane that asks for itself keeps its arrangement
        place = next((piece.place for piece in pieces if piece.name == here), None)
        seen = (here, place, self.size, fingered_at)
        if place and seen != self._seen:
            self._seen = seen
            if has_moved:
                self.call_after_refresh(self._reveal, Region(*place))  # as soon as it is there
            else:
                self._reveal(Region(*place))
        self._draw_seen()

    def _reveal(self, region: Region) -> None:
        top, height = self.scroll_offset.y, self.size.height
        wanted = max(min(top, region.y - 1), region.bottom - height, 0)  # with its band's heading
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True, force=True)

    def shows(self, worker: str) -> bool:
        """Say whether all of a worker's tile is on screen."""
        tile = self._tiles.get(worker)
        top, height = self.scroll_offset.y, self.size.height
        piece = tile.piece if tile else None
        return piece is not None and top <= piece.y and piece.y + piece.height <= top + height

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the tiles that have come on screen."""
        super().watch_scroll_y(old_value, new_value)
        self._draw_seen()

    def on_resize(self) -> None:
        """Draw the tiles that there is room for now, the one under the cursor among them.

        At once: at the next frame the user may have scrolled elsewhere.
        """
        if self._seen and (place := self._seen[1]):
            self._seen = (*self._seen[:2], self.size, self._seen[3])
            self._reveal(Region(*place))
        self._draw_seen()

    def _draw_seen(self) -> None:
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        for tile in self._tiles.values():
            piece = tile.piece
            if piece and piece.y < bottom and piece.y + piece.height > top:
                tile.draw()

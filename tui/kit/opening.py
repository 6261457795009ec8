"""The first frame: the bars that every screen has, before anything is known of runs or loaded.

What a console needs to know runs and workers takes longer to load than a screen takes to paint.
"""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.screen import Screen

from tui.ink import fit, words
from tui.kit.bars import Hint, footer, message, tabs_bar
from tui.kit.inked import Board
from tui.kit.palette import Palette

REACHING = "Reaching the engine of this repository."


class PaintedScreen(Screen[None]):
    """A screen that is one board of rows."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = "PaintedScreen { layers: board box; background: $background; overflow: hidden; }"

    def __init__(self, palette: Palette, *, is_ascii: bool) -> None:
        super().__init__()
        self.board = Board(palette, is_ascii=is_ascii)

    def compose(self) -> ComposeResult:
        yield self.board

    def on_screen_resume(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw everything anew; the board paints what differs."""
        raise NotImplementedError

    def paint(self) -> None:
        """Put on the terminal now what was drawn: a key is not to wait for the next frame."""
        if self.is_current:
            self._dirty_widgets.add(self.board)
            self._on_timer_update()


class OpeningScreen(PaintedScreen):
    """Where the console will be in a moment."""

    def __init__(
        self, palette: Palette, kind: str, keys: Mapping[str, str], *, is_ascii: bool
    ) -> None:
        super().__init__(palette, is_ascii=is_ascii)
        self._kind = kind
        self._keys = keys

    def draw(self) -> None:
        cells, height = self.app.size
        bar = tabs_bar(self._keys, self._kind, cells).rows
        hints = [Hint(self._keys.get("palette", ""), "palette")]
        foot = footer(hints, self._keys.get("help", ""), cells).rows
        lines = (message(words(REACHING), cells), *foot)
        between = max(height - len(bar) - len(lines), 0)
        rows = (*bar, *[()] * between, *lines)
        self.board.show([fit(row, cells) for row in rows][-height:])

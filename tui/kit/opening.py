"""Paint the first frame: the bars that every screen has, before anything is known of runs.

What a console needs to know runs and workers takes longer to load than a screen takes to paint.
"""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.screen import Screen

from tui.ink import words
from tui.kit.bars import Hint, footer, sentence_rows, tabs_bar
from tui.kit.inked import Inked

REACHING = "Connecting to the engine of this repository."


class OpeningScreen(Screen[None]):
    """Show the bars while the rest of the console loads."""

    AUTO_FOCUS = ""

    def __init__(self, kind: str, keys: Mapping[str, str]) -> None:
        super().__init__()
        self._kind = kind
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Compose the bars of every screen."""
        yield Inked(id="top")
        yield Inked(id="say")
        yield Inked(id="keys")

    def on_resize(self) -> None:
        """Fill the bars for the size there is."""
        cells = self.size.width
        hints = [Hint(self._keys.get("palette", ""), "palette", "palette")]
        self.query_one("#top", Inked).show([tabs_bar(self._keys, self._kind, cells)])
        self.query_one("#say", Inked).show(sentence_rows(words(REACHING), cells))
        self.query_one("#keys", Inked).show([footer(hints, self._keys.get("help", ""), cells)])

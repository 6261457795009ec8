"""The line that a filter is typed into: heard with every letter, and kept for the next time."""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import Input

from tui.ink import KEY, MUTED, Ink, Role, Row, Span, words
from tui.kit.session import Session
from tui.kit.textbox import SearchLine
from tui.words.filtering import HINT, meant_by


class FilterLine(SearchLine):
    """A screen's filter, which outlives the typing; ↑ brings back the filters of before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "recall(1)", "earlier"),
        ("down", "recall(-1)", "later"),
    ]

    def __init__(self, session: Session, moved: Callable[[], None]) -> None:
        super().__init__(f"filter: {HINT}; ↑ earlier filters", session.ahead)
        self.filter = self.typed = ""
        self._session = session
        self._moved = moved
        self._back = 0

    def begin(self) -> None:
        """Let the filter be typed."""
        self.value = self.typed if self.filter else ""
        self._back = 0
        self.display = True
        self.screen.set_focus(self)  # at once: the next key is for it

    def let_go(self) -> bool:
        """Show all again; say if anything was filtered for."""
        had, self.filter = bool(self.filter), ""
        return had

    def action_recall(self, by: int) -> None:
        """Bring back a filter of before, or a later one."""
        known = [*(f"={name}" for name in self._session.named_filters), *self._session.filters]
        self._back = max(min(self._back + by, len(known)), 0)
        self.value = known[-self._back] if self._back else ""
        self.cursor_position = len(self.value)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Show what is left as the filter grows."""
        changed.stop()
        self.typed = changed.value.strip()
        self.filter = meant_by(self.typed, self._session.named_filters)
        self._moved()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        """End the typing, and keep what is left."""
        submitted.stop()
        if self.typed:
            self._session.keep_filter(self.typed)
        self._end()

    def on_search_line_closed(self, closed: SearchLine.Closed) -> None:
        """Show all again."""
        closed.stop()
        self.filter = ""
        self._end()

    def _end(self) -> None:
        self.display = False
        self.screen.set_focus(None)
        self.let_keys_go()
        self._moved()

    def rows(self, matching: int, whole: int, key: str) -> list[Row]:
        """Return what is filtered for, how many of all that leaves, and the key that ends it."""
        if not self.filter:
            return []
        said = words(
            Span(f" /{self.filter}", Ink(Role.WAITING, bold=True)), f"   {matching} of {whole}   "
        )
        return [(*said, Span(key, KEY), Span(" shows all", MUTED))]

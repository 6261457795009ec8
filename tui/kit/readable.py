"""Let the text of rows be selected with the mouse, and copied, while the rows go on changing."""

from textual import events
from textual.selection import Selection
from textual.strip import Strip

from tui.ink import Role, Row, Span, grounded, text_of
from tui.kit.inked import Inked


class Readable(Inked):
    """Rows that hold foreign text. What was selected stays what it was when it was selected."""

    ALLOW_SELECT = True

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._chosen: dict[int, str] = {}

    def render_line(self, y: int) -> Strip:
        """Return one row; the one under the mouse tells where its signs are."""
        strip = super().render_line(y)
        chosen = self._chosen_cells(y)
        if chosen and self._chosen.get(y) == text_of([self.rows[y]]):
            return self._strip(marked(self.rows[y], *chosen)).apply_offsets(0, y)
        is_pointed = self.app.mouse_position.y - self.content_region.y == y
        return strip.apply_offsets(0, y) if is_pointed else strip

    def _chosen_cells(self, y: int) -> tuple[int, int] | None:
        if not self._chosen or y >= len(self.rows):
            return None
        selection = self.text_selection
        return selection.get_span(y) if selection else None

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text that was selected."""
        lines = []
        for y, text in sorted(self._chosen.items()):
            if span := selection.get_span(y):
                start, stop = span
                lines.append(text[start : None if stop < 0 else stop].rstrip())
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Keep the text that is selected now."""
        self._chosen = {}
        if selection:
            self._chosen = {
                y: text_of([row]) for y, row in enumerate(self.rows) if selection.get_span(y)
            }
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Let the end of a selection be no click."""
        if self.text_selection:
            event.prevent_default()


def marked(row: Row, start: int, stop: int) -> Row:
    """Return a row with its signs from `start` up to `stop` on the ground of a selection."""
    spans: list[Span] = []
    at = 0
    for text, ink in row:
        begin = min(max(start - at, 0), len(text))
        end = len(text) if stop < 0 else min(max(stop - at, 0), len(text))
        inside = (Span(text[begin:end], ink._replace(ground=None)),)
        spans += [
            Span(text[:begin], ink),
            *grounded(inside, Role.SELECTION),
            Span(text[max(end, begin) :], ink),
        ]
        at += len(text)
    return tuple(span for span in spans if span.text)

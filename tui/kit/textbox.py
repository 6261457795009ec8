"""Take text that goes to an agent: steering, feedback, an answer, a comment, a reason."""

from typing import ClassVar, Protocol

from textual import events
from textual.binding import BindingType
from textual.widgets import TextArea

from tui.words.clean import clean_block


class BoxOwner(Protocol):
    """Whoever opened the box, and is told at once what became of it."""

    def box_sent(self, text: str) -> None:
        """Take the text that was sent."""

    def box_closed(self) -> None:
        """Take notice that the box was closed; its draft is kept."""

    def box_editor_wanted(self) -> None:
        """Go on in an editor."""


class TextBox(TextArea):
    """A small editor: enter sends, ctrl+j makes a new line, escape closes and keeps the draft.

    Code is sent as it is, its blanks included, and is no message to come back to.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("enter", "send", "send"),
        ("escape", "close", "close"),
        ("ctrl+j", "new_line", "new line"),
        ("ctrl+g", "editor", "editor"),
        ("up", "recall", "up"),
    ]

    def __init__(self, owner: BoxOwner) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, tab_behavior="focus")
        self._owner = owner
        self.past: list[str] = []
        self.is_code = False

    async def _on_paste(self, event: events.Paste) -> None:
        """Clean pasted text: it is foreign."""
        event.stop()
        event.prevent_default()
        self.insert(clean_block(event.text))

    def action_send(self) -> None:
        """Send the text."""
        text = self.text if self.is_code else self.text.strip()
        if text and not self.is_code:
            self.past.append(text)
        self.text = ""
        self._owner.box_sent(text)

    def action_close(self) -> None:
        """Close the box."""
        self._owner.box_closed()

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_editor(self) -> None:
        """Ask for an editor."""
        self._owner.box_editor_wanted()

    def action_recall(self) -> None:
        """Go a line up; in an empty box, bring back what was sent last."""
        if self.text or self.is_code or not self.past:
            self.action_cursor_up()
            return
        self.text = self.past[-1]
        self.move_cursor(self.document.end)

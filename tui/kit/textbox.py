"""The box for text that goes to an agent: steering, feedback, an answer, a comment, a reason."""

from typing import Protocol

from textual import events
from textual.widgets import TextArea

from tui.words.clean import clean_block


class BoxOwner(Protocol):
    """Whoever opened the box, and is told at once what became of it."""

    def box_sent(self, text: str) -> None:
        """The text was sent."""

    def box_closed(self) -> None:
        """The box was closed; its draft is kept."""

    def box_editor_wanted(self) -> None:
        """The user wants to go on in an editor."""


class TextBox(TextArea):
    """A small editor: enter sends, ctrl+j makes a new line, escape closes and keeps the draft.

    Code is sent as it is, its blanks included, and is no message to come back to.
    """

    DEFAULT_CSS = """
    TextBox {
        layer: box; dock: bottom; height: 4; margin: 0 1 2 1; padding: 0 1; border: none;
        display: none;
        background: $surface; color: $foreground;
    }
    TextBox:focus { border: none; }
    TextBox .text-area--cursor-line { background: $surface; }
    """

    def __init__(self, owner: BoxOwner) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, tab_behavior="focus")
        self._owner = owner
        self.past: list[str] = []
        self.is_code = False

    async def hear(self, typed: events.Key | events.Paste) -> None:
        """Take a key or a paste, to its end: the next one may be for whatever comes then."""
        if isinstance(typed, events.Paste):
            await self._on_paste(typed)
        else:
            await self._on_key(typed)

    async def _on_key(self, event: events.Key) -> None:
        special = {
            "enter": self._send,
            "escape": self._close,
            "ctrl+j": self._new_line,
            "ctrl+g": self._open_editor,
        }.get(event.key)
        if event.key == "up" and not (self.text or self.is_code) and self.past:
            special = self._recall
        bound = self._bindings.key_to_bindings.get(event.key)
        if special is None and not bound:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        if special:
            special()
        elif bound:
            # The library does it only when the key has gone all the way up, after the letters that
            # were typed behind it: `ctrl+u` would take those away too.
            await self.run_action(bound[0].action)

    async def _on_paste(self, event: events.Paste) -> None:
        """Pasted text is foreign text."""
        event.stop()
        event.prevent_default()
        self.insert(clean_block(event.text))

    def _send(self) -> None:
        text = self.text if self.is_code else self.text.strip()
        if text and not self.is_code:
            self.past.append(text)
        self.text = ""
        self._owner.box_sent(text)

    def _close(self) -> None:
        self._owner.box_closed()

    def _new_line(self) -> None:
        self.insert("\n")

    def _open_editor(self) -> None:
        self._owner.box_editor_wanted()

    def _recall(self) -> None:
        self.text = self.past[-1]
        self.move_cursor(self.document.end)

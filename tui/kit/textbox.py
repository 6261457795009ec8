"""Take text that goes to an agent: steering, feedback, an answer, a comment, a reason."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, TextArea

from tui.ink import BOLD, KEY, Row, Span, row_width, words
from tui.kit.ahead import KeysFree, TypeAhead
from tui.kit.inked import Inked
from tui.kit.outside import edit_text
from tui.words.clean import clean_block


@dataclass
class Writing:
    """Hold what the text box is open for."""

    title: str
    note: str
    then: Callable[[str], None]
    key: str
    may_be_empty: bool = False
    is_code: bool = False
    file: str = ""
    """The path of the file that the code is of."""


class Speaker(Protocol):
    """A screen that opens the box, gives the terminal to an editor, and says what went wrong."""

    def begin_outside(self, work: Callable[[], Coroutine[None, None, object]]) -> None:
        """Give the terminal to another program."""

    def say_refused(self, what: str, reason: str, hint: str = "") -> None:
        """Say what was refused, and why."""

    def draw(self) -> None:
        """Draw everything anew."""


class BoxOwner(Protocol):
    """Whoever opened the box, who learns at once what became of it."""

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

    async def on_paste(self, event: events.Paste) -> None:
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


class SearchLine(Input):
    """The line that a search or a filter is typed into: every letter is heard at once.

    Keys behind the one that ends it wait until the screen has closed it: they are for the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "close", "close")]

    def __init__(self, placeholder: str, ahead: TypeAhead) -> None:
        super().__init__(placeholder=placeholder, compact=True)
        self.cursor_blink = False
        self._ahead = ahead

    class Closed(Message):
        """The search was given up."""

    async def action_submit(self) -> None:
        """End the typing."""
        self._ahead.hold()
        await super().action_submit()

    def action_close(self) -> None:
        """Give the search up."""
        self._ahead.hold()
        self.post_message(self.Closed())

    def let_keys_go(self) -> None:
        """Let the keys go on that were typed behind the end of the typing."""
        self._ahead.release()
        self.app.post_message(KeysFree())


class WritingBox(Vertical):
    """The box with the line above it that says what it is for; drafts are kept for later."""

    def __init__(self, speaker: Speaker, drafts: dict[str, str]) -> None:
        super().__init__()
        self.writing: Writing | None = None
        self._speaker = speaker
        self._drafts = drafts
        self._heading = Inked()
        self.area = TextBox(self)

    def compose(self) -> ComposeResult:
        """Compose the heading over the area."""
        yield self._heading
        yield self.area

    def on_resize(self) -> None:
        """Fill the heading for the width there is."""
        self._heading.show([self._head(self.size.width)])

    def open(self, writing: Writing, draft: str = "") -> None:
        """Open the box, with what was written for this before."""
        self.writing = writing
        area = self.area
        area.is_code = writing.is_code
        area.tab_behavior = "indent" if writing.is_code else "focus"
        area.text = self._drafts.get(writing.key, draft)
        area.move_cursor(area.document.end)
        self.display = True
        self.on_resize()
        self.screen.set_focus(area)  # at once: the next key is for it

    def box_sent(self, text: str) -> None:
        """Do what the text is for."""
        writing = self.writing
        self._close()
        if writing:
            self._drafts.pop(writing.key, None)
            if text or writing.may_be_empty:
                writing.then(text)
        self._speaker.draw()

    def box_closed(self) -> None:
        """Keep what was written."""
        if self.writing:
            self._drafts[self.writing.key] = self.area.text
        self._close()
        self._speaker.draw()

    def _close(self) -> None:
        self.writing = None
        self.display = False
        self.screen.set_focus(None)

    def box_editor_wanted(self) -> None:
        """Go on in the user's editor, and take back what was written there."""
        self._speaker.begin_outside(self._edit_text)

    async def _edit_text(self) -> None:
        area = self.area
        text, problem = await edit_text(self.app, area.text, name=self._editor_name())
        if problem:
            self._speaker.say_refused("ctrl+g", problem)
        area.text = text.removesuffix("\n") if area.is_code else clean_block(text).rstrip()
        self.screen.set_focus(area)

    def _editor_name(self) -> str:
        """Return the name of the file in the editor: that of the code, or of a message."""
        return self.writing.file if self.writing and self.writing.file else "message.md"

    def _head(self, cells: int) -> Row:
        writing = self.writing
        if writing is None:
            return ()
        left = words(Span(f" {writing.title} ", BOLD), " ", writing.note)
        right = words(
            Span("enter", KEY),
            " takes it  " if writing.is_code else " sends  ",
            Span("ctrl+j", KEY),
            " new line  ",
            Span("esc", KEY),
            " closes ",
        )
        gap = cells - row_width(left) - row_width(right)
        return (*left, Span(" " * max(gap, 1)), *right) if gap > 0 else left

"""What every screen is: a board under a top bar, a message line, a footer; keys; overlays."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer
from textual.worker import WorkType

from engine.messages.commands import Command, Refused
from tui.ink import (
    BOLD,
    KEY,
    MUTED,
    TEXT,
    Ink,
    Page,
    Role,
    Row,
    Span,
    Zone,
    behind,
    fit,
    overlaid,
    row_width,
    words,
)
from tui.keys import ACTIONS, Action, Waits
from tui.kit.bars import Hint, footer, message
from tui.kit.chrome import run_line, top_bar
from tui.kit.dialogs import LeaveDialog
from tui.kit.help import HelpPage
from tui.kit.opening import PaintedScreen
from tui.kit.pickers import Picker
from tui.kit.session import Session
from tui.kit.textbox import TextBox
from tui.words.outcomes import CameOut, Pursued, pursued_of
from tui.words.reasons import ELSEWHERE, PLAYED_OVER, READ_ONLY_IDEAS
from tui.words.scene import Scene

_ROOMY = (100, 30)
_TEXT_ROWS = 5
_STILL_S = 2.0
_READ_S = 2.0
"""A newer message stays this long before the outcome of an older act takes its place."""
_SMALL_HEIGHT = 10
Overlay = Picker | LeaveDialog | HelpPage


class KeysFree(Message):
    """What held the keys back is over: those that wait can be heard."""


@dataclass
class Ask:
    """Something that asks first: the same key again does it, any other leaves it."""

    idea: str
    said: Row
    then: Callable[[], None]


@dataclass
class Writing:
    """What the text box is open for."""

    title: str
    note: str
    then: Callable[[str], None]
    key: str
    may_be_empty: bool = False
    is_code: bool = False


class BoardScreen(PaintedScreen):
    """A screen drawn as rows. Subclasses draw the body and say what ideas do (`do_<idea>`)."""

    kind: ClassVar[str] = "fleet"

    def __init__(self, session: Session) -> None:
        super().__init__(session.palette, is_ascii=session.is_ascii)
        self.session = session
        self.textbox = TextBox(self)
        self.overlay: Overlay | None = None
        self.picked: Callable[[str], None] = lambda _: None
        self.notice: Row = ()
        self.notice_of: Pursued | None = None
        self.noticed_at = -_READ_S
        self.ask: Ask | None = None
        self.writing: Writing | None = None
        self.fingered_at = -_STILL_S
        self._under: list[Row] = []
        self._chord_timer: Timer | None = None
        self._chord_shown: Waits | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.textbox

    @property
    def is_fingered(self) -> bool:
        """A key was pressed a moment ago: nothing may move from under the cursor."""
        return monotonic() - self.fingered_at < _STILL_S

    # What subclasses say.

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        """The body of the screen."""
        raise NotImplementedError

    def subject(self, scene: Scene, cells: int) -> Row:
        """Row 1: the run line, unless the screen has a subject of its own."""
        return run_line(scene, cells)

    def sentence(self, scene: Scene) -> Row:
        """What is true of the thing under the cursor, and what happens next."""
        del scene
        return ()

    def hints(self) -> Sequence[str]:
        """The ideas of the footer, most likely first."""
        return ()

    def why_not(self, idea: str) -> str:
        """Why an idea cannot be done now; empty where it can."""
        del idea
        return ""

    def pointed(self, target: str, times: int) -> None:
        """A zone of the body was clicked."""

    # Drawing.

    def draw(self) -> None:
        if not self.is_current or not self.is_mounted:
            return
        cells, height = self.app.size
        scene = self.session.scene()
        rows, zones = self._compose_rows(scene, cells, height)
        if self.overlay:
            self._under = behind(rows)
            self.draw_over(self.overlay)
        else:
            self._under = []
            self.board.show(rows, zones)

    def draw_over(self, overlay: Overlay) -> None:
        """Draw an overlay on what was last drawn beneath it."""
        cells, height = self.app.size
        box = overlay.draw(cells, height)
        x = max((cells - row_width(box[0])) // 2, 0)
        self.board.show(overlaid(self._under, box, x, max((height - len(box)) // 3, 1)))

    def _compose_rows(self, scene: Scene, cells: int, height: int) -> tuple[list[Row], list[Zone]]:
        if height < _SMALL_HEIGHT:
            head, zones = [], []
            lines: list[Row] = (
                list(self._message_rows(scene, cells)) if self.notice or self.ask else []
            )
        else:
            bar = top_bar(scene, self.kind, cells)
            head, zones = [*bar.rows, self._second_row(scene, cells)], list(bar.zones)
            lines = self._message_rows(scene, cells)
        is_roomy = cells >= _ROOMY[0] and height >= _ROOMY[1]
        if is_roomy:
            head.append(())
        if self.writing:
            lines = [self._writing_row(cells), *[()] * (_TEXT_ROWS - 1), *lines[:1]]
        room = max(height - len(head) - len(lines) - 1 - is_roomy, 1)
        page = self.draw_body(scene, cells, room)  # first: what can be done depends on what is seen
        foot = footer(self._foot_hints(), self.session.keymap.shown("everywhere.help"), cells)
        body = [*page.rows[:room], *[()] * (room - len(page.rows) + is_roomy)]
        rows = [fit(row, cells) for row in (*head, *body, *lines, *foot.rows)][:height]
        zones += [zone._replace(y=zone.y + len(head)) for zone in page.zones]
        zones += [zone._replace(y=height - 1) for zone in foot.zones]
        return rows, zones

    def _second_row(self, scene: Scene, cells: int) -> Row:
        return run_line(scene, cells) if scene.banner else self.subject(scene, cells)

    def _message_rows(self, scene: Scene, cells: int) -> list[Row]:
        if self._chord_shown:
            follow = [
                Span(part, ink)
                for key, action in self._chord_shown.follow
                for part, ink in ((key, KEY), (f" {action.label}  ", MUTED))
            ]
            return [message((Span(f"{self._chord_shown.begun}  ", BOLD), *follow), cells)]
        if self.ask:
            return self._ask_rows(self.ask, cells)
        return [message(self.notice or self.sentence(scene), cells)]

    def _ask_rows(self, ask: Ask, cells: int) -> list[Row]:
        key = self._key(ask.idea)
        mark = Span("? ", Ink(Role.WAITING, bold=True))
        answer = words(
            Span("  ", TEXT), Span(key, KEY), " does it   ", Span("esc", KEY), " leaves it"
        )
        return [message((mark, *ask.said), cells), message(answer, cells)]

    def _writing_row(self, cells: int) -> Row:
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

    def _key(self, idea: str) -> str:
        keymap = self.session.keymap
        return keymap.shown(f"{self.kind}.{idea}") or keymap.shown(f"everywhere.{idea}")

    def label_of(self, idea: str) -> str:
        """The footer's word for an idea here."""
        action = self.action(idea)
        return action.label if action else ""

    def action(self, idea: str) -> Action | None:
        """The action an idea is on this screen, if it is one."""
        return ACTIONS.get(f"{self.kind}.{idea}") or ACTIONS.get(f"everywhere.{idea}")

    def _foot_hints(self) -> list[Hint]:
        elsewhere = ("palette",) if self.kind == "fleet" else ("go_fleet", "palette")
        ideas = self.hints() if self.has_what() else elsewhere
        return [
            self._hint(idea) for idea in ideas if self.label_of(idea) and not self.refusal(idea)
        ]

    def has_what(self) -> bool:
        """There is something that keys could be about."""
        return bool(self.session.run and self.session.run.workers)

    def _hint(self, idea: str) -> Hint:
        """An idea as a hint; the keys for moving stand together."""
        if idea != "down":
            return Hint(self._key(idea), self.label_of(idea))
        ways = [way for way in ("left", "down", "up", "right") if hasattr(self, f"do_{way}")]
        return Hint("".join(self._key(way) for way in ways), "move")

    def refusal(self, idea: str) -> str:
        """Why an idea cannot be done here and now; empty where it can."""
        if self.session.player and idea in READ_ONLY_IDEAS | PLAYED_OVER:
            return "this is a replay"
        if idea in READ_ONLY_IDEAS and (
            self.session.is_read_only or self.session.view.is_read_only
        ):
            return "this console only watches"
        if self.session.is_alone and idea.startswith("go_"):
            return f"this was opened for one merge; {self._key('back')} leaves it"
        if not hasattr(self, f"do_{idea}"):
            reason = ELSEWHERE.get(f"{self.kind}.{idea}") or ELSEWHERE.get(f"everywhere.{idea}")
            return reason or "it does nothing here"
        return self.why_not(idea)

    # Saying, asking, writing, sending.

    def say(self, *parts: str | Span) -> None:
        """One sentence on the message line, until the next key."""
        self.notice, self.notice_of = words(*parts), None
        self.noticed_at = monotonic()
        self.draw()

    def say_refused(self, what: str, reason: str, hint: str = "") -> None:
        """What was refused, why, and what helps."""
        mark = Span("✗ ", Ink(Role.FAILED, bold=True))
        ending = f"  {hint}" if hint else ""
        self.say(mark, Span(what, BOLD), Span(f" refused: {reason}.", TEXT), ending)

    def ask_first(self, idea: str, said: Row, then: Callable[[], None]) -> None:
        """Ask on the message line; the same key again does it."""
        self.ask = Ask(idea, said, then)

    def choose(self, picker: Picker, then: Callable[[str], None]) -> None:
        """Let one of several things be picked."""
        self.overlay, self.picked = picker, then

    def write(self, writing: Writing, draft: str = "") -> None:
        """Open the text box."""
        self.writing = writing
        self.textbox.is_code = writing.is_code
        self.textbox.tab_behavior = "indent" if writing.is_code else "focus"
        self.textbox.text = self.session.drafts.get(writing.key, draft)
        self.textbox.move_cursor(self.textbox.document.end)
        self.textbox.display = True
        self.textbox.focus()

    def box_sent(self, text: str) -> None:
        """The text was sent."""
        writing = self.writing
        self._close_box()
        if writing:
            self.session.drafts.pop(writing.key, None)
            if text or writing.may_be_empty:
                writing.then(text)
        self.draw()

    def box_closed(self) -> None:
        """The box was closed; what was written is kept."""
        if self.writing:
            self.session.drafts[self.writing.key] = self.textbox.text
        self._close_box()
        self.draw()

    def _close_box(self) -> None:
        self.writing = None
        self.textbox.display = False
        self.set_focus(None)

    def box_editor_wanted(self) -> None:
        """The user wants to go on in an editor."""

    def begin(
        self,
        work: Callable[[], Coroutine[None, None, object]],
        *,
        group: str = "default",
        exclusive: bool = False,
        holds: bool = False,
    ) -> None:
        """Do something that takes time, beside everything else.

        Args:
            work: What is done.
            group: Work of the same group may be replaced.
            exclusive: Replace what goes on of that group.
            holds: Let the keys behind the one that began it wait for its end.
        """
        if holds:
            self.session.ahead.hold()
            work = partial(self._held, work)
        wanted: WorkType[object] = work
        self.run_worker(wanted, group=group, exclusive=exclusive)

    def begin_outside(self, work: Callable[[], Coroutine[None, None, object]]) -> None:
        """Give the terminal to another program; keys typed behind were for it: forget them."""

        async def outside() -> None:
            try:
                await work()
            finally:
                self.session.ahead.forget()

        self.begin(outside, holds=True)

    async def _held(self, work: Callable[[], Coroutine[None, None, object]]) -> None:
        try:
            await work()
        finally:
            self.session.ahead.release()
            self.app.post_message(KeysFree())

    def send(self, command: Command, said: str, after: Callable[[], None] | None = None) -> None:
        """Send a command; its reply is told on the message line, and later what came of it."""
        self.begin(partial(self._sent, command, said, after), holds=True)

    async def _sent(self, command: Command, said: str, after: Callable[[], None] | None) -> None:
        reply = await self.session.bridge.command(command)
        self.session.look()
        if isinstance(reply, Refused):
            self.say_refused(said, reply.reason, reply.hint)
            return
        if after:
            after()
        note = f"  {reply.note}" if reply.note else ""
        pursued = pursued_of(command, self.session.bridge.deliveries)
        mark = Span("… ", Ink(Role.RUNNING)) if pursued else Span("✓ ", Ink(Role.DONE))
        self.say(mark, Span(said, TEXT), note)
        if pursued:
            self.pursue(pursued)

    def pursue(self, pursued: Pursued) -> None:
        """Say what comes of something once that is known, in place of what was hoped for."""
        self.notice_of = pursued
        if pursued.is_landing:
            self.session.landing[pursued.worker] = None
        self.begin(partial(self._pursue, pursued), group="outcome")

    async def _pursue(self, pursued: Pursued) -> None:
        try:
            outcome = await self.session.bridge.until(pursued.outcome)
        finally:
            self.session.landing.pop(pursued.worker, None)
        self.session.look()
        screen = self.app.screen
        here = screen if isinstance(screen, BoardScreen) else self
        here.came_out(pursued, outcome)

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Say what came of something, once a newer message has been read."""
        mark = Span("✓ ", Ink(Role.DONE))
        if not outcome.is_well:
            mark = Span("✗ ", Ink(Role.FAILED, bold=True))
        hint = f"  {outcome.hint}" if outcome.hint else ""
        self._say_in_turn(pursued, mark, Span(outcome.said, TEXT), hint)

    def _say_in_turn(self, pursued: Pursued, *parts: str | Span) -> None:
        screen = self.app.screen
        here = screen if isinstance(screen, BoardScreen) else self
        unread_s = here.noticed_at + _READ_S - monotonic()
        if here.notice and here.notice_of is not pursued and unread_s > 0:
            self.app.set_timer(unread_s, partial(self._say_in_turn, pursued, *parts))
            return
        here.say(*parts)

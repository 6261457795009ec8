"""Stand for every screen: bars above and below a body, a message line, a box for text; its keys."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen
from textual.timer import Timer

from engine.messages.commands import Command, Refused, Seen
from engine.messages.results import WorkerView
from tui.ink import BOLD, TEXT, Ink, Role, Row, Span, words
from tui.keys import ACTIONS, Action
from tui.keys.guesses import said_of_unbound
from tui.kit.ahead import KeysFree
from tui.kit.bars import Ask, Hint, ask_rows, footer, message, message_rows, sentence_rows
from tui.kit.bindings import bindings_of, chord_row, doer_of
from tui.kit.chrome import banner_rows, run_line, top_bar
from tui.kit.dialogs import Choice, Dialog, Picker
from tui.kit.inked import Inked, Widths
from tui.kit.panes import Edged, use_whole_cells
from tui.kit.private import paint_now
from tui.kit.session import PLAYER, Session, identity_of
from tui.kit.textbox import Writing, WritingBox
from tui.kit.working import begin_work, caught_up
from tui.words.outcomes import CameOut, Pursued, deed_of, not_said, pursued_of
from tui.words.reasons import ELSEWHERE
from tui.words.scene import Scene
from tui.words.sentences import ended, two_sentences, with_keys

_DONE, _FAILED = Span("✓ ", Ink(Role.DONE)), Span("✗ ", Ink(Role.FAILED, bold=True))
_STILL_S = _READ_S = 2.0
"""A newer message stays this long before the outcome of an older act takes its place."""
_CHORD_HELP_S = 0.3
_LOW = 12
"""A lower screen has one row for a message."""
_ANSWERS_YES, _ANSWERS_NO = "copy", "next"
"""The ideas of `y` and `n`: while something is asked, fingers mean an answer with them."""
_TAKES_TEXT = frozenset({"search", "steer", "comment", "retry_with", "edit", "pick", "palette"})
_FOLLOWS = frozenset({"fleet", "plan", "runs", "stats"})
"""The screens of a run as a whole: a later run may take the place of one that has ended there."""


class Controller:
    """Some of what keys mean on a screen: `do_<idea>` for each idea, `by_<name>` for two ways."""

    def __init__(self, screen: "Board") -> None:
        self.screen = screen

    @property
    def session(self) -> Session:
        """The memory of this console."""
        return self.screen.session

    @property
    def run_id(self) -> str:
        """The run that commands are for."""
        return self.screen.run_id

    def here(self) -> WorkerView:
        """Return the worker under the cursor."""
        return self.screen.here()

    def refuse(self, idea: str, reason: str, hint: str = "") -> None:
        """Say that a key was refused, why, and what helps."""
        self.screen.say_refused(self.screen.key_of(idea), reason, hint)

    def why_not(self, idea: str) -> str:
        """Return why an idea cannot be done now; empty where nothing stands against it."""
        del idea
        return ""

    def label_of(self, idea: str, label: str) -> str:
        """Return the footer's word for an idea, where it depends on what is under the cursor."""
        del idea
        return label

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Take in what came of an act."""

    @property
    def digits(self) -> Mapping[str, Callable[[], None]]:
        """The digits that answer what is asked, and how; they lead to no screen meanwhile."""
        return {}


C = TypeVar("C", bound=Controller)


class Board(Screen[None]):
    """A screen of the console. Subclasses draw their panes and say what ideas do (`do_<idea>`)."""

    kind: ClassVar[str]
    home: ClassVar[str] = "fleet"
    held: ClassVar[Sequence[type[Controller]]] = ()
    """The controllers of ideas that this screen does not do itself, the nearest first."""
    opens_diff = "diff"
    """The idea that opens a worker's diff here."""
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-roomy"), (160, "-wide")]  # noqa: RUF012 - Textual's own
    VERTICAL_BREAKPOINTS = [(0, "-low"), (10, "-short"), (30, "-tall")]  # noqa: RUF012 - likewise

    def __init_subclass__(cls, **more: bool) -> None:
        """Bind the keys that the table has for this screen."""
        if "kind" in vars(cls):
            cls.BINDINGS = bindings_of(cls.kind)
        super().__init_subclass__(**more)

    def __init__(self, session: Session) -> None:
        super().__init__(classes="-ascii" if session.is_ascii else None)
        self.session = session
        self.box = WritingBox(self, session.drafts)
        self.notice: Row = ()
        self.notice_of: Pursued | None = None
        self.noticed_at = -_READ_S
        self.ask: Ask | None = None
        self.fingered_at = -_STILL_S
        self.controllers = tuple(made(self) for made in self.held)
        self.widths = Widths(self.kind, session.widths)
        self._chord_timer: Timer | None = None
        self._chord_shown: Row = ()

    def compose(self) -> ComposeResult:
        """Compose the bars, the panes between them, and the box."""
        yield Inked(id="top")
        yield Inked(id="run")
        yield from self.compose_panes()
        yield self.box
        yield Inked(id="say")
        yield Inked(id="keys")

    def compose_panes(self) -> ComposeResult:
        """Compose what stands between the bars."""
        raise NotImplementedError

    @property
    def is_fingered(self) -> bool:
        """A key was pressed a moment ago: nothing may move from under the cursor."""
        return monotonic() - self.fingered_at < _STILL_S

    def draw_panes(self, scene: Scene) -> None:
        """Draw what stands between the bars."""
        raise NotImplementedError

    def subject(self, scene: Scene, cells: int) -> Row:
        """Row 1: the run line, unless the screen has a subject of its own."""
        return run_line(scene, cells)

    def sentence(self, scene: Scene) -> Row:
        """Return what is true of the thing under the cursor, and what happens next."""
        del scene
        return ()

    def hints(self) -> Sequence[str]:
        """The ideas of the footer, most likely first."""
        return ()

    def why_not(self, idea: str) -> str:
        """Return why an idea cannot be done now; empty where it can."""
        return next(filter(None, (held.why_not(idea) for held in self.controllers)), "")

    def shows_whole_question(self, worker: WorkerView) -> bool:
        """Say whether all of what it asks stands on the screen: only then may it be allowed."""
        del worker
        return False

    def open_question(self) -> None:
        """Show all of what it asks."""
        self.go("inbox")

    def seen(self, worker: WorkerView) -> Seen:
        """Return what of a worker is on this screen: an act on anything else is refused."""
        return identity_of(worker)

    def place_here(self) -> tuple[str, int]:
        """Return the file and line that `edit` means; nothing for the whole tree."""
        return "", 0

    def point_at(self, worker: str) -> None:
        """Put the cursor on a worker."""
        self.session.worker = worker

    def gone(self) -> None:
        """Release what only a screen that is seen needs."""

    def pointed(self, target: str, times: int) -> None:
        """Something in a pane was clicked."""

    def on_mount(self) -> None:
        """Draw scrollbars of whole cells where there is only ASCII; a pane may have its own."""
        if self.session.is_ascii:
            use_whole_cells(self.query("*"))

    def on_screen_suspend(self) -> None:
        """Take notice that another screen is seen; a dialog only lies over this one."""
        if self not in self.app.screen_stack:
            self.gone()

    def on_screen_resume(self) -> None:
        """Draw what has changed while another screen was seen."""
        self.draw()

    def on_resize(self) -> None:
        """Draw for another size, of the screen or of a pane."""
        self.draw()

    on_scrolled_resized = on_resize

    def draw(self) -> None:
        """Draw anew what differs; a pane may ask for it before others are there, or after."""
        is_whole = self.is_mounted and self.is_attached and self.display
        if is_whole and self in self.app.screen_stack[-2:] and self.size:
            self._draw(self.session.scene(), self.size.width)

    def _draw(self, scene: Scene, cells: int) -> None:
        self.widths.apply()
        rows = 1 if self.size.height < _LOW else 3
        try:
            said = banner_rows(scene.banner, cells, rows) if scene.banner else ()
            self._inked("#run").show(said or [self.subject(scene, cells)])
            self.draw_panes(scene)
        finally:  # after the panes: what can be done depends on what is seen
            self._draw_message(scene, cells)
            self._inked("#top").show([top_bar(scene, self.kind, cells, self.digits)])
            self._inked("#keys").show([footer(self._foot_hints(), self.key_of("help"), cells)])

    def _draw_message(self, scene: Scene, cells: int) -> None:
        line = self._inked("#say")
        line.show(self._message_rows(scene, cells))
        line.set_class(bool(self.notice or self.ask), "-says")

    def _inked(self, selector: str) -> Inked:
        return self.query_one(selector, Inked)

    def _message_rows(self, scene: Scene, cells: int) -> list[Row]:
        if self._chord_shown:
            return [message(self._chord_shown, cells)]
        if self.ask:
            yes = (self.key_of(self.ask.idea), self.key_of(_ANSWERS_YES))
            no = (self.key_of("leave"), self.key_of(_ANSWERS_NO))
            return ask_rows(self.ask.said, yes, no, cells)
        if not self.notice:
            return sentence_rows(self.sentence(scene), cells)
        most = {"most": 1} if self.size.height < _LOW else {}
        return message_rows(self.notice, cells, **most)

    def key_of(self, idea: str) -> str:
        keymap = self.session.keymap
        return keymap.shown(f"{self.kind}.{idea}") or keymap.shown(f"everywhere.{idea}")

    def key_anywhere(self, idea: str) -> str:
        """The key of an idea here, or on the screens that have it."""
        return self.key_of(idea) or self.session.keymap.shown_by_idea.get(idea, "")

    def label_of(self, idea: str) -> str:
        """The footer's word for an idea here."""
        action = self.action(idea)
        label = action.label if action else ""
        for held in self.controllers:
            label = held.label_of(idea, label)
        return label

    def action(self, idea: str) -> Action | None:
        """The action an idea is on this screen, if it is one."""
        return ACTIONS.get(f"{self.kind}.{idea}") or ACTIONS.get(f"everywhere.{idea}")

    def _foot_hints(self) -> list[Hint]:
        elsewhere = ("start", "palette") if self.kind == "fleet" else ("go_fleet", "palette")
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
            return Hint(self.key_of(idea), self.label_of(idea), idea)
        ways = [way for way in ("left", "down", "up", "right") if self.doer(way)]
        return Hint("".join(self.key_of(way) for way in ways), "move", idea)

    def refusal(self, idea: str) -> str:
        """Return why an idea cannot be done here and now; empty where it can."""
        if forbidden := self.session.why_forbidden(idea):
            return forbidden
        if self.session.is_alone and idea.startswith("go_"):
            return f"this console was opened for one merge; {self.key_of('back')} leaves it"
        if self.doer(idea) is None:
            reason = ELSEWHERE.get(f"{self.kind}.{idea}") or ELSEWHERE.get(f"everywhere.{idea}")
            return with_keys(reason or "it does nothing here", self.key_anywhere)
        return self.why_not(idea)

    def action_idea(self, idea: str) -> None:
        """Do what a key of the table means; the same key again, or yes, answers what was asked."""
        ask, self.ask = self.ask, None
        if ask and idea in {ask.idea, _ANSWERS_YES}:
            ask.then()
        elif not (ask and idea in {"leave", _ANSWERS_NO}):
            self.perform(idea)

    def action_play(self, idea: str) -> None:
        """Move the replay."""
        if self.session.player:
            PLAYER[idea](self.session.player)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say whether a key does something now: None grays it, and `refusal` has the words."""
        if action == "play":
            return self.session.player is not None
        if action != "idea" or (self.ask and parameters[0] in {_ANSWERS_YES, _ANSWERS_NO}):
            return True
        return not self.refusal(str(parameters[0])) or None

    def perform(self, idea: str) -> None:
        """Do what an idea does, or say why not. First, copy selected text or end the selection."""
        if idea == "leave" and self.selections:
            self.clear_selection()
            return
        if idea == "copy" and (chosen := self.get_selected_text()):
            self.copy(chosen)
            return
        reason = self.refusal(idea)
        if reason:
            self.refuse(idea, reason)
            return
        if do := self.doer(idea):
            do()

    def doer(self, idea: str) -> Callable[[], None] | None:
        """Return what does an idea here: this screen, else the nearest controller."""
        return next(filter(None, (doer_of(one, idea) for one in (self, *self.controllers))), None)

    def hand_on(self, idea: str) -> None:
        """Let the controllers do what this screen does only in part."""
        if do := next(filter(None, (doer_of(held, idea) for held in self.controllers)), None):
            do()

    def does(self, kind: type[C]) -> C:
        """Return the controller of a kind."""
        return next(held for held in self.controllers if isinstance(held, kind))

    def refuse(self, idea: str, reason: str) -> None:
        """Say why an idea does nothing now; what was typed behind it was text for its box."""
        self.say_refused(self.key_of(idea) or idea, reason)
        if idea in _TAKES_TEXT:
            self.session.ahead.swallow()

    @property
    def digits(self) -> Mapping[str, Callable[[], None]]:
        """The digits that answer what is asked here, and how."""
        return next(filter(None, (held.digits for held in self.controllers)), {})

    def key_came(self, key: events.Key, found: ActiveBinding | None) -> None:
        """Clear what was said, and leave what was asked where another key came."""
        self.fingered_at = monotonic()
        self.forget_chord()
        self.notice = ()
        if found is None or not found.enabled:
            self.ask = None
        if found is None and key.key not in self.active_bindings:
            sign = key.character or ""
            self.say_refused(*said_of_unbound(key.key, sign, self.key_of, self.action))

    def key_done(self) -> None:
        """Show at once what a key did."""
        self.draw()
        if self.app.screen is self:
            paint_now(self)

    def chord_began(self, begun: str, follow: Sequence[ActiveBinding]) -> None:
        """Show what can follow, to those who wait."""

        def show() -> None:
            self._chord_shown = chord_row(begun, follow)
            self.draw()

        self.notice = ()
        self._chord_timer = self.set_timer(_CHORD_HELP_S, show)

    def say_why_not(self, binding: Binding) -> None:
        """Tell why a bound key does nothing now."""
        idea = (binding.id or "").rpartition(".")[2]
        self.refuse(idea, self.refusal(idea))

    def forget_chord(self) -> None:
        """Take away what could have followed."""
        self._chord_shown = ()
        if self._chord_timer:
            self._chord_timer.stop()

    def on_inked_clicked(self, clicked: Inked.Clicked) -> None:
        """Do what a click means: a tab, a key of the footer, or what a pane says."""
        kind, _, target = clicked.target.partition(":")
        self.notice = ()
        if kind == "go":
            self.perform(f"go_{target}")
        elif kind == "do":
            self.action_idea(target)
        elif kind == "choice":
            number, _, worker = target.partition(":")
            self.point_at(worker)
            self.digits.get(number, self.draw)()
        elif kind == "to":
            self.point_at(target)
            if clicked.times > 1:
                self.go("worker")
        else:
            self.pointed(clicked.target, clicked.times)
        self.draw()

    def on_edged(self, edged: Edged) -> None:
        """Draw a pane or a column as wide as it was made."""
        self.widths.keep(edged, self.size.width // 2)
        self.draw()

    def action_point(self, target: str) -> None:
        """Do what a click on a mark of a scrollbar means."""
        self.pointed(target, 1)
        self.draw()

    @property
    def run_id(self) -> str:
        """The run that commands are for."""
        run = self.session.run
        return run.run if run else ""

    def here(self) -> WorkerView:
        """Return the worker under the cursor."""
        worker = self.session.worker_view
        if worker is None:
            raise LookupError("no worker is under the cursor")  # `why_not` has refused before
        return worker

    def go(self, screen: str) -> None:
        """Go to another screen; keys typed meanwhile are for that one."""
        self.begin(partial(self._switch, screen), holds=True)

    async def _switch(self, screen: str) -> None:
        self.session.hold_run(is_held=screen not in _FOLLOWS)
        await self.app.switch_mode(screen)
        await caught_up(self.app.screen)

    def copy(self, text: str) -> None:
        """Put a text into the terminal's clipboard."""
        self.app.copy_to_clipboard(text)
        self.say(Span("copied: ", TEXT), text)

    def choose(
        self, title: str, choices: Sequence[Choice], then: Callable[[str], None], hint: str = ""
    ) -> None:
        """Let one of several things be picked; one that cannot be says why."""
        reasons = {choice.target: choice for choice in choices if choice.reason}

        def take(target: str) -> None:
            if refused := reasons.get(target):
                self.say_refused(refused.title, refused.reason)
            else:
                then(target)

        asked = {"hint": hint} if hint else {}
        self.open(Picker(title, choices, self.session.ahead, **asked), take)

    def open(self, dialog: Dialog, then: Callable[[str], None]) -> None:
        """Lay a dialog over this screen, and act on its result; keys wait at both ends."""
        self.session.ahead.hold()  # until the dialog is there
        self.begin(partial(self._open, dialog, then), group="dialog")

    async def _open(self, dialog: Dialog, then: Callable[[str], None]) -> None:
        result = await self.app.push_screen_wait(dialog)
        try:
            if result is not None:
                then(result)
                self.draw()
        finally:
            self.session.ahead.release()
            self.app.post_message(KeysFree())

    def say(self, *parts: str | Span) -> None:
        """One sentence on the message line, until the next key."""
        self.notice, self.notice_of = words(*parts), None
        self.noticed_at = monotonic()
        self.draw()

    def say_both(self, said: str, then: str, mark: Span | str = "") -> None:
        """Say what happened, and what follows from it: two sentences on the message line."""
        self.say(mark, *two_sentences(said, then))

    def say_alone(self, said: str, then: str, mark: Span) -> None:
        """Say both and draw nothing else: it may be the drawing that has failed."""
        self.notice, self.notice_of = words(mark, *two_sentences(said, then)), None
        self.noticed_at = monotonic()
        self._draw_message(self.session.scene(), self.size.width)

    def say_refused(self, what: str, reason: str, hint: str = "") -> None:
        """Say what was refused, why, and what helps."""
        self.say(_FAILED, Span(what, BOLD), *two_sentences(ended(f" refused: {reason}"), hint))

    def ask_first(self, idea: str, said: Row, then: Callable[[], None]) -> None:
        """Ask on the message line; the same key again does it."""
        self.ask = Ask(idea, said, then)

    def write(self, writing: Writing, draft: str = "") -> None:
        """Open the box for text."""
        self.box.open(writing, draft)

    def begin(
        self,
        work: Callable[[], Coroutine[None, None, object]],
        *,
        group: str = "default",
        exclusive: bool = False,
        holds: bool = False,
    ) -> None:
        """Do something that takes time, beside everything else.

        What is `exclusive` takes the place of work of its group. Keys behind the one that began
        work that `holds` wait for its end.
        """
        if holds:
            self.session.ahead.hold()
            work = partial(self._held, work)
        begin_work(self, work, group=group, exclusive=exclusive)

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
        """Send a command; show its reply on the message line, and later what came of it."""
        self.begin(partial(self._sent, command, said, after), holds=True)

    async def _sent(self, command: Command, said: str, after: Callable[[], None] | None) -> None:
        reply = await self.session.bridge.command(command)
        self.session.look()
        if isinstance(reply, Refused):
            self.say_refused(deed_of(command), reply.reason, reply.hint)
            return
        if after:
            after()
        note = not_said(reply.note, said)
        pursued = pursued_of(command, self.session.bridge.deliveries)
        mark = Span("… ", Ink(Role.RUNNING)) if pursued else _DONE
        self.say_both(said, note, mark)
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
        here = screen if isinstance(screen, Board) else self
        here.came_out(pursued, outcome)

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Say what came of something, once a newer message has been read."""
        for held in self.controllers:
            held.came_out(pursued, outcome)
        hint = with_keys(outcome.hint, self.key_anywhere)
        mark = _DONE if outcome.is_well else _FAILED
        self._say_in_turn(pursued, mark, *two_sentences(outcome.said, hint))

    def _say_in_turn(self, pursued: Pursued, *parts: str | Span) -> None:
        screen = self.app.screen
        here = screen if isinstance(screen, Board) else self
        unread_s = here.noticed_at + _READ_S - monotonic()
        if here.notice and here.notice_of is not pursued and unread_s > 0:
            self.app.set_timer(unread_s, partial(self._say_in_turn, pursued, *parts))
            return
        here.say(*parts)

"""How pressed keys, clicks and pastes reach what a screen does, its overlays, or its questions."""

from collections.abc import Callable
from time import monotonic

from textual import events

from engine.messages.commands import StopRun
from tui.keys import PLAYING, Heard, Waits
from tui.kit.ahead import Typed
from tui.kit.dialogs import LeaveDialog
from tui.kit.help import HelpPage
from tui.kit.inked import Board
from tui.kit.pickers import Picker
from tui.kit.screen import BoardScreen, Overlay
from tui.kit.session import Player

_CHORD_HELP_S = 0.3
_TAKES_TEXT = frozenset({"search", "steer", "comment", "retry_with", "edit", "pick", "palette"})
_JUMP_S = 10.0
_PLAYER: dict[str, Callable[[Player], None]] = {
    "play": lambda player: player.play_or_hold(),
    "step": lambda player: player.step(),
    "back": lambda player: player.go_to(player.now() - _JUMP_S),
    "on": lambda player: player.go_to(player.now() + _JUMP_S),
    "slower": lambda player: player.faster(-1),
    "faster": lambda player: player.faster(1),
}
_PLAYS = {key: _PLAYER[idea.name] for idea in PLAYING for key in idea.keys}


class KeyedScreen(BoardScreen):
    """A screen that hears keys: single ones, chords, the second press of one that asks first."""

    # Keys.

    async def hear(self, typed: Typed) -> None:
        """Take a key or a paste, on what the keys before it have made of this screen."""
        if self.writing:
            await self.textbox.hear(typed)
        elif isinstance(typed, events.Paste):
            self._pasted(typed.text)
        else:
            self.hear_key(typed)

    def hear_key(self, event: events.Key) -> None:
        """Take a key where no box is open."""
        self.fingered_at = monotonic()
        self._forget_chord_help()
        key, overlay = key_name(event), self.overlay
        if overlay:
            self._overlay_key(overlay, key, event.character)
        else:
            self._screen_key(key)
        if overlay and overlay is self.overlay and self._under:
            self.draw_over(overlay)
        else:
            self.draw()
        self.paint()

    def _screen_key(self, key: str) -> None:
        self.notice = ()
        if self.session.player and key in _PLAYS:
            _PLAYS[key](self.session.player)
            return
        if key == "escape" and self.session.chords.leave():
            return
        heard = self.session.chords.feed(key, self.kind)
        if isinstance(heard, Waits):
            self._chord_timer = self.set_timer(_CHORD_HELP_S, lambda: self._show_chord(heard))
            return
        ask, self.ask = self.ask, None
        if isinstance(heard, Heard):
            if ask and heard.action.idea == ask.idea:
                ask.then()
            elif not (ask and heard.action.idea == "leave"):
                self.perform(heard.action.idea)
        elif len(key) == 1 and key.isalpha() and not key.isascii():
            self.say_refused(
                key, "this keyboard layout is not Latin", "arrows, enter, space, digits work"
            )

    def _show_chord(self, waits: Waits) -> None:
        self._chord_shown = waits
        self.draw()

    def _forget_chord_help(self) -> None:
        self._chord_shown = None
        if self._chord_timer:
            self._chord_timer.stop()

    def perform(self, idea: str) -> None:
        """Do what an idea does here, or say why not."""
        reason = self.refusal(idea)
        if reason:
            self.say_refused(self._key(idea) or idea, reason)
            if idea in _TAKES_TEXT:
                self.session.ahead.swallow()
            return
        getattr(self, f"do_{idea}")()

    def _overlay_key(self, overlay: Overlay, key: str, character: str | None) -> None:
        if key in {"escape", "ctrl+c"}:
            self.overlay = None
        elif key in {"up", "down"}:
            overlay.move(-1 if key == "up" else 1)
        elif isinstance(overlay, LeaveDialog):
            self._leave_key(overlay, key)
        elif key == "enter" and isinstance(overlay, Picker):
            self._take_choice(overlay)
        elif key == "backspace":
            overlay.erase()
        elif character and character.isprintable():
            overlay.type(character)

    def _take_choice(self, picker: Picker) -> None:
        choice = picker.current
        if choice is None:
            return
        self.overlay = None
        if choice.reason:
            self.say_refused(choice.title, choice.reason)
        else:
            self.picked(choice.target)

    def _pasted(self, text: str) -> None:
        """Take a paste where something can be typed into; elsewhere it is no row of keys."""
        if isinstance(self.overlay, Picker | HelpPage):
            self.overlay.type("".join(char for char in text if char.isprintable()))
            self.draw()

    # The mouse.

    def on_board_clicked(self, clicked: Board.Clicked) -> None:
        kind, _, target = clicked.target.partition(":")
        self.notice = ()
        if kind == "go":
            self.perform(f"go_{target}")
        elif kind == "key":
            self._screen_key(_typed(target))
        else:
            self.pointed(clicked.target, clicked.times)
        self.draw()

    def on_board_wheeled(self, wheeled: Board.Wheeled) -> None:
        idea = "down" if wheeled.rows > 0 else "up"
        for _ in range(abs(wheeled.rows)):
            if not self.refusal(idea):
                self.perform(idea)
        self.draw()

    # Leaving.

    def leave_dialog(self) -> None:
        """Leave at once where nothing lives, else ask what becomes of the workers."""
        live = self.session.live()
        if not live or not self.session.can_stay_alive:
            self.app.exit()
            return
        self.overlay = LeaveDialog(live, can_stop=not self.session.is_read_only)

    def _leave_key(self, dialog: LeaveDialog, key: str) -> None:
        chosen = dialog.options[dialog.index][0] if key == "enter" else key
        if chosen == "esc":
            self.overlay = None
        elif chosen == "l":
            self.app.exit()
        elif chosen == "s" and dialog.can_stop:
            self.begin(self._stop_and_leave)

    async def _stop_and_leave(self) -> None:
        for run in self.session.view.runs:
            if run.ended_at is None:
                await self.session.bridge.command(StopRun(run=run.run))
        self.app.exit()


def key_name(event: events.Key) -> str:
    """A pressed key as the key table writes it: its character, or its name where it has none."""
    if event.character and event.character.isprintable() and event.character != " ":
        return event.character
    return event.key


def _typed(shown: str) -> str:
    return {"esc": "escape", "↓": "down", "↑": "up"}.get(shown, shown)

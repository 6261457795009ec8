"""Lead typed keys to bindings, in order: single keys and sequences of two without a time limit.

Textual forwards a key to the focused widget before the key before it has been handled. Here each
key waits until what the one before it began is over; and a sequence is a binding like any other.
"""

from collections.abc import Sequence

from textual import events
from textual.binding import ActiveBinding
from textual.reactive import var
from textual.widget import Widget

from tui.kit.ahead import KeysFree, TypeAhead, Typed
from tui.kit.private import Enduring, hand_to, is_leaving, paint_now

_ANY_SIGN = "a"


class Sequences(Enduring):
    """An application that hears keys one after another, and sequences of keys as bindings."""

    sequence = var("")

    @property
    def ahead(self) -> TypeAhead | None:
        """The keys typed ahead; None while nothing hears keys yet."""
        return None

    async def on_event(self, event: events.Event) -> None:
        """Hear keys and pastes here, one after another; all else goes its usual way."""
        is_typed = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        ahead = self.ahead
        if ahead is None or not is_typed or not self.screen_stack:
            await super().on_event(event)
        elif isinstance(event, events.Key | events.Paste):
            self.app_focus = True
            await ahead.take(event, self._hear)

    async def on_keys_free(self) -> None:
        """Hear the keys that waited for what is over now."""
        if self.ahead:
            await self.ahead.go_on(self._hear)

    async def _hear(self, typed: Typed) -> None:
        """Lead a key to the widget that is typed into, or to what it is bound to."""
        if is_leaving(self) or not self.screen_stack:
            return
        focused = self.focused
        is_typing = focused is not None and focused.check_consume_key(_ANY_SIGN, _ANY_SIGN)
        if focused is not None and (isinstance(typed, events.Paste) or _consumes(focused, typed)):
            self._type_into(focused, typed)
        elif isinstance(typed, events.Key):
            await self._press(typed, focused if is_typing else None)

    def _type_into(self, widget: Widget, typed: Typed) -> None:
        """Let a widget take a key or a paste to its end before the next one is heard."""
        ahead = self.ahead
        if ahead is None:
            return
        ahead.hold()
        hand_to(widget, typed)

        def release() -> None:
            if widget.is_attached:
                paint_now(widget.screen)
            ahead.release()
            self.post_message(KeysFree())

        widget.call_later(release)

    async def _press(self, key: events.Key, typing: Widget | None) -> None:
        """Do what a key is bound to; while something is typed into, only its own keys count."""
        begun, active = self.sequence, self.screen.active_bindings
        pressed = f"{begun} {key.key}" if begun else key.key
        found = active.get(pressed)
        if typing is not None and found and not self._is_for(typing, found):
            found = None
        if found is None and not (begun and key.key == "escape"):
            follow = [bound for keys, bound in active.items() if keys.startswith(pressed + " ")]
            if follow and typing is None:
                self.sequence = pressed
                self.sequence_began(pressed, follow)
                return
        self.sequence = ""
        self.key_came(key, found)
        if typing is None and not begun and self.take_digit(key.character or ""):
            self.key_done()
            return
        if found is not None and found.enabled:
            await self.run_action(found.binding.action, found.node)
        elif found is not None:
            self.say_why_not(found)
        self.key_done()

    def _is_for(self, typing: Widget, found: ActiveBinding) -> bool:
        """Say whether a binding counts while a widget is typed into: its own, a dialog's."""
        in_dialog = self.screen.is_modal and found.node is self.screen
        return found.node is typing or in_dialog or found.binding.priority

    def sequence_began(self, begun: str, follow: Sequence[ActiveBinding]) -> None:
        """Show what can follow."""

    def take_digit(self, sign: str) -> bool:
        """Answer what is asked by a digit; say whether the key was for that."""
        del sign
        return False

    def key_came(self, key: events.Key, found: ActiveBinding | None) -> None:
        """Prepare for what a key does."""

    def say_why_not(self, found: ActiveBinding) -> None:
        """Tell why a bound key does nothing now."""

    def key_done(self) -> None:
        """Show what a key did."""


def _consumes(widget: Widget, typed: Typed) -> bool:
    return isinstance(typed, events.Key) and widget.check_consume_key(typed.key, typed.character)

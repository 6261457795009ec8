"""Keys that were typed ahead: each is read only when what the one before it began is over.

A terminal hands over a burst of keys at once. What the first one opens, a box, a screen, an answer
of the engine, decides what the next one means; so the next one waits for it.
"""

from collections import deque
from collections.abc import Awaitable, Callable

from textual.events import Key, Paste
from textual.message import Message

Typed = Key | Paste
_AT_ONCE = frozenset({"escape", "ctrl+c", "ctrl+q"})
"""The ways out never wait: they forget what was typed ahead."""


_BURST_S = 0.02
"""No hand presses keys so close on each other; a terminal that hands over a burst does."""


class KeysFree(Message):
    """Tell that what held the keys back is over: those that wait can be heard."""


class TypeAhead:
    """The queue of typed keys, and how much of what they began still goes on."""

    def __init__(self) -> None:
        self._waiting: deque[Typed] = deque()
        self._held = 0
        self._is_hearing = False
        self._heard_at = 0.0
        self._swallows = False

    @property
    def is_idle(self) -> bool:
        """Say whether every key has come to its end."""
        return not (self._waiting or self._held or self._is_hearing)

    def hold(self) -> None:
        """Let later keys wait until `release`."""
        self._held += 1

    def release(self) -> None:
        """Say that what a key began is over."""
        self._held = max(self._held - 1, 0)

    def forget(self) -> None:
        """Forget the keys that wait: they were typed for something that is gone."""
        self._waiting.clear()

    def swallow(self) -> None:
        """Drop the rest of the burst: it was text for a box that could not be opened."""
        self._swallows = True

    def _is_swallowed(self, typed: Typed) -> bool:
        """Say whether a key came in one burst with one whose box could not be opened."""
        self._swallows = self._swallows and typed.time - self._heard_at < _BURST_S
        self._heard_at = typed.time
        return self._swallows

    async def take(self, typed: Typed, hear: Callable[[Typed], Awaitable[None]]) -> None:
        """Take the next key, and hear all that need not wait."""
        if self._held and isinstance(typed, Key) and typed.key in _AT_ONCE:
            self.forget()
            self._held = 0
        self._waiting.append(typed)
        await self.go_on(hear)

    async def go_on(self, hear: Callable[[Typed], Awaitable[None]]) -> None:
        """Hear the keys that wait, in order, as far as nothing holds them."""
        if self._is_hearing:
            return
        self._is_hearing = True
        try:
            while self._waiting and not self._held:
                typed = self._waiting.popleft()
                if not self._is_swallowed(typed):
                    await hear(typed)
        finally:
            self._is_hearing = False

"""How long an attempt has really run: pauses and waiting for a human are left out."""

from __future__ import annotations

import time


class Clock:
    """Counts from its creation; stands still while anybody holds it, or the machine sleeps."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._held_s = 0.0
        self._held_since = 0.0
        self._holders: set[str] = set()

    def restart(self) -> None:
        """Count from now; whoever holds it still does."""
        self._start = self._held_since = time.monotonic()
        self._held_s = 0.0

    def is_held_by(self, who: str) -> bool:
        """Whether that holder holds it."""
        return who in self._holders

    @property
    def is_held(self) -> bool:
        """Somebody holds it."""
        return bool(self._holders)

    @property
    def wall_s(self) -> float:
        """Seconds since the start, holds included."""
        return time.monotonic() - self._start

    @property
    def held_s(self) -> float:
        """Seconds in which it stood still."""
        now = time.monotonic()
        return self._held_s + (now - self._held_since if self._holders else 0.0)

    @property
    def active_s(self) -> float:
        """Seconds that count against a limit."""
        return self.wall_s - self.held_s

    def hold(self, who: str) -> None:
        """Stand still; again by the same holder changes nothing."""
        if not self._holders:
            self._held_since = time.monotonic()
        self._holders.add(who)

    def release(self, who: str) -> None:
        """Go on, unless somebody else still holds it."""
        if who in self._holders:
            held_s = self.held_s
            self._holders.discard(who)
            self._held_s = held_s if not self._holders else self._held_s

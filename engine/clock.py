"""Tell the engine the time, through one seam, so that tests can set it."""

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """The seam for telling time and waiting."""

    def now(self) -> float:
        """Return wall-clock seconds: for records and for deadlines that outlive us."""

    def monotonic(self) -> float:
        """Return seconds that only grow: for time-outs."""

    def has_just_woken(self) -> bool:
        """Return whether the machine woke so lately that failures may be due to it."""

    async def sleep_until(self, at: float) -> None:
        """Return when the wall clock has reached `at`."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


_SHORTEST_SLEEP_S = 5.0
_AWAKENING_S = 120.0


class Wakes:
    """The machine's wake-ups, found by looking often at how long it has slept in all."""

    def __init__(self) -> None:
        self._slept_s: float | None = None
        self._woke_at: float | None = None

    def look(self, slept_s: float, now: float) -> bool:
        """Return whether the machine woke lately.

        Args:
            slept_s: How long it has slept since it was started.
            now: Seconds that stand still while it sleeps.
        """
        if self._slept_s is not None and slept_s - self._slept_s > _SHORTEST_SLEEP_S:
            self._woke_at = now
        self._slept_s = slept_s
        return self._woke_at is not None and now - self._woke_at < _AWAKENING_S


class SystemClock:
    """The machine's own clocks."""

    def __init__(self) -> None:
        self._wakes = Wakes()

    def now(self) -> float:
        """Return wall-clock seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def has_just_woken(self) -> bool:
        """Return whether it woke lately: asked often, and only if sleep is counted."""
        counting = getattr(time, "CLOCK_BOOTTIME", None)
        if counting is None:
            return False
        now = time.monotonic()
        return self._wakes.look(time.clock_gettime(counting) - now, now)

    async def sleep_until(self, at: float) -> None:
        """Return when the wall clock has reached `at`; looks again after a clock was set."""
        while (left := at - time.time()) > 0:  # noqa: ASYNC110  a clock sets no event
            await anyio.sleep(min(left, 30.0))

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await anyio.sleep(seconds)

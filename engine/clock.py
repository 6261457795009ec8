"""The time, as the engine sees it: one seam, so that tests can turn the hands."""

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """What tells the time and waits for it."""

    def now(self) -> float:
        """Wall-clock seconds: for what is written down and for deadlines that outlive us."""

    def monotonic(self) -> float:
        """Seconds that only grow: for time-outs."""

    def has_just_woken(self) -> bool:
        """The machine slept, and woke so lately that what failed since may be due to that."""

    async def sleep_until(self, at: float) -> None:
        """Return when the wall clock has reached `at`."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


_SHORTEST_SLEEP_S = 5.0
_AWAKENING_S = 120.0


class Wakes:
    """When the machine woke: found by looking often at how long it has slept in all."""

    def __init__(self) -> None:
        self._slept_s: float | None = None
        self._woke_at: float | None = None

    def look(self, slept_s: float, now: float) -> bool:
        """Whether the machine woke lately.

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
        """Wall-clock seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def has_just_woken(self) -> bool:
        """Tells it only if it is asked now and then; where no clock counts sleep, never."""
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

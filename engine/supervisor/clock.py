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

    async def sleep_until(self, at: float) -> None:
        """Return when the wall clock has reached `at`."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Wall-clock seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    async def sleep_until(self, at: float) -> None:
        """Return when the wall clock has reached `at`; looks again after a clock was set."""
        while (left := at - time.time()) > 0:  # noqa: ASYNC110  a clock sets no event
            await anyio.sleep(min(left, 30.0))

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await anyio.sleep(seconds)

"""Provide a clock for tests that stands still until the test moves it."""

import anyio
import anyio.lowlevel

_START = 1_700_000_000.0


class ManualClock:
    """A `Clock` for tests: time stands still until `advance` moves it."""

    def __init__(self, at: float = _START) -> None:
        self._began = at
        self._passed = 0.0
        self.has_slept = False
        self._sleepers: dict[anyio.Event, float] = {}

    @property
    def sleeping(self) -> int:
        """Return how many sleepers wait on it now."""
        return len(self._sleepers)

    def now(self) -> float:
        """Return wall-clock seconds."""
        return self._began + self._passed

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return self._passed

    def has_just_woken(self) -> bool:
        """Return what the test has set."""
        return self.has_slept

    async def sleep_until(self, at: float) -> None:
        """Return when the hands have been turned to `at`."""
        if self.now() >= at:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        self._sleepers[woken] = at
        try:
            await woken.wait()
        finally:
            del self._sleepers[woken]

    async def sleep(self, seconds: float) -> None:
        """Return when the hands have been turned by so many seconds."""
        await self.sleep_until(self.now() + seconds)

    def advance(self, seconds: float) -> None:
        """Turn the hands forward."""
        self._passed += max(0.0, seconds)
        self._wake()

    def set_wall(self, at: float) -> None:
        """Set the wall clock, as an administrator might: the monotonic one does not notice."""
        self._began = at - self._passed
        self._wake()

    def _wake(self) -> None:
        for woken, at in self._sleepers.items():
            if at <= self.now():
                woken.set()

"""An engine's wall clock that a test turns forward: an hour is waited for in no time."""

import time

import anyio
import pytest

from engine.clock import SystemClock


class TurnedClock:
    """The machine's clock, and how far a test has turned it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        monkeypatch.setattr(SystemClock, "now", lambda _: self.now())
        monkeypatch.setattr(SystemClock, "sleep_until", lambda _, at: self._sleep_until(at))

    def now(self) -> float:
        """Return wall-clock seconds as the engine has them."""
        return time.time() + self._ahead_s

    def turn(self, seconds: float) -> None:
        """Let it be so much later."""
        self._ahead_s += seconds

    async def _sleep_until(self, at: float) -> None:
        while self.now() < at:  # noqa: ASYNC110 - a clock sets no event
            await anyio.sleep(0.01)

"""A poll loop for one thread: descriptors to watch, named timers, and signals as a descriptor.

Knows nothing of attempts. Time is monotonic, which on Linux stands still while the machine sleeps.
"""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LONGEST_MS = 3_600_000  # poll refuses time-outs over 2^31 ms


class Loop:
    """Calls back when a descriptor is ready or a timer is due."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._watched: dict[int, Callable[[int], None]] = {}
        self._timers: dict[str, tuple[float, Callable[[], None]]] = {}

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call back with the events that occurred; a second call replaces the first."""
        self._poll.register(fd, events)
        self._watched[fd] = callback

    def unwatch(self, fd: int) -> None:
        """Forget a descriptor, watched or not."""
        if self._watched.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def at(self, name: str, when: float, callback: Callable[[], None]) -> None:
        """Call back once at a monotonic time; a second timer of that name replaces the first."""
        self._timers[name] = (when, callback)

    def after(self, name: str, delay_s: float, callback: Callable[[], None]) -> None:
        """Call back once after a delay."""
        self.at(name, time.monotonic() + delay_s, callback)

    def cancel(self, name: str) -> None:
        """Forget a timer, set or not."""
        self._timers.pop(name, None)

    def is_set(self, name: str) -> bool:
        """Tell whether a timer of that name is waiting."""
        return name in self._timers

    def turn(self, at_most_s: float | None = None) -> None:
        """Wait for the next thing to happen and call everybody whom it concerns."""
        for fd, events in self._poll.poll(self._timeout_ms(at_most_s)):
            callback = self._watched.get(fd)
            if callback is not None:  # an earlier callback of this pass may have ended it
                callback(events)
        now = time.monotonic()
        for name, (when, due) in sorted(self._timers.items(), key=lambda item: item[1][0]):
            if when <= now and self._timers.get(name) == (when, due):
                del self._timers[name]
                due()

    def _timeout_ms(self, at_most_s: float | None) -> float:
        waits = [when - time.monotonic() for when, _ in self._timers.values()]
        if at_most_s is not None:
            waits.append(at_most_s)
        wait_s = min(waits, default=_LONGEST_MS / 1000)
        return min(max(wait_s * 1000, 0), _LONGEST_MS)


def signals_as_descriptor(numbers: Iterable[int]) -> int:
    """A descriptor from which each arriving signal of those can be read as one byte."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _heard)
    return reading


def _heard(_number: int, _frame: object) -> None:
    """Nothing: the byte in the wake-up descriptor is the message."""

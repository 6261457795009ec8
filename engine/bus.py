"""Send events to observers: every journaled event, and the newest of the others.

A subscriber that must see everything reads at its own pace, so it can never be overrun and nobody
waits for it: the newest events are in memory, those before them in the journals of their runs. Of
the latest-wins events it gets the newest of a kind for each worker.
"""

from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from engine.messages.events import LatestWins, Told
from engine.messages.patches import ViewPatch

KEPT = 4096
PACE_S = 1 / 15
"""Shortest time between two patches of the views."""
UNTOLD_S = 1.0
"""Longest time until a change that no event announces is sent."""
Read = Callable[[str, int, int], Awaitable[list[Told]]]
"""Some of a run's events behind one number, up to and with another; none when there are no more."""
Look = Callable[[], ViewPatch | None]
"""Returns what is new of the views since it was called last."""


def _key(told: Told) -> tuple[str, str, str]:
    return (told.run, type(told.event).__name__, getattr(told.event, "worker", ""))


@dataclass(eq=False)
class Subscription:
    """One observer's place in the stream.

    Attributes:
        position: How many of all events that were ever published lie behind it.
        seen: The number of the last event of each run that it has had.
    """

    bus: "Bus"
    run: str | None
    after_seq: int = 0
    position: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    latest: dict[tuple[str, str, str], Told] = field(default_factory=dict)
    wake: anyio.Event = field(default_factory=anyio.Event)

    def offer(self, told: Told) -> None:
        """Keep a latest-wins event until it is read; an older one of its kind gives way."""
        self.latest[_key(told)] = told
        self.wake.set()

    @property
    def is_level(self) -> bool:
        """Everything that was published is read."""
        return not self.latest and self.position >= self.bus.count

    @property
    def is_over(self) -> bool:
        """Nothing more will come."""
        return self.bus.is_closed and self.position >= self.bus.count

    async def news(self) -> AsyncIterator[Told]:
        """Yield what was reported since this was asked last."""
        self.wake = anyio.Event()
        async for told in self._from_journals():
            yield told
        for told in self._ready():
            if told.seq is None or told.seq > self.after_seq:
                yield told

    async def _from_journals(self) -> AsyncIterator[Told]:
        """Return what is no longer in memory: run after run, each in its own order."""
        while self.position < self.bus.dropped:
            reached, gone = self.bus.dropped, dict(self.bus.gone)
            for run, until in gone.items():
                if self.run in {None, run}:
                    async for told in self._of_run(run, until):
                        yield told
            self.position = reached

    async def _of_run(self, run: str, until: int) -> AsyncIterator[Told]:
        while (after := self.seen.get(run, self.after_seq)) < until:
            page = await self.bus.read(run, after, until)
            self.seen[run] = (page[-1].seq if page else None) or until
            for told in page:
                yield told

    def _ready(self) -> Iterable[Told]:
        journaled, count = self.bus.journaled, self.bus.count - self.position
        news = [journaled[place] for place in range(len(journaled) - count, len(journaled))]
        self.position += count
        self.seen.update((told.run, told.seq) for told in news if told.seq is not None)
        latest, self.latest = list(self.latest.values()), {}
        return [told for told in (*news, *latest) if self.run in {None, told.run}]


async def _nothing(_run: str, _after: int, _until: int) -> list[Told]:
    return []


class Bus:
    """The stream of all runs of one engine.

    Attributes:
        journaled: The newest events of all runs, in the order in which they were published.
        dropped: How many before them are only in the journals.
        gone: The number of the last of those, of each run.
    """

    def __init__(self, read: Read = _nothing, *, kept: int = KEPT) -> None:
        self.read = read
        self.journaled: deque[Told] = deque()
        self.dropped = 0
        self.gone: dict[str, int] = {}
        self.is_closed = False
        self._kept = kept
        self._subscriptions: set[Subscription] = set()

    @property
    def count(self) -> int:
        """Count the events that were ever published."""
        return self.dropped + len(self.journaled)

    def tell(self, told: Iterable[Told]) -> None:
        """Journaled events, in order."""
        self.journaled.extend(told)
        while len(self.journaled) > self._kept:
            old = self.journaled.popleft()
            self.dropped += 1
            self.gone[old.run] = old.seq or 0
        for subscription in self._subscriptions:
            subscription.wake.set()

    def mention(self, run: str, event: LatestWins, *, at: float, after: int) -> None:
        """An event of which only the newest counts."""
        if self._subscriptions:
            told = Told(run=run, at=at, event=event, after=after)
            for subscription in self._subscriptions:
                subscription.offer(told)

    async def subscribe(
        self, run: str | None = None, after_seq: int = 0
    ) -> AsyncGenerator[Told, None]:
        """Yield every event of a run (or of all) behind number `after_seq`, then the new ones."""
        with self._subscribed(run, after_seq) as subscription:
            while not subscription.is_over:
                if subscription.is_level:
                    await subscription.wake.wait()
                async for told in subscription.news():
                    yield told

    async def watch(
        self, look: Look, run: str | None = None, after_seq: int = 0
    ) -> AsyncGenerator[Told | ViewPatch, None]:
        """Yield the same events, and before them what is new of the views that they moved.

        Nobody looks more often than the pace allows, and only once what was found before is read:
        a slow reader and a flood of output both get the newest views. What no event announces is
        looked for at times.
        """
        due, is_moved = 0.0, False
        with self._subscribed(run, after_seq) as subscription:
            while True:
                if anyio.current_time() >= due:
                    is_moved, patch = False, look()
                    if patch is not None:
                        yield patch
                    due = anyio.current_time() + PACE_S
                async for told in subscription.news():
                    is_moved = True
                    yield told
                if subscription.is_over:
                    return
                if subscription.is_level:
                    pause = due - anyio.current_time() if is_moved else UNTOLD_S
                    with anyio.move_on_after(max(pause, 0.0)):
                        await subscription.wake.wait()
                        is_moved = True

    @contextmanager
    def _subscribed(self, run: str | None, after_seq: int) -> Iterator[Subscription]:
        subscription = Subscription(self, run, after_seq)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """No more will come; every subscriber reads what is left and ends."""
        self.is_closed = True
        for subscription in self._subscriptions:
            subscription.wake.set()

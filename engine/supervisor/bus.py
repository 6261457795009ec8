"""Telling observers: journalled events reach every one of them, the others only while they fit.

A subscriber that must see everything reads the run's own list of events at its own pace, so it can
never be overrun and nobody waits for it. Of the latest-wins events it gets the newest of a kind for
each worker, and the count of those it missed.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import anyio

from engine.events import LatestWins, Told


def _key(told: Told) -> tuple[str, str, str]:
    return (told.run, type(told.event).__name__, getattr(told.event, "worker", ""))


@dataclass(eq=False)
class Subscription:
    """One observer's place in the stream."""

    bus: "Bus"
    run: str | None
    position: int
    latest: dict[tuple[str, str, str], Told] = field(default_factory=dict)
    missed: int = 0
    wake: anyio.Event = field(default_factory=anyio.Event)

    def offer(self, told: Told) -> None:
        """Keep a latest-wins event until it is read; an older one of its kind gives way."""
        key = _key(told)
        self.missed += key in self.latest
        self.latest[key] = told
        self.wake.set()

    async def events(self) -> AsyncIterator[Told]:
        """Everything from this place on, until the bus is closed."""
        while True:
            self.wake = anyio.Event()
            for told in self._ready():
                yield told
            if self.bus.is_closed and self.position >= len(self.bus.journalled):
                return
            if not self.latest and self.position >= len(self.bus.journalled):
                await self.wake.wait()

    def _ready(self) -> Iterable[Told]:
        news = self.bus.journalled[self.position :]
        self.position += len(news)
        latest, self.latest = list(self.latest.values()), {}
        return [told for told in (*news, *latest) if self.run in {None, told.run}]


class Bus:
    """The stream of all runs of one engine."""

    def __init__(self) -> None:
        self.journalled: list[Told] = []
        self.is_closed = False
        self._subscriptions: set[Subscription] = set()

    def tell(self, told: Iterable[Told]) -> None:
        """Journalled events, in order."""
        self.journalled.extend(told)
        for subscription in self._subscriptions:
            subscription.wake.set()

    def mention(self, run: str, event: LatestWins, *, at: float, after: int) -> None:
        """An event of which only the newest counts."""
        if self._subscriptions:
            told = Told(run=run, at=at, event=event, after=after)
            for subscription in self._subscriptions:
                subscription.offer(told)

    async def subscribe(self, run: str | None = None, after_seq: int = 0) -> AsyncIterator[Told]:
        """Every event of a run (or of all) behind number `after_seq`, then the new ones."""
        subscription = Subscription(self, run, 0)
        self._subscriptions.add(subscription)
        try:
            async for told in subscription.events():
                if told.seq is None or told.seq > after_seq:
                    yield told
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """No more will come; every subscriber reads what is left and ends."""
        self.is_closed = True
        for subscription in self._subscriptions:
            subscription.wake.set()

"""Define a run as its workers' activities see it."""

from typing import Protocol

from engine.core.feed import RunFeed
from engine.ids import WorkerId
from engine.limits import LimitHit
from engine.work.logbook import Logbook
from engine.work.trouble import Troubles


class RunPort(RunFeed, Protocol):
    """A run, as the activities that act for it see it."""

    @property
    def troubles(self) -> Troubles:
        """Return what keeps the run from going on."""

    def new_logbook(self, worker: WorkerId, attempt: int) -> Logbook:
        """Return a fresh log for an attempt that is about to be watched."""

    async def recall(self, logbook: Logbook, worker: WorkerId) -> None:
        """Give a log back the remarks of an earlier engine, if the attempt was that engine's."""


class CountSpent(Protocol):
    """Counts what an attempt has used in all toward its login's day."""

    def __call__(self, *, at: float, usd: float | None, tokens: int | None) -> LimitHit | None:
        """Count the usage; return the day's budget if it is spent."""

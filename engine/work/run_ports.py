"""A run as its workers' activities see it."""

from typing import Protocol

from engine.core.feed import RunFeed
from engine.ids import WorkerId
from engine.limits import LimitHit
from engine.work.logbook import Logbook
from engine.work.trouble import Troubles


class RunPort(RunFeed, Protocol):
    """A run, as those see it who act for it."""

    @property
    def troubles(self) -> Troubles:
        """What keeps it from going on."""

    def new_logbook(self, worker: WorkerId, attempt: int) -> Logbook:
        """A fresh log for an attempt that is being watched."""

    async def recall(self, logbook: Logbook, worker: WorkerId) -> None:
        """Give a log back what an engine before this one remarked, if the attempt was its."""


class CountSpent(Protocol):
    """Counts what an attempt has used in all towards its login's day."""

    def __call__(self, *, at: float, usd: float | None, tokens: int | None) -> LimitHit | None:
        """The budget of the day, if it is spent."""

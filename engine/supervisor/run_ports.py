"""What the parts of the supervisor see of a run: its state, and ways to tell it something."""

from typing import Protocol

from engine.core.facts import Fact
from engine.core.state import RunState
from engine.events import LatestWins
from engine.ids import WorkerId
from engine.limits import LimitHit
from engine.supervisor.logbook import Logbook
from engine.supervisor.trouble import Troubles


class RunPort(Protocol):
    """A run, as those see it who act for it."""

    @property
    def state(self) -> RunState:
        """Where the run stands now."""

    @property
    def troubles(self) -> Troubles:
        """What keeps it from going on."""

    def feed(self, fact: Fact) -> None:
        """Tell the core what happened."""

    def mention(self, event: LatestWins) -> None:
        """Tell observers something of which only the newest counts."""

    def note(self, worker: WorkerId, attempt: int, text: str) -> None:
        """Write a remark of ours into an attempt's log."""

    def new_logbook(self, worker: WorkerId, attempt: int) -> Logbook:
        """A fresh log for an attempt that is being watched."""

    async def recall(self, logbook: Logbook, worker: WorkerId) -> None:
        """Give a log back what an engine before this one remarked, if the attempt was its."""


class CountSpent(Protocol):
    """Counts what an attempt has used in all towards its login's day."""

    def __call__(self, *, at: float, usd: float | None, tokens: int | None) -> LimitHit | None:
        """The budget of the day, if it is spent."""

"""A run as the rooms below it see it: its state, and ways to tell it something."""

from typing import Protocol

from engine.core.facts import Fact
from engine.core.state import RunState
from engine.ids import WorkerId
from engine.messages.events import LatestWins


class RunFeed(Protocol):
    """A run that is shown what happened."""

    @property
    def state(self) -> RunState:
        """Return the current state of the run."""

    def feed(self, fact: Fact) -> None:
        """Tell the core what happened."""

    def mention(self, event: LatestWins) -> None:
        """Tell observers something of which only the newest counts."""

    def note(self, worker: WorkerId, attempt: int, text: str) -> None:
        """Write a remark of ours into an attempt's log."""

"""The runs of a repository at a glance: when, how they stand, how they came out.

Plain values; a store fills them. It cannot know whether a run that is not over is still alive
somewhere: whoever asks knows if an engine lives.
"""

from dataclasses import dataclass
from enum import StrEnum

from engine.ids import RunId


class Standing(StrEnum):
    """How far a run has come, by its journal."""

    UNFINISHED = "unfinished"
    WAITING = "waiting"
    FINISHED = "finished"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of a list of runs.

    Attributes:
        id: The run.
        started: The moment it began, in wall-clock seconds.
        standing: How far it has come.
        verdict: The outcome that its last report names, where there is one.
        name: The name that its first event gives it.
        last: The time of its last event.
        problem: The reason why it cannot be read, if it cannot.
    """

    id: RunId
    started: float
    standing: Standing
    verdict: str | None = None
    name: str = ""
    last: float | None = None
    problem: str = ""

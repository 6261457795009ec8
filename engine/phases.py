"""Define the phases of a worker and the causes that stop it: the vocabulary alone.

The tables that say how one phase leads to another are `engine.core.phase`.
"""

from enum import StrEnum


class Phase(StrEnum):
    """The state of a worker."""

    WAITING = "WAITING"
    QUEUED = "QUEUED"
    PREPARING = "PREPARING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    COLLECTING = "COLLECTING"
    CHECKING = "CHECKING"
    REVIEWING = "REVIEWING"
    LANDING = "LANDING"
    CONFLICTED = "CONFLICTED"
    BACKING_OFF = "BACKING_OFF"
    LANDED = "LANDED"
    FINISHED = "FINISHED"
    DISCARDED = "DISCARDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"

    @property
    def is_settled(self) -> bool:
        """Return whether nothing more happens by itself; only a human's retry moves it."""
        return self in SETTLED

    @property
    def holds_slot(self) -> bool:
        """Return whether it counts against the cap; a human thinking holds no slot."""
        return self in HOLDING


SETTLED = frozenset(
    {
        Phase.LANDED,
        Phase.FINISHED,
        Phase.DISCARDED,
        Phase.FAILED,
        Phase.CANCELLED,
        Phase.SKIPPED,
    }
)
HOLDING = frozenset(
    {Phase.PREPARING, Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING, Phase.CHECKING}
)


class StopCause(StrEnum):
    """The reason why an attempt was stopped or failed."""

    USER = "USER"
    FAIL_FAST = "FAIL_FAST"
    RACE_LOST = "RACE_LOST"
    NOT_CHOSEN = "NOT_CHOSEN"
    BASE_GONE = "BASE_GONE"
    SHUTDOWN = "SHUTDOWN"
    TIMEOUT = "TIMEOUT"
    STALLED = "STALLED"
    MEMORY = "MEMORY"
    CPU = "CPU"
    DISK = "DISK"
    PIDS = "PIDS"
    OUTPUT = "OUTPUT"
    BUDGET = "BUDGET"
    KEEPER_LOST = "KEEPER_LOST"
    HOST_LOST = "HOST_LOST"
    CHECK = "CHECK"
    NO_CHANGE = "NO_CHANGE"
    DONE = "DONE"
    """It had said that it was done, and did not go: no fault, and in no result."""
    AGENT = "AGENT"
    SETUP = "SETUP"

    @property
    def settles_as(self) -> Phase:
        """Return CANCELLED if somebody decided it, FAILED if something went wrong."""
        return Phase.CANCELLED if self in _DECIDED else Phase.FAILED


_DECIDED = frozenset(
    {
        StopCause.USER,
        StopCause.FAIL_FAST,
        StopCause.RACE_LOST,
        StopCause.NOT_CHOSEN,
        StopCause.BASE_GONE,
        StopCause.SHUTDOWN,
    }
)

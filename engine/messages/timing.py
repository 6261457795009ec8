"""Define where the time of attempts and of the engine itself goes, and the questions for it."""

from engine.messages.questions import Ask
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class AttemptTimes:
    """The seconds of each stage of an attempt; None for one that it has not left, or not had.

    Attributes:
        began: When it was queued, in wall-clock seconds.
        queued: It waited for a slot.
        prepared: Its workspace was filled and set up.
        started: Its agent was started; a part of `worked`, as the next.
        first_output: Its agent had said nothing yet.
        worked: Its agent worked, or waited for answers.
        collected: Its work was kept on refs.
        checked: Its check ran.
        cpu: Processor seconds of its whole process tree, where they were measured.
    """

    worker: str
    attempt: int
    began: float
    queued: float | None = None
    prepared: float | None = None
    started: float | None = None
    first_output: float | None = None
    worked: float | None = None
    collected: float | None = None
    checked: float | None = None
    cpu: float | None = None


@dataclass(frozen=True)
class ReadTimes(Ask[tuple[AttemptTimes, ...]]):
    """Show where the time of each attempt of a run went; of the latest if none is named."""

    run: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineCosts:
    """The resources that plait itself uses, without those of agents.

    Attributes:
        at: The moment, in wall-clock seconds.
        pid: The engine's process.
        up: The seconds since it began.
        engine: Processor seconds of the engine's own process.
        programs: Those of git and other programs that it ran, and that have ended.
        keepers: Those of the processes that own attempts, as far as they live.
        attempts: The number of attempts that such a process owns.
        memory_mb: The memory of the engine's own process.
    """

    at: float
    pid: int
    up: float
    engine: float
    programs: float
    keepers: float
    attempts: int
    memory_mb: float


@dataclass(frozen=True)
class ReadCosts(Ask[EngineCosts]):
    """Show what plait itself uses here, all since its engine began."""

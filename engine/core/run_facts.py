"""Facts without a worker: what a human or the clock wants of a run as a whole."""

from dataclasses import dataclass

from engine.messages.roles import Speaker
from engine.phases import StopCause
from engine.plan.model import PlannedStep, PlannedWorker


@dataclass(frozen=True, kw_only=True)
class RunBegan:
    """The run is to start."""

    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CommandTaken:
    """A command was accepted; the facts that carry it out follow.

    Attributes:
        command: Its name.
        worker: The worker it names, as `step/worker_1`; empty where it names none.
    """

    command: str
    by: Speaker
    worker: str = ""
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunStopRequested:
    """Everything that has not settled is to stop.

    Attributes:
        stops_landings: Stop landings too that have not begun to move their target. Journals written
            before the field existed let them go on.
    """

    cause: StopCause = StopCause.USER
    is_kill: bool = False
    at: float = 0.0
    stops_landings: bool = False


@dataclass(frozen=True, kw_only=True)
class CapSet:
    """How many workers of this run may hold a slot from now on.

    Attributes:
        is_share: What several runs of one engine leave to this one, not what a human asked for.
    """

    cap: int
    is_share: bool = False
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PauseRequested:
    """Nothing new is to be dispatched."""

    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ResumeRequested:
    """Dispatching goes on."""

    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StepAdded:
    """A step joined the live run."""

    step: PlannedStep
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class WorkerAdded:
    """A worker joined a step of the live run."""

    planned: PlannedWorker
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LoginHeld:
    """Nobody of a login begins before that time; one that has passed lifts the hold.

    Attributes:
        login: As `AgentChoice.login` names it.
        cause: BUDGET where its budget of the day is spent; None where its vendor refuses.
        reason: Why, as a whole sentence.
    """

    login: str
    until: float
    cause: StopCause | None = None
    reason: str = ""
    at: float = 0.0

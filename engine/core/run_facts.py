"""List what happened to a run as a whole, beside the facts of its workers.

They stand in journals like those: a new field has a default, and none is renamed.
"""

from engine.ids import WorkerId
from engine.messages.asked import KeptAnswer
from engine.messages.results import Change, CheckResult
from engine.messages.roles import Speaker
from engine.phases import StopCause
from engine.plan.model import PlannedStep, PlannedWorker
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class RunFactBase:
    """A fact of the run as a whole."""

    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunBegan(RunFactBase):
    """The run is to start, with the answers that its repository kept."""

    rules: tuple[KeptAnswer, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandTaken(RunFactBase):
    """A command was accepted; the facts that carry it out follow.

    Attributes:
        worker: The worker it names, as `step/worker_1`; empty where it names none.
    """

    command: str
    by: Speaker
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class RunStopRequested(RunFactBase):
    """Everything that has not settled is to stop.

    Attributes:
        stops_landings: Stop landings too that do not move their target yet; older journals do not.
    """

    cause: StopCause = StopCause.USER
    is_kill: bool = False
    stops_landings: bool = False


@dataclass(frozen=True, kw_only=True)
class AnswerRevoked(RunFactBase):
    """An answer that was kept holds no more."""

    number: int


@dataclass(frozen=True, kw_only=True)
class CapSet(RunFactBase):
    """The number of workers that may hold a slot has changed.

    Attributes:
        is_share: What several runs of one engine leave to this one, not what a human asked for.
    """

    cap: int
    is_share: bool = False


@dataclass(frozen=True, kw_only=True)
class PauseRequested(RunFactBase):
    """Nothing new is to be dispatched."""


@dataclass(frozen=True, kw_only=True)
class ResumeRequested(RunFactBase):
    """Dispatching goes on."""


@dataclass(frozen=True, kw_only=True)
class StepAdded(RunFactBase):
    """A step joined the live run."""

    step: PlannedStep


@dataclass(frozen=True, kw_only=True)
class WorkerAdded(RunFactBase):
    """A worker joined a step of the live run."""

    planned: PlannedWorker


@dataclass(frozen=True, kw_only=True)
class LoginHeld(RunFactBase):
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


@dataclass(frozen=True, kw_only=True)
class CompositeWoven(RunFactBase):
    """A human wove a composite from hunks of a step's candidates, and its check passed.

    Attributes:
        planned: The composite, `step/woven`.
        attempt: One more than it had; 1 for the first.
        bases: What the candidates build on.
    """

    planned: PlannedWorker
    attempt: int
    change: Change
    check: CheckResult | None = None
    branch: str | None = None
    bases: tuple[tuple[WorkerId, int], ...] = ()

"""What the world or a human did: the only input of the core. Past tense; `at` is wall-clock time.

A worker's fact names the attempt it speaks of; one that speaks of an older attempt is dropped.
"""

from dataclasses import dataclass

from engine.ids import WorkerId
from engine.limits import Enforcement, LimitHit, Limits, Usage
from engine.phases import StopCause
from engine.plan.model import AgentChoice, PlannedStep, PlannedWorker, RetryMode
from engine.results import Change, CheckResult, Question


@dataclass(frozen=True, kw_only=True)
class _WorkerFact:
    worker: WorkerId
    attempt: int
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class WorkspaceReady(_WorkerFact):
    """The workspace is filled, set up, and the prompt is final."""

    workspace: str
    prompt: str
    feedback: str = ""
    branch: str | None = None
    base: str | None = None
    enforcement: tuple[Enforcement, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BaseConflicted(_WorkerFact):
    """The changes this worker builds on conflict with each other."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PrepareFailed(_WorkerFact):
    """The workspace could not be made or set up."""

    error: str


@dataclass(frozen=True, kw_only=True)
class AttemptEnded(_WorkerFact):
    """The agent is gone, with all its processes.

    Attributes:
        ok: The agent's own outcome by its adapter's rule.
        cause: Why it was ended from outside, if it was.
        needs_proof: A change or a passed check must show that it did something.
        retry_at: The agent ended because of a rate limit that ends then.
        needs_login: Its login was refused, or has run out.
        is_asleep: It lost its network, and the machine had just slept.
    """

    ok: bool
    text: str = ""
    error: str | None = None
    cause: StopCause | None = None
    limit: LimitHit | None = None
    session: str | None = None
    usage: Usage | None = None
    needs_proof: bool = False
    retry_at: float | None = None
    needs_login: bool = False
    is_asleep: bool = False


@dataclass(frozen=True, kw_only=True)
class ActivityEnded(_WorkerFact):
    """A preparation or a check that was to stop has stopped."""


@dataclass(frozen=True, kw_only=True)
class Collected(_WorkerFact):
    """What the attempt left is kept on its refs; None where it left nothing to merge."""

    change: Change | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class CheckPassed(_WorkerFact):
    """The check passed on the worker's own tree."""

    check: CheckResult


@dataclass(frozen=True, kw_only=True)
class CheckFailed(_WorkerFact):
    """The check failed, on the worker's own tree or on the one to be landed."""

    check: CheckResult


@dataclass(frozen=True, kw_only=True)
class Approved(_WorkerFact):
    """A human wants the change landed."""

    to: str | None = None
    style: str | None = None
    is_despite_check: bool = False


@dataclass(frozen=True, kw_only=True)
class ApprovalNoted(_WorkerFact):
    """A human marked the change as good; it lands later."""


@dataclass(frozen=True, kw_only=True)
class Rejected(_WorkerFact):
    """A human gave the change up."""


@dataclass(frozen=True, kw_only=True)
class Chosen(_WorkerFact):
    """A human chose this candidate of its step."""


@dataclass(frozen=True, kw_only=True)
class LandPrepared(_WorkerFact):
    """All is ready to move the target; from here on a landing is rolled forward, never stopped."""

    target: str
    old: str
    new: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Landed(_WorkerFact):
    """The change is on the target branch."""

    target: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class UndoRequested(_WorkerFact):
    """A human wants a landing taken back."""


@dataclass(frozen=True, kw_only=True)
class LandingUndone(_WorkerFact):
    """The target is as if the change had never landed."""

    target: str


@dataclass(frozen=True, kw_only=True)
class UndoRefused(_WorkerFact):
    """The landing could not be taken back; nothing was moved."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class ConflictsFound(_WorkerFact):
    """The change cannot be merged into the target without a human."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LandRefused(_WorkerFact):
    """The landing could not go on; nothing was moved."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Resolved(_WorkerFact):
    """A human resolved the conflicts.

    Attributes:
        tree: The result.
        onto: The commit of the target that it was resolved against; on any other it is void.
    """

    tree: str
    onto: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rechecked(_WorkerFact):
    """A human had the check run again, on the worker's own tree or on the one to be landed."""

    check: CheckResult
    is_for_landing: bool = True


@dataclass(frozen=True, kw_only=True)
class RetryRequested(_WorkerFact):
    """A human wants another attempt, with words about the last one or with a new prompt."""

    mode: RetryMode = RetryMode.FRESH
    feedback: str = ""
    prompt: str | None = None
    limits: Limits | None = None
    agent: AgentChoice | None = None


@dataclass(frozen=True, kw_only=True)
class BackoffElapsed(_WorkerFact):
    """The wait before the next attempt is over."""


@dataclass(frozen=True, kw_only=True)
class StopRequested(_WorkerFact):
    """The worker is to stop; a kill spares the grace."""

    cause: StopCause = StopCause.USER
    is_kill: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentAsked(_WorkerFact):
    """The agent waits for an answer."""

    question: Question


@dataclass(frozen=True, kw_only=True)
class HumanAnswered(_WorkerFact):
    """A human, or a rule, answered; `by` says who."""

    question: str
    answer: str
    by: str = "human"


@dataclass(frozen=True, kw_only=True)
class QuestionWithdrawn(_WorkerFact):
    """The agent no longer waits for this answer."""

    question: str


@dataclass(frozen=True, kw_only=True)
class AgentSteered(_WorkerFact):
    """A human said something to the running agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SteerUnheard(_WorkerFact):
    """What a human said did not reach the agent: it hears it when its session is taken up again."""

    text: str


@dataclass(frozen=True, kw_only=True)
class AgentInterrupted(_WorkerFact):
    """A human broke off what the agent was doing."""


@dataclass(frozen=True, kw_only=True)
class RateLimitSeen(_WorkerFact):
    """The agent waits for its vendor; None means it no longer does."""

    until: float | None


@dataclass(frozen=True, kw_only=True)
class StallSeen(_WorkerFact):
    """Nothing has moved for long (or again does): first a badge, then a question."""

    is_stalled: bool = True


@dataclass(frozen=True, kw_only=True)
class ViolationSeen(_WorkerFact):
    """Something changed that this worker must not reach."""

    path: str


@dataclass(frozen=True, kw_only=True)
class WorkerPaused(_WorkerFact):
    """A human froze the worker where it stands."""


@dataclass(frozen=True, kw_only=True)
class WorkerResumed(_WorkerFact):
    """A human let a frozen worker go on."""


@dataclass(frozen=True, kw_only=True)
class LimitsSet(_WorkerFact):
    """A human changed a worker's limits."""

    limits: Limits


WorkerFact = (
    WorkspaceReady
    | BaseConflicted
    | PrepareFailed
    | AttemptEnded
    | ActivityEnded
    | Collected
    | CheckPassed
    | CheckFailed
    | Approved
    | ApprovalNoted
    | Rejected
    | Chosen
    | LandPrepared
    | Landed
    | UndoRequested
    | LandingUndone
    | UndoRefused
    | ConflictsFound
    | LandRefused
    | Resolved
    | Rechecked
    | RetryRequested
    | BackoffElapsed
    | StopRequested
    | AgentAsked
    | HumanAnswered
    | QuestionWithdrawn
    | AgentSteered
    | SteerUnheard
    | AgentInterrupted
    | RateLimitSeen
    | StallSeen
    | ViolationSeen
    | WorkerPaused
    | WorkerResumed
    | LimitsSet
)


@dataclass(frozen=True, kw_only=True)
class RunBegan:
    """The run is to start."""

    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RunStopRequested:
    """Everything that has not settled is to stop."""

    cause: StopCause = StopCause.USER
    is_kill: bool = False
    at: float = 0.0


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
class CompositeWoven:
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
    at: float = 0.0


RunFact = (
    RunBegan
    | RunStopRequested
    | CapSet
    | PauseRequested
    | ResumeRequested
    | StepAdded
    | WorkerAdded
    | CompositeWoven
)
Fact = WorkerFact | RunFact

"""What the world or a human did: the only input of the core. Past tense; `at` is wall-clock time.

A worker's fact names the attempt it speaks of; one that speaks of an older attempt is dropped.
"""

from dataclasses import dataclass

from engine.core.fact_base import WorkerFactBase
from engine.core.run_facts import (
    CapSet,
    CommandTaken,
    LoginHeld,
    PauseRequested,
    ResumeRequested,
    RunBegan,
    RunStopRequested,
    StepAdded,
    WorkerAdded,
)
from engine.core.talk_facts import (
    AgentAsked,
    AgentInterrupted,
    AgentSteered,
    HumanAnswered,
    LimitsSet,
    QuestionWithdrawn,
    RateLimitSeen,
    StallSeen,
    SteerHeard,
    SteerUnheard,
    ViolationSeen,
    WorkerPaused,
    WorkerResumed,
)
from engine.ids import WorkerId
from engine.limits import Enforcement, LimitHit, Limits, Usage
from engine.messages.results import Change, CheckResult, Moment
from engine.phases import StopCause
from engine.plan.model import AgentChoice, PlannedWorker, RetryMode

__all__ = [
    "ActivityEnded",
    "AgentAsked",
    "AgentInterrupted",
    "AgentSteered",
    "ApprovalNoted",
    "Approved",
    "AttemptEnded",
    "BackoffElapsed",
    "BaseConflicted",
    "CapSet",
    "CheckFailed",
    "CheckPassed",
    "Chosen",
    "Collected",
    "CommandTaken",
    "CompositeWoven",
    "ConflictsFound",
    "HumanAnswered",
    "HunksLeftOut",
    "LandDelayed",
    "LandPrepared",
    "LandRefused",
    "Landed",
    "LandingUndone",
    "LimitsSet",
    "LoginHeld",
    "PauseRequested",
    "PrepareFailed",
    "QuestionWithdrawn",
    "RateLimitSeen",
    "Rechecked",
    "Rejected",
    "Resolved",
    "ResumeRequested",
    "RetryRequested",
    "RunBegan",
    "RunFact",
    "RunStopRequested",
    "StallSeen",
    "SteerHeard",
    "SteerUnheard",
    "StepAdded",
    "StopRequested",
    "UndoRefused",
    "UndoRequested",
    "ViolationSeen",
    "WorkerAdded",
    "WorkerFact",
    "WorkerPaused",
    "WorkerResumed",
    "WorkspaceReady",
]


@dataclass(frozen=True, kw_only=True)
class WorkspaceReady(WorkerFactBase):
    """The workspace is filled, set up, and the prompt is final."""

    workspace: str
    prompt: str
    feedback: str = ""
    branch: str | None = None
    base: str | None = None
    enforcement: tuple[Enforcement, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BaseConflicted(WorkerFactBase):
    """The changes this worker builds on conflict with each other."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PrepareFailed(WorkerFactBase):
    """The workspace could not be made or set up."""

    error: str


@dataclass(frozen=True, kw_only=True)
class AttemptEnded(WorkerFactBase):
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
class ActivityEnded(WorkerFactBase):
    """A preparation or a check that was to stop has stopped."""


@dataclass(frozen=True, kw_only=True)
class Collected(WorkerFactBase):
    """What the attempt left is kept on its refs; None where it left nothing to merge."""

    change: Change | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class CheckPassed(WorkerFactBase):
    """The check passed on the worker's own tree."""

    check: CheckResult


@dataclass(frozen=True, kw_only=True)
class CheckFailed(WorkerFactBase):
    """The check failed, on the worker's own tree or on the one to be landed."""

    check: CheckResult


@dataclass(frozen=True, kw_only=True)
class Approved(WorkerFactBase):
    """A human wants the change landed; `edits` says what is done about edits in its way.

    Attributes:
        result: The only tree that may land, because the human looked at it; None for any.
    """

    to: str | None = None
    style: str | None = None
    is_despite_check: bool = False
    edits: str = "refuse"
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class ApprovalNoted(WorkerFactBase):
    """A human marked the change as good; it lands later."""


@dataclass(frozen=True, kw_only=True)
class Rejected(WorkerFactBase):
    """A human gave the change up."""


@dataclass(frozen=True, kw_only=True)
class Chosen(WorkerFactBase):
    """A human chose this candidate of its step."""


@dataclass(frozen=True, kw_only=True)
class LandPrepared(WorkerFactBase):
    """All is ready to move the target; from here on a landing is rolled forward, never stopped."""

    target: str
    old: str
    new: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Landed(WorkerFactBase):
    """The change is on the target branch; `note` says why its history is not as was asked."""

    target: str
    old: str
    new: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class UndoRequested(WorkerFactBase):
    """A human wants a landing taken back."""


@dataclass(frozen=True, kw_only=True)
class LandingUndone(WorkerFactBase):
    """The target is as if the change had never landed.

    Attributes:
        new: Where the target stands now.
        is_added: A commit was added that does the opposite, because the target had gone on.
    """

    target: str
    new: str | None = None
    is_added: bool = False


@dataclass(frozen=True, kw_only=True)
class UndoRefused(WorkerFactBase):
    """The landing could not be taken back; nothing was moved."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class ConflictsFound(WorkerFactBase):
    """The change cannot be merged into the target without a human; `reason` says what is new."""

    paths: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class LandRefused(WorkerFactBase):
    """The landing could not go on; nothing was moved.

    Attributes:
        in_the_way: Files with edits of the user's, if it was for them.
    """

    reason: str
    in_the_way: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LandDelayed(WorkerFactBase):
    """The landing waits until the user's own edits in these files are out of its way."""

    in_the_way: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Resolved(WorkerFactBase):
    """A human resolved the conflicts.

    Attributes:
        tree: The result.
        onto: The commit of the target that it was resolved against; on any other it is void.
        is_despite_check: It is to land whatever the check says of it.
        is_seen: The human looked at this tree, so that no other may land in its place.
    """

    tree: str
    onto: str | None = None
    is_despite_check: bool = False
    is_seen: bool = False


@dataclass(frozen=True, kw_only=True)
class Rechecked(WorkerFactBase):
    """A human had the check run again, on the worker's own tree or on the one to be landed."""

    check: CheckResult
    is_for_landing: bool = True


@dataclass(frozen=True, kw_only=True)
class HunksLeftOut(WorkerFactBase):
    """A human decided which hunks of the change are not to land; none where all are to.

    Attributes:
        change: What is left, as a commit; the whole change where nothing is left out.
        hunks: Every hunk and file that is left out now, by its key.
    """

    change: Change
    hunks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RetryRequested(WorkerFactBase):
    """A human wants another attempt, with words about the last one or with a new prompt.

    Attributes:
        is_alone: Restart this worker only. Journals written before the field existed restart at
            once, with the worker, the siblings that fail-fast stopped.
    """

    mode: RetryMode = RetryMode.FRESH
    feedback: str = ""
    prompt: str | None = None
    limits: Limits | None = None
    agent: AgentChoice | None = None
    start: Moment | None = None
    is_alone: bool = False


@dataclass(frozen=True, kw_only=True)
class BackoffElapsed(WorkerFactBase):
    """The wait before the next attempt is over."""


@dataclass(frozen=True, kw_only=True)
class StopRequested(WorkerFactBase):
    """The worker is to stop; a kill spares the grace."""

    cause: StopCause = StopCause.USER
    is_kill: bool = False


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
    | LandDelayed
    | Resolved
    | Rechecked
    | HunksLeftOut
    | RetryRequested
    | BackoffElapsed
    | StopRequested
    | AgentAsked
    | HumanAnswered
    | QuestionWithdrawn
    | AgentSteered
    | SteerHeard
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
    | LoginHeld
    | PauseRequested
    | ResumeRequested
    | StepAdded
    | WorkerAdded
    | CompositeWoven
    | CommandTaken
)
Fact = WorkerFact | RunFact

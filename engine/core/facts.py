"""List what the world or a human did: the only input of the core. `at` is wall-clock time.

A worker's fact names the attempt it speaks of; one that speaks of an older attempt is dropped.
Facts stand in journals field by field: a new field has a default, and none is renamed.
"""

from dataclasses import fields
from typing import Self, TypedDict

from engine.core.run_facts import (
    AnswerRevoked,
    CapSet,
    CommandTaken,
    CompositeWoven,
    LoginHeld,
    PauseRequested,
    ResumeRequested,
    RunBegan,
    RunStopRequested,
    StepAdded,
    WorkerAdded,
)
from engine.ids import WorkerId
from engine.limits import Enforcement, LimitHit, Limits, Usage
from engine.messages.asked import AnswerScope, Question
from engine.messages.commands import LandWish
from engine.messages.results import Change, CheckResult, Holding, Moment
from engine.messages.roles import Speaker
from engine.phases import StopCause
from engine.plan.model import AgentChoice, RetryMode
from engine.values import dataclass


class Who(TypedDict):
    """The worker and attempt an effect is for: such effects begin with `**who`."""

    worker: WorkerId
    attempt: int


class About(Who):
    """The worker and attempt a fact speaks of, and its time: such facts begin with `**about`."""

    at: float


class Shown(TypedDict):
    """The worker and attempt an event tells of: such events begin with `**told`."""

    worker: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class WorkerFactBase:
    """A fact of one worker's attempt; one about an older attempt is dropped."""

    worker: WorkerId
    attempt: int
    at: float = 0.0


# -------------------------------------------------------------------- an attempt and its landing


@dataclass(frozen=True, kw_only=True)
class WorkspaceReady(WorkerFactBase):
    """The workspace is filled, set up, and the prompt is final.

    Attributes:
        workspace: Its path at its site, for people and for that site.
        made: The number of the attempt it was made for; 0 in older journals, where the path tells.
        site: The name of its site; empty for the engine's own machine.
        holds: The folders that it holds; None for the whole repository.
    """

    workspace: str
    prompt: str
    feedback: str = ""
    branch: str | None = None
    base: str | None = None
    enforcement: tuple[Enforcement, ...] = ()
    made: int = 0
    site: str = ""
    holds: Holding | None = None


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
        exit_code: That of its program; None if it did not exit by itself. Earlier versions did not
            note it.
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
    exit_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class ActivityEnded(WorkerFactBase):
    """A preparation or a check that was to stop has stopped."""


@dataclass(frozen=True, kw_only=True)
class Collected(WorkerFactBase):
    """The attempt's work is kept on its refs; None where it left nothing to merge."""

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
class Approved(LandWish, WorkerFactBase):
    """A human wants the change landed; journals hold each part of the wish by itself."""

    @classmethod
    def of(cls, wish: LandWish, about: About) -> Self:
        """Return the fact that a human has this wish."""
        return cls(**about, **vars(wish))

    @property
    def wish(self) -> LandWish:
        """Return how the human wants it landed."""
        return LandWish(**{part.name: getattr(self, part.name) for part in fields(LandWish)})


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
    """The change is on the target branch; `note` says what is not as was asked."""

    target: str
    old: str
    new: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class UndoRequested(WorkerFactBase):
    """A human wants a landing taken back.

    Attributes:
        by: Who wants it; earlier versions did not say.
    """

    by: Speaker | None = None


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
    """The landing could not go on; nothing was moved. Edits of the user's may be `in_the_way`."""

    reason: str
    in_the_way: tuple[str, ...] = ()
    is_carry_refused: bool = False


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
        is_despite_check: It lands although the check is known to fail on its tree.
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
    """A human left hunks out of the change (none of them: all of it lands), or edited a file of it.

    `change` is what lands now, `hunks` the keys of what is left out of `whole`. `edited` are all
    files in which that is not what was collected; both are None where no file was edited just now.
    """

    change: Change
    hunks: tuple[str, ...] = ()
    whole: Change | None = None
    edited: tuple[str, ...] | None = None


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


# -------------------------------------------------------------------- what is said meanwhile


@dataclass(frozen=True, kw_only=True)
class AgentAsked(WorkerFactBase):
    """The agent waits for an answer."""

    question: Question


@dataclass(frozen=True, kw_only=True)
class HumanAnswered(WorkerFactBase):
    """A human, or a rule, answered; `by` says who, `is_for_run` that it holds from now on.

    `scope` says for whom it is kept, `pattern` for which questions where not for this one alone.
    """

    question: str
    answer: str
    by: str = "human"
    is_for_run: bool = False
    scope: AnswerScope | None = None
    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class QuestionWithdrawn(WorkerFactBase):
    """The agent no longer waits for this answer."""

    question: str


@dataclass(frozen=True, kw_only=True)
class AgentSteered(WorkerFactBase):
    """A human said something to the running agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SteerHeard(WorkerFactBase):
    """Words of a human have reached the agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SteerUnheard(WorkerFactBase):
    """Words of a human did not reach the agent: it hears them when its session is resumed.

    Attributes:
        is_refused: It hears nothing as long as it works, whatever is resumed.
    """

    text: str
    is_refused: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentInterrupted(WorkerFactBase):
    """A human broke off what the agent was doing."""


@dataclass(frozen=True, kw_only=True)
class RateLimitSeen(WorkerFactBase):
    """The agent waits for its vendor; with neither end nor status, it no longer does.

    Attributes:
        until: When it asks again, where it says so.
        status: What the vendor's server answered, if it said.
    """

    until: float | None
    status: str = ""


@dataclass(frozen=True, kw_only=True)
class StallSeen(WorkerFactBase):
    """Nothing has moved for long (or again does): first a badge, then a question."""

    is_stalled: bool = True


@dataclass(frozen=True, kw_only=True)
class ViolationSeen(WorkerFactBase):
    """Something changed that this worker must not reach."""

    path: str


@dataclass(frozen=True, kw_only=True)
class TreeSeen(WorkerFactBase):
    """A running worker's files were looked at: its change so far, in figures."""

    change: Change


@dataclass(frozen=True, kw_only=True)
class WorkerPaused(WorkerFactBase):
    """A human froze the worker where it stands."""


@dataclass(frozen=True, kw_only=True)
class WorkerResumed(WorkerFactBase):
    """A human let a frozen worker go on."""


@dataclass(frozen=True, kw_only=True)
class LimitsSet(WorkerFactBase):
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
    | TreeSeen
    | WorkerPaused
    | WorkerResumed
    | LimitsSet
)
RunFact = (
    RunBegan
    | RunStopRequested
    | AnswerRevoked
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

"""List the public events for observers: past tense, one dataclass each.

Events that *must arrive* are journaled with the fact that caused them and carry a `seq`. The
others are *latest wins*: they may be coalesced and carry `after`, the last `seq` before them.
"""

from enum import StrEnum

from engine.limits import LimitHit, Usage
from engine.messages.asked import Question
from engine.messages.results import CheckResult, Clash, HistoryDelay, Outcome, RunReport, Trouble
from engine.messages.roles import Speaker
from engine.messages.served import Served
from engine.phases import Phase, StopCause
from engine.plan.model import Clamp
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """A run began, with this plan."""

    name: str
    steps: tuple[str, ...]
    workers: tuple[str, ...]
    cap: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clamped:
    """A figure of the manifest was cut to what is allowed."""

    clamp: Clamp


@dataclass(frozen=True, kw_only=True)
class Commanded:
    """A human or a program gave a command that was accepted; what it does follows.

    Attributes:
        command: Its name, such as `Land`.
        worker: The worker it names; empty where it is about the whole run.
        by: The role, process, user and terminal that gave it.
    """

    command: str
    by: Speaker
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class OfAttempt:
    """Begin an event of one attempt of a worker."""

    worker: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class WorkerMoved(OfAttempt):
    """A worker went from one phase to another."""

    before: Phase
    after: Phase
    cause: StopCause | None = None


@dataclass(frozen=True, kw_only=True)
class LimitHitSeen(OfAttempt):
    """A limit ended an attempt: which, what was allowed, what was seen."""

    hit: LimitHit


@dataclass(frozen=True, kw_only=True)
class RateLimitMet(OfAttempt):
    """An agent waits until its model takes requests again, and the HTTP status it got.

    Not every agent says until when: `until` is None for the others. Where a client does not
    report the status, that is `busy`.
    """

    until: float | None
    status: str


@dataclass(frozen=True, kw_only=True)
class Asked(OfAttempt):
    """A worker asks a human."""

    question: Question


@dataclass(frozen=True, kw_only=True)
class Answered(OfAttempt):
    """A human, or a rule, answered."""

    question: str
    answer: str
    by: str


class Delivery(StrEnum):
    """The fate of words that were said to a working agent."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class Steered(OfAttempt):
    """A human said something to a running agent, and what has become of it so far.

    It is queued, then delivered to the agent, or refused where the attempt does not hear it: then
    the next attempt gets it, and delivered follows.
    """

    text: str
    delivery: Delivery


@dataclass(frozen=True, kw_only=True)
class ChangeSeen(OfAttempt):
    """A running worker's files were looked at: its change so far, where that differs."""

    files: int
    insertions: int
    deletions: int


@dataclass(frozen=True, kw_only=True)
class ReviewWanted(OfAttempt):
    """A change waits for a human's review."""

    files: int
    insertions: int
    deletions: int


@dataclass(frozen=True, kw_only=True)
class ChoiceWanted:
    """A step waits for a human to choose between its candidates."""

    step: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConflictsFound(OfAttempt):
    """A change, or a base, cannot be merged without a human."""

    paths: tuple[str, ...]
    is_of_base: bool = False


@dataclass(frozen=True, kw_only=True)
class LandingDelayed(OfAttempt):
    """A landing waits until edits of the user's are out of its way, and goes on by itself then."""

    in_the_way: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LandingUndone(OfAttempt):
    """A landing was taken back.

    Attributes:
        new: Where the target stands now; None where it is gone again or not known.
        is_added: A commit was added that does the opposite, because the target had gone on.
    """

    target: str
    new: str | None = None
    is_added: bool = False


@dataclass(frozen=True, kw_only=True)
class UndoRefused(OfAttempt):
    """A landing could not be taken back: nothing was moved, and it stays landed."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class CheckFinished(OfAttempt):
    """A check came to an end, on the worker's tree or on the tree to be landed."""

    check: CheckResult
    is_for_landing: bool = False


@dataclass(frozen=True, kw_only=True)
class IsolationViolated(OfAttempt):
    """Something changed that this worker must not reach."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Landed(OfAttempt):
    """A change is on the target branch.

    Attributes:
        is_despite_check: A human overruled its check.
        note: A warning about the merge: what git left out, or why the history differs. Usually
            empty.
    """

    target: str
    old: str
    new: str
    is_despite_check: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkerSettled(OfAttempt):
    """A worker came to rest."""

    phase: Phase
    outcome: Outcome
    cause: StopCause | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class StepSettled:
    """A step's outcome is decided."""

    step: str
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class RunWaiting:
    """Nothing goes on by itself any more: a human is waited for."""

    report: RunReport


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """Every worker has settled."""

    report: RunReport


@dataclass(frozen=True, kw_only=True)
class OutputAppended(OfAttempt):
    """A worker wrote something; the bytes are in its recording."""

    offset: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolUsed(OfAttempt):
    """A worker's tool began or ended."""

    tool: str
    state: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class UsageSampled(OfAttempt):
    """A worker's usage so far."""

    usage: Usage


@dataclass(frozen=True, kw_only=True)
class ProgressReported(OfAttempt):
    """A worker's own report of its progress."""

    fraction: float | None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ClashPredicted:
    """Two workers, or a worker and the target, will conflict."""

    worker: str
    clashes: tuple[Clash, ...]


@dataclass(frozen=True, kw_only=True)
class ConflictsDecided(OfAttempt):
    """Something was decided about a worker's conflicts, taken back, or offered anew."""

    open_files: int
    open_hunks: int
    is_resolved: bool


@dataclass(frozen=True, kw_only=True)
class EgressDecided(OfAttempt):
    """A connection to the outside was let through or refused."""

    host: str
    is_allowed: bool


@dataclass(frozen=True, kw_only=True)
class OutsideChanged(OfAttempt):
    """Something that is not this worker's changed while it worked; it is not proved who did it.

    Attributes:
        paths: The first of them: files, and branches as `refs/…`.
        count: How many there are.
        remark: What is known about who may have done it.
    """

    paths: tuple[str, ...]
    count: int
    remark: str

    @property
    def path(self) -> str:
        """Return the first of the paths, and how many more there are."""
        first = next(iter(self.paths), "")
        return f"{first} and {self.count - 1} more" if self.count > 1 else first


@dataclass(frozen=True, kw_only=True)
class TroubleSeen:
    """Storage cannot be written, so the run stands still; None says that it goes on."""

    trouble: Trouble | None


@dataclass(frozen=True, kw_only=True)
class HistoryDelayed:
    """The shared history cannot be written; None says that it has everything again."""

    delay: HistoryDelay | None


MustArrive = (
    RunStarted
    | Clamped
    | Commanded
    | WorkerMoved
    | LimitHitSeen
    | RateLimitMet
    | Asked
    | Answered
    | Steered
    | ChangeSeen
    | ReviewWanted
    | ChoiceWanted
    | ConflictsFound
    | LandingDelayed
    | LandingUndone
    | UndoRefused
    | CheckFinished
    | IsolationViolated
    | Landed
    | WorkerSettled
    | StepSettled
    | RunWaiting
    | RunFinished
)
"""The events that carry a `seq` and are never dropped."""


@dataclass(frozen=True, kw_only=True)
class ProgramServed(OfAttempt):
    """A program that is served for a human is in another state; None where nothing is any more."""

    served: Served | None


LatestWins = (
    OutputAppended
    | ToolUsed
    | UsageSampled
    | ProgressReported
    | ClashPredicted
    | ConflictsDecided
    | EgressDecided
    | OutsideChanged
    | TroubleSeen
    | HistoryDelayed
    | ProgramServed
)
"""The events that carry no `seq`: a newer one of the same kind and worker replaces an older one."""
Event = MustArrive | LatestWins
"""Any event."""


def public_name(event: type[Event]) -> str:
    """Return the `type` that this event carries in JSON."""
    return "LimitHit" if event is LimitHitSeen else event.__name__


@dataclass(frozen=True, kw_only=True)
class Told:
    """An event with its place in a run: `seq` if it was journaled, else `after`."""

    run: str
    at: float
    event: Event
    seq: int | None = None
    after: int = 0

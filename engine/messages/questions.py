"""List the questions to an engine, each as a value that knows the type of its answer.

The port has one way to ask. Whoever adds a question writes it here, or beside its answer, and
answers it in `engine.run.answers`.
"""

from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar, get_args

from engine.ids import RunId
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.logs import LogChunk
from engine.messages.results import EngineView, Entrance, RunReport, RunView
from engine.messages.served import Served, ServedLog
from engine.plan.model import Plan
from engine.values import dataclass

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class Ask(Generic[A_co]):
    """A question to an engine. `A_co` is the type of its answer.

    Attributes:
        changes: A watcher may not ask it: answering it changes something, enters a sandbox, or
            gives bytes in which nobody looks for secrets.
    """

    changes: ClassVar[bool] = False


def answer_type(kind: type[Ask[Any]]) -> Any:
    """Return the type of the answer to a kind of question."""
    return next(get_args(base)[0] for base in kind.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]


def question_kinds() -> dict[str, type[Ask[Any]]]:
    """Return every kind of question that has been loaded, by name."""
    return {kind.__name__: kind for kind in Ask.__subclasses__()}


class Standing(StrEnum):
    """A run's progress, as its journal shows it."""

    UNFINISHED = "unfinished"
    WAITING = "waiting"
    FINISHED = "finished"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run in a list of runs.

    Attributes:
        started: Its start, in wall-clock seconds.
        standing: Its progress.
        verdict: The outcome in its last report, if there is one.
        name: Its name in its first event.
        last: The time of its last event.
        problem: Why plait cannot read it; empty if it can.
    """

    id: RunId
    started: float
    standing: Standing
    verdict: str | None = None
    name: str = ""
    last: float | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class CleanItem:
    """One workspace or branch: whether it may go, why it stays if it stays, and whether it went.

    Attributes:
        branch: The worker's branch, where the item is that.
        worker: Empty where a whole run goes from a site, and `run` where a site's mirror goes.
        is_for_good: It does not go to the trash.
    """

    run: str = ""
    worker: str = ""
    path: str
    reasons: tuple[str, ...] = ()
    was_removed: bool = False
    branch: str = ""
    is_for_good: bool = False

    @property
    def is_safe(self) -> bool:
        """Return whether every byte of it is kept elsewhere."""
        return not self.reasons


@dataclass(frozen=True, kw_only=True)
class TrashItem:
    """Something in the trash that can be brought back."""

    id: str
    origin: str
    at: float


@dataclass(frozen=True)
class ReadEngine(Ask[EngineView]):
    """Show everything a console needs at this moment."""


@dataclass(frozen=True)
class ReadRun(Ask[RunView]):
    """Show one run as it stands; the latest if none is named."""

    run: str = ""


@dataclass(frozen=True)
class ReadReport(Ask[RunReport]):
    """Report a run's results so far; of the latest run if none is named."""

    run: str = ""


@dataclass(frozen=True)
class ListRuns(Ask[tuple[RunSummary, ...]]):
    """List every run of the repository, newest first."""


@dataclass(frozen=True)
class ReadLog(Ask[LogChunk]):
    """Read a worker's log after a line; only the newest `most` lines, if that is given."""

    run: str
    worker: str
    attempt: int | None = None
    after: int = 0
    most: int | None = None


@dataclass(frozen=True)
class ReadDiff(Ask[ChangeDiff]):
    """Show what a worker's attempt has changed; of one that runs, so far.

    Attributes:
        against: Where it began if empty; or `target` (what landing it now would change there),
            another attempt (`@2`), or any revision.
        context: How many lines are reported round every change.
    """

    run: str
    worker: str
    attempt: int | None = None
    against: str = ""
    context: int = 3


@dataclass(frozen=True)
class ReadSides(Ask[tuple[FileSides, ...]]):
    """Read files of a change whole, both sides: for what no line of a diff can show.

    Attributes:
        paths: Which files, by their names in the diff; one that it does not have is left out.
    """

    changes: ClassVar[bool] = True
    run: str
    worker: str
    paths: tuple[str, ...]
    attempt: int | None = None
    against: str = ""


@dataclass(frozen=True)
class EnterSandbox(Ask[Entrance]):
    """Prepare to start a program inside a worker's sandbox, with its environment."""

    changes: ClassVar[bool] = True
    run: str
    worker: str


@dataclass(frozen=True)
class ServeWorker(Ask[Served]):
    """Start a worker's program for a human to look at; one that runs already goes on."""

    changes: ClassVar[bool] = True
    run: str
    worker: str


@dataclass(frozen=True)
class StopServing(Ask[bool]):
    """End the program that was started for a worker; say if there was one."""

    changes: ClassVar[bool] = True
    run: str
    worker: str


@dataclass(frozen=True)
class ReadServed(Ask[ServedLog]):
    """Read what a served program wrote behind a line; wait for news a while if there is none.

    Attributes:
        seen: The state that is known to whoever asks: another one is news.
    """

    run: str
    worker: str
    after: int = 0
    seen: Served | None = None


@dataclass(frozen=True)
class StartPlan(Ask[str]):
    """Begin a run; the answer is its id."""

    changes: ClassVar[bool] = True
    plan: Plan


@dataclass(frozen=True)
class ResumeRun(Ask[str]):
    """Resume a run that was interrupted; the answer is its id."""

    changes: ClassVar[bool] = True
    run: str


@dataclass(frozen=True)
class CleanUp(Ask[tuple[CleanItem, ...]]):
    """Take away every workspace that is provably not needed; the rest with the reason."""

    changes: ClassVar[bool] = True
    dry_run: bool = False


@dataclass(frozen=True)
class ListTrash(Ask[tuple[TrashItem, ...]]):
    """List what was removed and can be brought back."""


@dataclass(frozen=True)
class RestoreTrash(Ask[str]):
    """Bring something back from the trash; the answer is its path."""

    changes: ClassVar[bool] = True
    name: str


@dataclass(frozen=True)
class WaitIdle(Ask[None]):
    """Answer when nothing goes on but what waits for a human."""


@dataclass(frozen=True)
class LeaveEngine(Ask[None]):
    """Ask a detached engine to end once its consoles are gone."""

    changes: ClassVar[bool] = True

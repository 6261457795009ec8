"""Define a history: what it keeps of runs and attempts, and what it can be asked.

Times are wall-clock seconds. Every method may wait for a disk or a network, so call it in a thread.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.errors import StoreError
from engine.messages.statistics import Axis, Figures
from engine.store.store import JournalEntry
from engine.values import dataclass


class PieceRefused(StoreError):
    """A piece of one journal that the history cannot keep; those of other runs it can."""


@dataclass(frozen=True, kw_only=True)
class RunOrigin:
    """The place that runs come from.

    Attributes:
        repository: Its address without a scheme and without credentials, or the path of its folder.
        person: The name that git knows the user by, or else the login.
        host: The name of the machine.
    """

    repository: str
    person: str
    host: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run as a history keeps it.

    Attributes:
        uid: The run's name in all the world; `run` is unique in its repository only.
        outcome: As the run's own report says; `pending` while it goes on.
        seq: The number of the newest event of it that the history has.
    """

    uid: str
    run: str
    name: str
    repository: str
    person: str
    host: str
    began: float
    ended: float | None = None
    outcome: str = "pending"
    seq: int = 0


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """One attempt of one worker as a history keeps it.

    Attributes:
        week: The ISO week in which it began, such as `2026-W47`.
        ended: When its agent was gone.
        outcome: `success` counts the check, landed or not; `pending` while it is not known.
        check_passed: What its first check said.
        conflicts: How many files conflicted when its change was to land.
        hunks: How many hunks its change has; None where nobody counted them.
        kept: How many of them landed; None while nobody has decided about the change.
        left_out: How many of its hunks a human left out.
        review_s: How long its change waited for a human.
        reviewer: The login of whoever decided about it last.
        landed: The commit its target came to; None where it did not land, or was taken back.
    """

    worker: str
    attempt: int
    step: str
    agent: str = ""
    model: str = ""
    label: str = ""
    week: str = ""
    began: float = 0.0
    ended: float | None = None
    outcome: str = "pending"
    cause: str = ""
    check_passed: bool | None = None
    conflicts: int = 0
    hunks: int | None = None
    kept: int | None = None
    left_out: int = 0
    review_s: float = 0.0
    usd: float | None = None
    tokens: int | None = None
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    reviewer: str = ""
    target: str = ""
    landed: str | None = None
    error: str = ""
    prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class JournalPiece:
    """A piece of one run's journal, to be kept whole or not at all.

    Attributes:
        events: In order, without a gap; `run.seq` is the number of the last of them.
        attempts: Those that the piece changed, as they are behind it.
    """

    run: RunRecord
    events: Sequence[JournalEntry] = ()
    attempts: Sequence[AttemptRecord] = ()


@dataclass(frozen=True, kw_only=True)
class Query:
    """Everything that attempts are looked for by; what is empty does not count.

    Attributes:
        words: Each must begin a word of the prompt, the error, or of any name.
        of: The property that must be `name`, also where that is empty; None for any.
    """

    words: str = ""
    run: str = ""
    repository: str = ""
    person: str = ""
    agent: str = ""
    model: str = ""
    step: str = ""
    outcome: str = ""
    since: float | None = None
    until: float | None = None
    of: Axis | None = None
    name: str = ""
    most: int = 50


@dataclass(frozen=True, kw_only=True)
class Hit:
    """An attempt that was looked for, and its run."""

    run: RunRecord
    attempt: AttemptRecord


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The amount of what a history holds."""

    version: int
    runs: int
    attempts: int
    events: int
    newest: float | None


class HistoryDatabase(Protocol):
    """Many runs, of one person or of many.

    Attributes:
        name: A name for files, the same for the same history; it holds no secret.
    """

    name: str

    def up(self) -> tuple[int, int]:
        """Bring its tables to this program's version; return the version before and after.

        Raises:
            StoreError: It cannot be done here or by this role.
        """
        ...

    def seqs(self, uids: Sequence[str]) -> Mapping[str, int]:
        """Return up to which event it has each of these runs; those it lacks are left out."""
        ...

    def push(self, piece: JournalPiece) -> int:
        """Keep a piece of a journal; return up to which event the history now has the run.

        Events it has already are passed over: sending a piece again does no harm.

        Raises:
            PieceRefused: Events before these are missing, or it cannot keep such a piece at all.
            StoreError: Nothing can be written.
        """
        ...

    def search(self, query: Query) -> list[Hit]:
        """Return the attempts that match, the newest first."""
        ...

    def figures(self, axis: Axis, query: Query) -> list[Figures]:
        """Return the figures of those that match, those with most attempts first."""
        ...

    def events(self, uid: str, after: int = 0) -> list[JournalEntry]:
        """Return the events of a run behind a number, in order."""
        ...

    def extent(self) -> Extent:
        """Return how much it holds."""
        ...

    def prune(self, before: float) -> int:
        """Remove the events and attempts of runs that began before a moment; return how many.

        Such a run stays known by its name, so that nobody delivers it again.
        """
        ...

    def close(self) -> None:
        """Close its connection; the next call opens another one."""
        ...

"""Define the seam of the store: what the engine asks of whatever keeps its runs.

`engine.store.sqlite` keeps them in files beside the repository, and any other store may stand in
its place. A fact or an event is a kind and a JSON text here; what it means is for others. Every
method may wait for a disk or a network, so call it in a thread.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from engine.ids import RunId, WorkerId
from engine.messages.questions import RunSummary


class JournalEntry(NamedTuple):
    """One fact or event as it is kept; `seq` counts from 1 without gaps, each kind for itself."""

    seq: int
    at: float
    kind: str
    json: str


class RunJournal(Protocol):
    """The journal of one run, open: its plan, its facts, and the events they caused.

    Attributes:
        plan_json: The plan, as it was when the run was created.
        core_version: The version of the rules that wrote the facts.
        meta: Notes of the creator.
    """

    plan_json: str
    core_version: int
    meta: Mapping[str, str]

    def append(
        self,
        facts: Sequence[tuple[str, str]],
        events: Sequence[tuple[str, str]],
        *,
        at: float,
        durable: bool = False,
    ) -> list[int]:
        """Write facts and the events they caused, all or none; return the events' numbers.

        Args:
            facts: Kind and JSON text of each.
            events: Likewise.
            at: The moment, in wall-clock seconds.
            durable: Return only when a power cut could not take it any more.

        Raises:
            StoreError: They could not be written, and nothing of them is kept.
        """
        ...

    def facts(self, after: int = 0) -> Iterator[JournalEntry]:
        """Yield every fact behind number `after`, in order."""
        ...

    def events(self, after: int = 0) -> Iterator[JournalEntry]:
        """Yield every event behind number `after`, in order."""
        ...

    def copy(self, path: Path, kept: Mapping[str, str]) -> None:
        """Write the journal and some named texts into one SQLite file; nothing lies there yet.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    def close(self) -> None:
        """Close the journal; a second time does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Table(StrEnum):
    """The table a worker's row belongs to."""

    EVENTS = "events"
    USAGE = "usage"
    SAMPLES = "samples"
    NOTES = "notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One row to keep.

    Attributes:
        table: Where it belongs.
        at: The moment, in wall-clock seconds.
        kind: Its kind, by which `json` is read.
        json: Its content.
        offset: Where in the recording the piece begins that it was made from; None if it was made
            from something else.
    """

    table: Table = Table.EVENTS
    at: float
    kind: str
    json: str
    offset: int | None = None


class AgentEntry(NamedTuple):
    """One row as it is kept; `id` grows within a table."""

    id: int
    attempt: int
    offset: int | None
    at: float
    kind: str
    json: str


class AgentLog(Protocol):
    """One worker's events, usage, samples and notes, over all attempts.

    Every row with an offset is derived from a recording and could be made again. How far a
    recording was read is kept together with the rows, so that no line counts twice.
    """

    def record(self, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]) -> None:
        """Write rows and how far the recording was read, both or neither.

        Rows made from a part of the recording that was read before are passed over: sending a batch
        again does no harm. The offset never goes back.

        Raises:
            StoreError: They cannot be written, and nothing of them is kept.
        """
        ...

    def parsed_offset(self, attempt: int) -> int:
        """Return up to where this attempt's recording has been read.

        Raises:
            StoreError: Nothing was ever recorded of the worker, or it cannot be read.
        """
        ...

    def rows(self, table: Table, *, attempt: int | None = None) -> list[AgentEntry]:
        """Return the rows of one attempt, or of all, in order.

        Raises:
            StoreError: Nothing was ever recorded of the worker, or it cannot be read.
        """
        ...


class Store(Protocol):
    """Every run of one repository, and what its workers did."""

    def runs(self) -> list[RunSummary]:
        """Return every run, the newest first; those that cannot be read are among them."""
        ...

    def keep_summaries(self) -> None:
        """Write down what is known of the runs at a glance, so that the next process reads less."""
        ...

    def names(self) -> list[RunId]:
        """Return the name of every run, in no order; nothing of it is read."""
        ...

    def create(
        self, run: RunId, *, plan_json: str, core_version: int, meta: Mapping[str, str]
    ) -> RunJournal:
        """Start the journal of a new run.

        Raises:
            StoreError: There is one already, or it cannot be written.
        """
        ...

    def run(self, run: RunId, *, read_only: bool = False) -> RunJournal:
        """Open the journal of a run, to go on with or (beside its writer, too) only to read.

        Raises:
            NoSuchRun: There is none of that name.
            StoreError: It is damaged, foreign, or of another version of plait.
        """
        ...

    def stamp(self, run: RunId) -> Hashable:
        """Return a value that is another one as soon as something was added to a run's journal.

        Raises:
            NoSuchRun: There is none of that name.
        """
        ...

    def agent(self, run: RunId, worker: WorkerId) -> AgentLog:
        """Return the log of a worker; the first record makes it."""
        ...

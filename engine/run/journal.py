"""Journal one run in the core's own values: facts in, facts and events out."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

from engine.core.advance import advance
from engine.core.facts import Fact, LandPrepared
from engine.core.state import RunState, initial_state
from engine.errors import EngineBug, NoSuchRun, StoreError
from engine.ids import RunId
from engine.messages.events import MustArrive, Told
from engine.plan.model import Plan
from engine.store.codec import from_json, to_json
from engine.store.store import RunJournal, Store

CORE_VERSION = 2
"""Grows when the same facts lead to another state; an older journal is then only read."""
_MOST_TOLD = 1_000
"""Events that are read at once for a subscriber who is late."""


class Journal:
    """The facts and events of one run, on disk before anything is done about them."""

    def __init__(self, run: RunId, kept: RunJournal) -> None:
        self.run = run
        self._kept = kept
        self.plan = from_json(Plan, kept.plan_json)
        self.meta: Mapping[str, str] = kept.meta

    @classmethod
    def create(cls, run: RunId, store: Store, plan: Plan, meta: Mapping[str, str]) -> Self:
        """Begin the journal of a new run."""
        plan_json = to_json(plan)
        kept = store.create(run, plan_json=plan_json, core_version=CORE_VERSION, meta=meta)
        return cls(run, kept)

    @classmethod
    def open(cls, run: RunId, store: Store, *, read_only: bool = False) -> Self:
        """Open a journal to continue it, or only to read it.

        Raises:
            NoSuchRun: There is no run of that name.
            StoreError: It cannot be read.
        """
        return cls(run, store.run(run, read_only=read_only))

    @property
    def is_replayable(self) -> bool:
        """Return whether these facts lead where they led when they were written."""
        return self._kept.core_version == CORE_VERSION

    def append(
        self, fact: Fact, events: Sequence[MustArrive], *, at: float, written: str = ""
    ) -> list[Told]:
        """Write a fact and the events it caused; return the events with their numbers.

        Args:
            fact: The fact.
            events: What it caused.
            at: The moment, in wall-clock seconds.
            written: The fact as JSON, where that is known.

        Raises:
            UnstorableValue: An event cannot be written, now or later.
            StoreError: Nothing can be written now.
        """
        seqs = self._kept.append(
            [(type(fact).__name__, written or to_json(fact))],
            [(type(event).__name__, to_json(event)) for event in events],
            at=at,
            # The target moves right after this fact, so it must survive a power cut.
            durable=isinstance(fact, LandPrepared),
        )
        return [
            Told(run=self.run, at=at, event=event, seq=seq)
            for seq, event in zip(seqs, events, strict=True)
        ]

    def events(self) -> Iterator[Told]:
        """Yield every event so far."""
        for entry in self._kept.events():
            event = from_json(MustArrive, entry.json)
            yield Told(run=self.run, at=entry.at, event=event, seq=entry.seq)

    def replay(self) -> RunState:
        """Return the state its facts lead to.

        Raises:
            StoreError: they cannot be replayed; the events can still be read.
        """
        state = initial_state(self.run, self.plan)
        for _, reached in self.states():
            state = reached
        return state

    def states(self) -> Iterator[tuple[float, RunState]]:
        """Yield every state its facts lead through, and when each began.

        Raises:
            StoreError: they cannot be replayed; the events can still be read.
        """
        if not self.is_replayable:
            raise StoreError(f"the run {self.run} was written by another version of plait")
        state = initial_state(self.run, self.plan)
        try:
            for entry in self._kept.facts():
                state, _ = advance(state, from_json(Fact, entry.json))
                yield entry.at, state
        except EngineBug as error:
            raise StoreError(f"the journal of {self.run} is inconsistent: {error}") from error

    def close(self) -> None:
        """Close the journal."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def read_told(store: Store, run: str, after: int, until: int) -> list[Told]:
    """Return some of the events of a run behind one number, up to and with another."""
    from anyio import to_thread  # noqa: PLC0415  who only replays has no event loop

    return await to_thread.run_sync(_told_between, store, RunId(run), after, until)


def _told_between(store: Store, run: RunId, after: int, until: int) -> list[Told]:
    try:
        with store.run(run, read_only=True) as kept:
            entries = list(islice(kept.events(after), min(_MOST_TOLD, until - after)))
    except (NoSuchRun, StoreError):  # it was cleaned away: nobody can be told any more
        return []
    events = ((entry, from_json(MustArrive, entry.json)) for entry in entries)
    return [Told(run=run, at=entry.at, event=event, seq=entry.seq) for entry, event in events]

"""The journal of one run as the core's own values: facts in, facts and events out."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Self

import anyio.to_thread

from engine.core.advance import advance
from engine.core.facts import Fact, LandPrepared
from engine.core.state import RunState, initial_state
from engine.errors import EngineBug, StoreError
from engine.ids import RunId
from engine.messages.events import MustArrive, Told
from engine.plan.model import Plan
from engine.store.codec import from_json, to_json
from engine.store.database import PAGE_ROWS
from engine.store.layout import Layout
from engine.store.run_store import RunStore

CORE_VERSION = 2
"""Grows when the same facts lead to another state; an older journal is then only read."""


class Journal:
    """What happened to one run, on disk before anything is done about it."""

    def __init__(self, run: RunId, store: RunStore) -> None:
        self.run = run
        self._store = store
        self.plan = from_json(Plan, store.plan_json)
        self.meta: Mapping[str, str] = store.meta

    @classmethod
    def create(cls, run: RunId, path: Path, plan: Plan, meta: Mapping[str, str]) -> Self:
        """Begin the journal of a new run."""
        store = RunStore.create(path, plan_json=to_json(plan), core_version=CORE_VERSION, meta=meta)
        return cls(run, store)

    @classmethod
    def open(cls, run: RunId, path: Path, *, read_only: bool = False) -> Self:
        """Go on with a journal."""
        return cls(run, RunStore.open(path, read_only=read_only))

    @property
    def is_replayable(self) -> bool:
        """These facts lead where they led when they were written."""
        return self._store.core_version == CORE_VERSION

    def append(self, fact: Fact, events: Sequence[MustArrive], *, at: float) -> list[Told]:
        """Keep a fact and the events it caused, and say under which numbers."""
        seqs = self._store.append(
            [(type(fact).__name__, to_json(fact))],
            [(type(event).__name__, to_json(event)) for event in events],
            at=at,
            durable=isinstance(fact, LandPrepared),
        )
        return [
            Told(run=self.run, at=at, event=event, seq=seq)
            for seq, event in zip(seqs, events, strict=True)
        ]

    def events(self) -> Iterator[Told]:
        """Every event so far."""
        for entry in self._store.events():
            event = from_json(MustArrive, entry.json)
            yield Told(run=self.run, at=entry.at, event=event, seq=entry.seq)

    def replay(self) -> RunState:
        """The state its facts lead to.

        Raises:
            StoreError: they cannot be replayed; the events can still be read.
        """
        state = initial_state(self.run, self.plan)
        for _, reached in self.states():
            state = reached
        return state

    def states(self) -> Iterator[tuple[float, RunState]]:
        """Every state its facts lead through, and when each began.

        Raises:
            StoreError: they cannot be replayed; the events can still be read.
        """
        if not self.is_replayable:
            raise StoreError(f"the run {self.run} was written by another version of plait")
        state = initial_state(self.run, self.plan)
        try:
            for entry in self._store.facts():
                state, _ = advance(state, from_json(Fact, entry.json))
                yield entry.at, state
        except EngineBug as error:
            raise StoreError(f"the journal of {self.run} contradicts itself: {error}") from error

    def close(self) -> None:
        """Give the file back."""
        self._store.close()


async def read_told(layout: Layout, run: str, after: int, until: int) -> list[Told]:
    """Some of the events of a run behind one number, up to and with another."""
    return await anyio.to_thread.run_sync(_told_between, layout.run_db(RunId(run)), after, until)


def _told_between(path: Path, after: int, until: int) -> list[Told]:
    try:
        with RunStore.open(path, read_only=True) as store:
            entries = list(islice(store.events(after), min(PAGE_ROWS, until - after)))
    except StoreError:  # it was cleaned away: nobody can be told any more
        return []
    run = RunId(path.parent.name)
    events = ((entry, from_json(MustArrive, entry.json)) for entry in entries)
    return [Told(run=run, at=entry.at, event=event, seq=entry.seq) for entry, event in events]

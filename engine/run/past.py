"""Tell what journals know of runs that no engine works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from engine.errors import EngineBug, NoSuchRun
from engine.ids import RunId
from engine.messages.questions import A, Ask, ListRuns, ReadRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.core.state import RunState
    from engine.messages.questions import RunSummary
    from engine.messages.results import RunView
    from engine.store.store import Store


def replayed(run: RunId, store: Store) -> RunState:
    """Return a run's state from its journal.

    Raises:
        NoSuchRun: There is no run of that name.
        StoreError: Its journal cannot be read.
    """
    from engine.run.journal import Journal  # noqa: PLC0415  a list of runs needs no core

    with Journal.open(run, store, read_only=True) as journal:
        return journal.replay()


def run_named(name: str, runs: Sequence[RunSummary]) -> str:
    """Return the run that an id or a title means; the newest where none is named.

    Raises:
        NoSuchRun: Several have that title.
    """
    if not name or any(run.id == name for run in runs):
        return name or next((run.id for run in runs), "")
    found = tuple(run.id for run in runs if run.name.casefold() == name.casefold())
    if len(found) > 1:
        raise NoSuchRun(name, found)
    return found[0] if found else name


class Past:
    """The runs of a store as they stand; nothing is opened for writing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ask(self, question: Ask[A]) -> A:
        """Answer which runs there are, and how one stands; the newest where none is named.

        Raises:
            NoSuchRun: There is no run of that name.
            StoreError: Its journal cannot be read.
        """
        return cast("A", await anyio.to_thread.run_sync(self._answer, question))

    def _answer(self, question: Ask[Any]) -> object:
        match question:
            case ListRuns():
                return tuple(self._store.runs())
            case ReadRun():
                return self._view(question.run)
            case _:
                raise EngineBug(f"journals alone do not answer {type(question).__name__}")

    def _view(self, run: str) -> RunView:
        from engine.run.view import view_of  # noqa: PLC0415  a list of runs needs no core

        name = RunId(run_named(run, self._store.runs()))
        return view_of(replayed(name, self._store), {})

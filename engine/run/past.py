"""Tell what journals know of runs that no engine works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from engine.errors import EngineBug, NoSuchRun
from engine.ids import RunId
from engine.messages.questions import A, Ask, ListRuns, ReadRun
from engine.messages.timing import ReadTimes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.core.state import RunState
    from engine.messages.questions import RunSummary
    from engine.messages.results import RunView
    from engine.messages.timing import AttemptTimes
    from engine.store.layout import Layout
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

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout

    async def ask(self, question: Ask[A]) -> A:
        """Answer which runs there are, and how one stands; the newest where none is named.

        Raises:
            NoSuchRun: There is no run of that name.
            StoreError: Its journal cannot be read.
        """
        from anyio import to_thread  # noqa: PLC0415  who has no event loop asks without one

        return cast("A", await to_thread.run_sync(self.answer, question))

    def answer(self, question: Ask[Any]) -> object:
        """Answer the same without an event loop."""
        match question:
            case ListRuns():
                return tuple(self._store.runs())
            case ReadRun():
                return self._view(question.run)
            case ReadTimes():
                return self._times(question.run)
            case _:
                raise EngineBug(f"a journal cannot answer {type(question).__name__}")

    def _view(self, run: str) -> RunView:
        from engine.run.view import view_of  # noqa: PLC0415  a list of runs needs no core

        return view_of(replayed(self._named(run), self._store), {})

    def _times(self, run: str) -> tuple[AttemptTimes, ...]:
        from engine.run.timing import read_times  # noqa: PLC0415  few ask for that

        return read_times(self._store, self._layout, self._named(run))

    def _named(self, run: str) -> RunId:
        return (
            RunId(run) if run in self._store.names() else RunId(run_named(run, self._store.runs()))
        )

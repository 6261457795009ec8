"""A merge of the user's own, seen through a port: consoles show it as they show a worker's.

There is one run with one worker, and it is conflicted. Help comes as the merge itself gets it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, cast

from engine.bus import Bus
from engine.clock import Clock, SystemClock
from engine.errors import WorkspaceError
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages.commands import Command, Refused, Reply, ResolutionAction
from engine.messages.events import Told
from engine.messages.logs import LogChunk
from engine.messages.patches import Show
from engine.messages.questions import A, Ask
from engine.messages.results import EngineView, Outcome, RunView, StepView, WorkerView
from engine.phases import Phase
from engine.review.alone.local import MergeReview
from engine.review.desk import decided_event

RUN = "yours"
WORKER = "merge/worker_1"
NOTHING: Mapping[type[Ask[Any]], object] = {
    m.CheckTogether: m.BatchCheck(),
    m.ListMoments: (),
    m.PlanLandings: (),
    q.CleanUp: (),
    q.ListRuns: (),
    q.ListTrash: (),
    q.WaitIdle: None,
}
"""The answers where there is no run: nothing waits, nothing was kept."""


class ReviewPort:
    """An engine port over one merge and nothing else."""

    def __init__(self, merge: MergeReview, *, clock: Clock | None = None) -> None:
        self._merge = merge
        self._clock = clock or SystemClock()
        self._bus = Bus()
        self._began = self._clock.now()
        self._seen: m.ConflictView | None = None

    def helped(self) -> AbstractAsyncContextManager[None]:
        """Fetch help ahead as long as this is entered, and tell of it."""
        return self._merge.helped(self._mention)

    def _mention(self, view: m.ConflictView) -> None:
        told = decided_event(self._named(view))
        self._bus.mention(RUN, told, at=self._clock.now(), after=0)

    @property
    def is_finished(self) -> bool:
        """The result is in its place."""
        return self._seen is not None and self._seen.is_finished

    async def command(self, command: Command) -> Reply:
        """Refused: there is no agent to send anything to."""
        del command
        return Refused("there is no agent here: this is your own merge")

    async def ask(self, question: Ask[A]) -> A:
        """Answer what is about the merge; there is nothing else here."""
        answer: Any = await self._answer(question)
        return cast("A", answer)

    async def _answer(self, question: Ask[Any]) -> object:
        match question:
            case m.ReadConflicts():
                return await self._conflicts(question.path)
            case m.DecideConflict():
                return await self._decide(question.action)
            case q.ReadEngine():
                return await self._snapshot()
            case q.ReadRun():
                return await self._view()
            case q.ReadLog():
                return LogChunk(next_offset=question.after)
            case _ if type(question) in NOTHING:
                return NOTHING[type(question)]
            case _:
                raise WorkspaceError("this is your own merge: no agent takes part in it")

    def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Tell of each decision; the one view is asked for."""
        del show
        return self._bus.subscribe(run, after_seq)

    async def _conflicts(self, path: str) -> m.ConflictView:
        """Return the conflicts and what is decided; with the text of one file if it is named."""
        if self._seen is not None and self._seen.is_finished:
            return self._seen
        return self._named(await self._merge.conflicts(path))

    async def _decide(self, action: ResolutionAction) -> m.ConflictView:
        """Decide something, or put what is decided in its place."""
        view = self._named(await self._merge.resolve(action))
        self._mention(view)
        return view

    def _named(self, view: m.ConflictView) -> m.ConflictView:
        self._seen = replace(view, run=RUN, worker=WORKER, attempt=1)
        return self._seen

    async def _snapshot(self) -> EngineView:
        """The one merge."""
        view = await self._view()
        return EngineView(repository=self._merge.place, runs=(view,), at=self._clock.now())

    async def _view(self) -> RunView:
        """The merge as a run with one worker."""
        seen = self._seen or self._named(await self._merge.conflicts())
        outcome = Outcome.SUCCESS if seen.is_finished else Outcome.PENDING
        worker = WorkerView(
            worker=WORKER,
            step="merge",
            phase=Phase.FINISHED if seen.is_finished else Phase.CONFLICTED,
            phase_since=self._began,
            label=seen.doing,
            attempt=1,
            outcome=outcome,
            prompt=f"{seen.doing} of {seen.incoming} into {seen.target}",
            conflicts=tuple(file.path for file in seen.files),
        )
        step = StepView(
            name="merge", dependencies=(), outcome=outcome, workers=(worker,), merge="each"
        )
        return RunView(
            run=RUN,
            name=seen.doing,
            outcome=outcome,
            started_at=self._began,
            is_waiting=not seen.is_finished,
            cap=1,
            target=seen.target,
            steps=(step,),
        )

"""Two trees beside each other, seen through a port: consoles show them as a worker's change.

There is one run with one worker that has ended. Whatever needs agents is refused.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

from engine.bus import Bus
from engine.clock import Clock, SystemClock
from engine.errors import WorkspaceError
from engine.git.runner import Repo
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages.commands import Command, Refused, Reply
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Told
from engine.messages.logs import LogChunk
from engine.messages.patches import Show
from engine.messages.questions import A, Ask
from engine.messages.results import Change, EngineView, Outcome, RunView, StepView, WorkerView
from engine.phases import Phase
from engine.port.review_port import NOTHING, RUN, WORKER, ReviewPort
from engine.review.alone.local import MergeReview
from engine.review.diffs import change_diff, whole_sides
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Two trees or commits, one held against the other.

    Attributes:
        name: What is looked at, for people.
        said: What the old side is called.
        about: More of what is looked at: the words of a request.
        merge: The merge of both, where it has conflicts.
    """

    repo: Repo
    old: str
    new: str
    name: str
    said: str
    about: str = ""
    merge: MergeReview | None = None

    @property
    def place(self) -> str:
        """Return the working tree, or the repository if there is none."""
        return self.repo.worktree or self.repo.common_dir

    async def diff(self, context: int = 3) -> ChangeDiff:
        """Return what differs, with so many lines round every change."""
        sides = (self.old, self.new)
        return await change_diff(self.repo, *sides, against=self.said, context=context)


class DiffPort:
    """An engine port over one comparison, and its merge where that has conflicts."""

    def __init__(self, beside: Beside, *, clock: Clock | None = None) -> None:
        self._beside = beside
        self._clock = clock or SystemClock()
        self._bus = Bus()
        self._began = self._clock.now()
        self._merge = ReviewPort(beside.merge, clock=self._clock) if beside.merge else None

    async def command(self, command: Command) -> Reply:
        """Refused: no agent made this."""
        del command
        return Refused("no agent made this: you can only look at it")

    async def ask(self, question: Ask[A]) -> A:
        """Answer what is about the comparison, or about its merge."""
        answer: Any = await self._answer(question)
        return cast("A", answer)

    async def _answer(self, question: Ask[Any]) -> object:
        match question:
            case q.ReadDiff() | q.ReadSides():
                return await self._compared(question)
            case q.ReadEngine():
                view, is_bare = await self._view(), self._merge is None
                return EngineView(
                    repository=self._beside.place,
                    runs=(view,),
                    at=self._clock.now(),
                    is_read_only=is_bare,
                )
            case q.ReadRun():
                return await self._view()
            case q.ReadLog():
                return LogChunk(next_offset=question.after)
            case m.ReadConflicts() | m.DecideConflict() if self._merge:
                return await self._merge.ask(question)
            case _ if type(question) in NOTHING:
                return NOTHING[type(question)]
            case _:
                raise WorkspaceError("no agent made this: you can only look at it")

    async def _compared(self, question: q.ReadDiff | q.ReadSides) -> object:
        if question.against:
            raise WorkspaceError("the sides of this comparison are fixed")
        if isinstance(question, q.ReadDiff):
            return await self._beside.diff(question.context)
        sides = (self._beside.old, self._beside.new)
        return await whole_sides(self._beside.repo, sides, question.paths)

    def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Tell of each decision about the merge."""
        if self._merge is not None:
            return self._merge.events(after_seq, run=run, show=show)
        return self._bus.subscribe(run, after_seq)

    async def _view(self) -> RunView:
        """The comparison as a run with one worker."""
        beside = self._beside
        change = Change(head=beside.new, base=beside.old)
        if self._merge is not None:
            view = await self._merge.ask(q.ReadRun(RUN))
            (step,) = view.steps
            (worker,) = step.workers
            worker = replace(worker, change=change, prompt=beside.about, label=beside.name)
            return replace(view, name=beside.name, steps=(replace(step, workers=(worker,)),))
        worker = WorkerView(
            worker=WORKER,
            step="merge",
            phase=Phase.FINISHED,
            phase_since=self._began,
            label=beside.name,
            attempt=1,
            outcome=Outcome.SUCCESS,
            prompt=beside.about,
            change=change,
            ending=f"is compared with {beside.said}",
        )
        step = StepView(
            name="merge",
            dependencies=(),
            outcome=Outcome.SUCCESS,
            workers=(worker,),
            merge="each",
        )
        return RunView(
            run=RUN,
            name=beside.name,
            outcome=Outcome.SUCCESS,
            started_at=self._began,
            cap=1,
            steps=(step,),
        )

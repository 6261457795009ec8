"""A merge of the user's own, seen through a port: consoles show it as they show a worker's.

There is one run with one worker, and it is conflicted. Whatever needs agents is refused.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from engine.bus import Bus
from engine.clock import Clock, SystemClock
from engine.errors import WorkspaceError
from engine.messages.commands import Command, Refused, Reply, ResolutionAction, Seen
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Told
from engine.messages.logs import LogChunk
from engine.messages.results import (
    Change,
    CheckResult,
    EngineView,
    Entrance,
    Moment,
    Outcome,
    RunReport,
    RunView,
    StepView,
    WorkerView,
)
from engine.phases import Phase
from engine.plan.model import Plan
from engine.review.batch import BatchCheck
from engine.review.desk import decided_event
from engine.review.local import MergeReview
from engine.review.queue import LandingOrder, PlannedLanding
from engine.review.views import ConflictView
from engine.review.weaving import CandidateTable, Wove
from engine.store.history import RunSummary
from engine.work.cleaning import CleanItem, TrashItem

RUN = "yours"
WORKER = "merge/worker_1"


class ReviewPort:
    """An engine port over one merge and nothing else."""

    def __init__(self, merge: MergeReview, *, clock: Clock | None = None) -> None:
        self._merge = merge
        self._clock = clock or SystemClock()
        self._bus = Bus()
        self._began = self._clock.now()
        self._seen: ConflictView | None = None

    @property
    def is_finished(self) -> bool:
        """The result is in its place."""
        return self._seen is not None and self._seen.is_finished

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        """The conflicts and what is decided; with the text of one file if it is named."""
        del run, worker
        if self._seen is not None and self._seen.is_finished:
            return self._seen
        return self._named(await self._merge.conflicts(path))

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView:
        """Decide something, or put what is decided in its place."""
        del run, worker
        view = self._named(await self._merge.resolve(action))
        self._bus.mention(RUN, decided_event(view), at=self._clock.now(), after=0)
        return view

    def _named(self, view: ConflictView) -> ConflictView:
        self._seen = replace(view, run=RUN, worker=WORKER, attempt=1)
        return self._seen

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """A word after each decision."""
        return self._bus.subscribe(run, after_seq)

    async def snapshot(self) -> EngineView:
        """The one merge."""
        view = await self.view()
        return EngineView(repository=self._merge.place, runs=(view,), at=self._clock.now())

    async def view(self, run: str = "") -> RunView:
        """The merge as a run with one worker."""
        del run
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

    async def history(self) -> list[RunSummary]:
        """No runs."""
        return []

    async def trash(self) -> list[TrashItem]:
        """Nothing of a run."""
        return []

    async def wait_idle(self) -> None:
        """Nothing ever goes on by itself."""

    async def command(self, command: Command) -> Reply:
        """Refused: there is no agent to be told anything."""
        del command
        return Refused("there is no agent here: this is a merge of your own")

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: Seen | None = None
    ) -> CheckResult:
        """Refused: only steps of a run have a check."""
        del run, worker, is_own, seen
        _refuse()

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        """Nothing was written by anybody."""
        del run, worker, attempt, most
        return LogChunk(next_offset=after)

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """Refused: no worker changed anything."""
        del run, worker, attempt, against, context
        _refuse()

    async def enter(self, run: str, worker: str) -> Entrance:
        """Refused: there is no sandbox."""
        del run, worker
        _refuse()

    async def check_batch(self, run: str, workers: Sequence[str]) -> BatchCheck:
        """Nothing waits to land."""
        del run, workers
        return BatchCheck()

    async def landing_order(
        self, run: str, workers: Sequence[str], by: LandingOrder = LandingOrder.PLAN
    ) -> tuple[PlannedLanding, ...]:
        """Nothing waits to land."""
        del run, workers, by
        return ()

    async def candidates(self, run: str, step: str) -> CandidateTable:
        """Refused: there are none."""
        del run, step
        _refuse()

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff:
        """Refused: there is nobody to compare."""
        del run, one, other
        _refuse()

    async def moments(self, run: str, worker: str) -> tuple[Moment, ...]:
        """Nobody works."""
        del run, worker
        return ()

    async def leave_out(
        self, run: str, worker: str, hunks: Sequence[str], *, seen: Seen | None = None
    ) -> Change:
        """Refused: there is no change of a worker's."""
        del run, worker, hunks, seen
        _refuse()

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, Seen] | None = None,
    ) -> Wove:
        """Refused: there are no candidates."""
        del run, step, hunks, seen
        _refuse()

    async def start(self, plan: Plan) -> str:
        """Refused: it runs nothing."""
        del plan
        _refuse()

    async def resume(self, run: str) -> str:
        """Refused: it runs nothing."""
        del run
        _refuse()

    async def report(self, run: str = "") -> RunReport:
        """Refused: it runs nothing."""
        del run
        _refuse()

    async def clean(self, *, dry_run: bool = False) -> list[CleanItem]:
        """Nothing to clean."""
        del dry_run
        return []

    async def restore(self, name: str) -> str:
        """Refused: `plait restore` does that."""
        del name
        _refuse()


def _refuse() -> NoReturn:
    raise WorkspaceError("this is a merge of your own: no agent has a part in it")

"""Connect engine and screens: the only place where engine events become messages.

Patches come with the events: each is cleaned, applied to the view, and shown at the next frame,
sooner where more than output has moved. The whole view is asked for at first, after a patch was
lost, and at times for the figures of the machine. A port without patches is asked at every frame.
An engine that is gone is reported, not raised: agents go on without a console.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from textual.message import Message

from engine.errors import EngineError, whole_of
from engine.messages.commands import Command, Refused, Reply, ResolutionAction, Seen, Steer
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.events import (
    ChangeSeen,
    ConflictsDecided,
    Delivery,
    OutputAppended,
    Steered,
    Told,
    UsageSampled,
)
from engine.messages.explaining import ExplainCandidates, Explained
from engine.messages.logs import KEPT_LINES, LogChunk
from engine.messages.merging import (
    CheckWorker,
    CompareWorkers,
    DecideConflict,
    EditChange,
    FileRisk,
    FileText,
    LeaveOutHunks,
    ListCandidates,
    PlanLandings,
    ReadComposite,
    ReadConflicts,
    ReadRisks,
    ReadText,
    WeaveHunks,
)
from engine.messages.patches import ViewPatch, patched
from engine.messages.questions import (
    ListRuns,
    ReadDiff,
    ReadEngine,
    ReadLog,
    ReadRun,
    ReadSides,
    StartPlan,
)
from engine.messages.results import Change, CheckResult, EngineView, RunView, WorkerView
from engine.messages.statistics import CountAttempts, Figures
from tui.words.clean import clean_code_block, clean_line, clean_tree
from tui.words.shifted import keep_moves, moves_of

if TYPE_CHECKING:  # a type alone: a console on a socket needs none of what the front door imports
    from engine.api import CandidateTable, ConflictView, EnginePort, Plan, PlannedLanding, Wove

T = TypeVar("T")
_KEPT_EVENTS = 500
_KEPT_SAMPLES = 120
_SAMPLE_EVERY_S = 1.0
_LONGEST_PAUSE_S = 5.0
_SOON_S = 1 / 15
_CHUNKS_PER_FRAME = 20
_WHOLE_EVERY_S = 3.0
"""The greatest age of the figures of the machine."""
GONE = (EngineError, OSError, anyio.EndOfStream, anyio.ClosedResourceError)
"""The errors that a port raises when its engine cannot be reached any more."""


class PastRun(NamedTuple):
    """A run of the repository's history, whether the engine has it open or not."""

    run: str
    name: str
    started_at: float
    ended_at: float | None
    verdict: str
    standing: str
    problem: str = ""


class EngineMoved(Message):
    """There is a new view."""


LogName = tuple[str, str, int | None]
"""Whose log: the run, the worker, the attempt."""


class LogGrew(Message):
    """A log that is watched has new lines; `of` says which, for the eye may have gone on."""

    def __init__(self, of: LogName, chunk: LogChunk, *, is_new: bool) -> None:
        super().__init__()
        self.of = of
        self.chunk = chunk
        self.is_new = is_new


@dataclass
class Watched:
    """The log that is on screen, and how far it was read."""

    of: LogName
    offset: int = 0
    is_new: bool = True


@dataclass
class _CpuHistory:
    """Keep a worker's CPU time when it was last seen, and its shares since."""

    attempt: int
    seconds: float
    at: float
    shares: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT_SAMPLES))


class Bridge:
    """Keeps the newest view, the latest events and the cpu histories; tells when they moved."""

    def __init__(
        self,
        port: EnginePort | None,
        post: Callable[[Message], object],
        clock: Callable[[], float],
    ) -> None:
        self._port = port
        self._reached = anyio.Event()
        if port is not None:
            self._reached.set()
        self.view: EngineView | None = None
        self.told: deque[Told] = deque(maxlen=_KEPT_EVENTS)
        self.lost_since: float | None = None
        self.tries = 0
        self.pace_s = 0.25
        self.output_at: dict[str, float] = {}
        self._post = post
        self._clock = clock
        self._cpu: dict[str, _CpuHistory] = {}
        self._moved = anyio.Event()
        self._has_seen = anyio.Event()
        self._happened = anyio.Event()
        self._watched: Watched | None = None
        self._after_seq = 0
        self._next_patch: int | None = None
        """The number of the patch that comes next; None while the port has sent none."""
        self._patched_at = 0.0
        self._is_whole_due = True
        self._whole_at = 0.0
        self.decided: dict[tuple[str, str], int] = {}
        self.deliveries: dict[tuple[str, str, str], Delivery] = {}
        """The fate of words said to agents, by run, worker and text."""

    @property
    def port(self) -> EnginePort:
        """The engine; asking one that is not reached yet is like asking one that is gone."""
        if self._port is None:
            raise EngineError("the engine is not connected yet")
        return self._port

    def reach(self, port: EnginePort) -> None:
        """The engine is there: from now on it is listened to."""
        self._port = port
        self._reached.set()

    def cpu(self, run: str) -> dict[str, tuple[float, ...]]:
        """Each worker's latest shares of one core, in percent, oldest first."""
        lead = f"{run}/"
        return {
            name.removeprefix(lead): tuple(history.shares)
            for name, history in self._cpu.items()
            if name.startswith(lead)
        }

    def fresh(self, now: float) -> frozenset[str]:
        """The workers whose output came within the last half second."""
        return frozenset(worker for worker, at in self.output_at.items() if now - at < 0.5)  # noqa: PLR2004

    async def command(self, command: Command) -> Reply:
        """Hand a command on, and see what came of it; an engine that is gone refuses it.

        The view is new when this returns: whoever reads that it was done and presses the same key
        again means what is then on screen.
        """
        if isinstance(command, Steer):  # the same words may have been said and heard before
            self.deliveries.pop((command.run, command.worker, command.text), None)
        try:
            reply = await self.port.command(command)
            await self._see()
        except GONE as error:
            return Refused(reason=f"the engine did not answer: {clean_tree(str(error))}")
        self.nudge()
        return clean_tree(reply)

    async def start(self, plan: Plan) -> str | Refused:
        """Start a run, and see it; an engine that is gone refuses it, as one that cannot does."""
        try:
            run = await self.port.ask(StartPlan(plan))
            await self._see()
        except GONE as error:
            return Refused(reason=str(error), hint=getattr(error, "hint", ""))
        self.nudge()
        return run

    async def beside(self, work: Awaitable[T]) -> T | Refused:
        """Await what is done to the repository beside the engine, and see what came of it.

        What it refuses is said in the engine's own words.
        """
        try:
            done = await work
        except GONE as error:
            return Refused(reason=clean_tree(str(error)), hint=getattr(error, "hint", ""))
        with suppress(*GONE):
            await self._see()
        self.nudge()
        return done

    async def until(self, found: Callable[[EngineView], T | None]) -> T:
        """Wait until a view shows what is looked for, from the newest one on."""
        while True:
            seen = self._has_seen
            if self.view is not None and (answer := found(self.view)) is not None:
                return answer
            self.nudge()
            await seen.wait()

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff | str:
        """A worker's change against something; or, in words, why it cannot be shown."""
        try:
            found = await self.port.ask(
                ReadDiff(run, worker, attempt, against=against, context=context)
            )
            # A long one takes its time; the console goes on meanwhile.
            return await anyio.to_thread.run_sync(_cleaned_diff, found)
        except GONE as error:
            return f"the diff could not be read: {_why(error)}"

    async def sides(
        self,
        run: str,
        worker: str,
        paths: tuple[str, ...],
        *,
        attempt: int | None = None,
        against: str = "",
    ) -> tuple[FileSides, ...] | str:
        """Return files of a change whole, byte for byte; or, in words, why they cannot be had."""
        try:
            return await self.port.ask(ReadSides(run, worker, paths, attempt, against))
        except GONE as error:
            return _why(error)

    async def log(self, run: str, worker: str, after: int, *, most: int) -> LogChunk | str:
        """Return a worker's log after a line; or, in words, why it cannot be had."""
        try:
            chunk = await self.port.ask(ReadLog(run, worker, None, after, most=most))
        except GONE as error:
            return _why(error)
        return replace(chunk, lines=clean_tree(chunk.lines))

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView | str:
        """A worker's conflicts, byte for byte: what is sent back must name what is really there.

        Whoever draws them cleans them first. Words instead say why they cannot be had.
        """
        try:
            return await self.port.ask(ReadConflicts(run, worker, path))
        except GONE as error:
            return _why(error)

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView | str:
        """Decide something about a worker's conflicts; in words, why that was refused."""
        try:
            view = await self.port.ask(DecideConflict(run, worker, action))
            if view.is_finished:
                await self._see()  # what comes of it is waited for from this view on
        except GONE as error:
            return _why(error)
        self.nudge()
        return view

    async def check(self, run: str, worker: str, seen: Seen | None) -> CheckResult | str:
        """Run the check on the exact tree that would land now."""
        try:
            return clean_tree(await self.port.ask(CheckWorker(run, worker, seen=seen)))
        except GONE as error:
            return _why(error)

    async def landing_order(self, run: str, workers: Sequence[str]) -> tuple[PlannedLanding, ...]:
        """The order in which these would land, and what each would meet; nothing if not known."""
        try:
            return clean_tree(await self.port.ask(PlanLandings(run, workers)))
        except GONE:
            return ()

    async def candidates(self, run: str, step: str) -> CandidateTable | str:
        """The candidates of a step beside each other."""
        try:
            return clean_tree(await self.port.ask(ListCandidates(run, step)), clean_code_block)
        except GONE as error:
            return _why(error)

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff | str:
        """Return the differences between the changes of two workers."""
        try:
            found = await self.port.ask(CompareWorkers(run, one, other))
            return await anyio.to_thread.run_sync(_cleaned_diff, found)
        except GONE as error:
            return _why(error)

    async def leave_out(
        self, run: str, worker: str, hunks: tuple[str, ...], seen: Seen | None
    ) -> Change | str:
        """Let exactly these hunks stay behind when a change lands; the view is new then."""
        try:
            change = await self.port.ask(LeaveOutHunks(run, worker, hunks, seen=seen))
            await self._see()
        except GONE as error:
            return _why(error)
        self.nudge()
        return change

    async def text(self, run: str, worker: str, path: str) -> FileText | str:
        """Return a file of what would land, byte for byte; or, in words, why there is no text."""
        try:
            return await self.port.ask(ReadText(run, worker, path))
        except GONE as error:
            return _why(error)

    async def edit(self, run: str, worker: str, file: FileText, seen: Seen | None) -> Change | str:
        """Put another text into a file of a change that waits for review; the view is new then."""
        try:
            change = await self.port.ask(EditChange(run, worker, file, seen=seen))
            await self._see()
        except GONE as error:
            return _why(error)
        self.nudge()
        return change

    async def composite(self, run: str, step: str, hunks: tuple[str, ...]) -> ChangeDiff | str:
        """Return the diff of what hunks make together; or, in words, why they make nothing."""
        try:
            found = await self.port.ask(ReadComposite(run, step, hunks))
            return await anyio.to_thread.run_sync(_cleaned_diff, found)
        except GONE as error:
            return _why(error)

    async def risks(self, run: str, worker: str) -> tuple[FileRisk, ...] | str:
        """The files of a worker's change, those first that deserve the first look."""
        try:
            return await self.port.ask(ReadRisks(run, worker))
        except GONE as error:
            return _why(error)

    async def explain(self, run: str, step: str, *, stops: bool = False) -> Explained | str:
        """Return an agent's words about a step's candidates; or end that question."""
        try:
            return clean_tree(await self.port.ask(ExplainCandidates(run, step, stops)))
        except GONE as error:
            return _why(error)

    async def weave(
        self, run: str, step: str, hunks: tuple[str, ...], seen: Mapping[str, Seen]
    ) -> Wove | str:
        """Make a composite of hunks of a step's candidates, and check it."""
        try:
            wove = await self.port.ask(WeaveHunks(run, step, hunks, seen=seen))
        except GONE as error:
            return _why(error)
        self.nudge()
        return clean_tree(wove)

    async def past_view(self, run: str) -> RunView | str:
        """A run that is not open, as it stands; or, in words, why it cannot be shown."""
        try:
            return clean_tree(await self.port.ask(ReadRun(run)))
        except GONE as error:
            return _why(error)

    async def history(self) -> list[PastRun]:
        """Every run of the repository, newest first; none where the engine cannot be asked."""
        try:
            summaries = await self.port.ask(ListRuns())
        except GONE:
            return []
        return [
            clean_tree(
                PastRun(
                    run=str(past.id),
                    name=past.name,
                    started_at=past.started,
                    ended_at=past.last,
                    verdict=past.verdict or "",
                    standing=str(past.standing),
                    problem=past.problem,
                )
            )
            for past in summaries
        ]

    async def figures(self, question: CountAttempts) -> tuple[Figures, ...] | str:
        """Add up many attempts; or say, in words, why they cannot be counted.

        Names are as they are: the next question names one. Whoever draws them cleans them first.
        """
        try:
            return await self.port.ask(question)
        except GONE as error:
            return _why(error)

    def watch(self, run: str, worker: str, attempt: int | None = None) -> None:
        """Follow this log from its beginning, and no other."""
        of = (run, worker, attempt)
        if self._watched and self._watched.of == of:
            return
        self._watched = Watched(of)
        self.nudge()

    def unwatch(self) -> None:
        """Follow no log any more: what is hidden costs nothing."""
        self._watched = None

    def nudge(self) -> None:
        """Look again at the next frame."""
        self._moved.set()

    async def run(self) -> None:
        """Listen and look until cancelled, as soon as there is an engine."""
        await self._reached.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen)
            while True:
                self._happened = anyio.Event()
                await self._look()
                await anyio.sleep(min(self.pace_s, _SOON_S))
                with anyio.move_on_after(max(self.pace_s - _SOON_S, 0.0)):
                    await self._happened.wait()
                await self._moved.wait()
                self._moved = anyio.Event()

    async def _listen(self) -> None:
        """Take in events; when they end, look whether the engine is back, ever less often."""
        while True:
            self._next_patch, self._patched_at = None, 0.0
            try:
                async for told in self.port.events(self._after_seq, show=self._take_patch):
                    self._take(told)
                    self.nudge()
            except GONE:
                if self.lost_since is None:
                    self.lost_since = self._clock()
            self._is_whole_due = True
            self.nudge()
            self.tries += 1
            await anyio.sleep(min(0.25 * 2**self.tries, _LONGEST_PAUSE_S))

    def _take(self, told: Told) -> None:
        self.tries = 0
        if told.seq is not None:
            self._after_seq = max(self._after_seq, told.seq)
        if isinstance(told.event, OutputAppended):
            self.output_at[told.event.worker] = self._clock()
            return
        if isinstance(told.event, (UsageSampled, ChangeSeen)):
            return  # the view has the figures; among what happened they would only be noise
        self.told.append(clean_tree(told))
        self._happened.set()  # output can wait for its frame, a worker that has moved cannot
        if isinstance(told.event, Steered):
            said = told.event
            self.deliveries[told.run, said.worker, said.text] = said.delivery
        if isinstance(told.event, ConflictsDecided):
            key = (told.run, told.event.worker)
            self.decided[key] = self.decided.get(key, 0) + 1

    def _take_patch(self, patch: ViewPatch) -> None:
        """Apply a patch, unless the view has been asked for since that patch was made."""
        self.tries = 0
        if patch.number != (self._next_patch or 0):
            self._is_whole_due = True
        self._next_patch, self._patched_at = patch.number + 1, patch.at
        before = self.view
        if before is not None and patch.at >= before.at:
            view = patched(before, clean_tree(patch))
            self._show(view)
            if _seqs(view) != _seqs(before):
                self._happened.set()
        self.nudge()

    async def _look(self) -> None:
        try:
            is_old = self._clock() - self._whole_at >= _WHOLE_EVERY_S
            if self._is_whole_due or self._next_patch is None or is_old:
                await self._see()
            await self._read_log()
        except GONE:
            if self.lost_since is None:
                self.lost_since = self._clock()
        else:
            self.lost_since = None
        self._post(EngineMoved())

    async def _see(self) -> None:
        """Take the newest view; one that was overtaken by a newer one is dropped."""
        is_due, self._is_whole_due = self._is_whole_due, False
        try:
            view = clean_tree(await self.port.ask(ReadEngine()))
            if view.at >= max(self._patched_at, self.view.at if self.view else 0.0):
                is_due, self._whole_at = False, self._clock()
                self._show(view)
            elif is_due:  # a patch has overtaken it
                self.nudge()
        finally:
            self._is_whole_due |= is_due

    def _show(self, view: EngineView) -> None:
        self.view = view
        self._sample(view)
        self._has_seen.set()
        self._has_seen = anyio.Event()

    async def _read_log(self) -> None:
        for _ in range(_CHUNKS_PER_FRAME):
            watched = self._watched
            if watched is None:
                return
            chunk = await self.port.ask(ReadLog(*watched.of, watched.offset, most=KEPT_LINES))
            if watched is not self._watched or chunk.next_offset == watched.offset:
                return
            watched.offset = chunk.next_offset
            is_new, watched.is_new = watched.is_new, False
            self._post(
                LogGrew(watched.of, replace(chunk, lines=clean_tree(chunk.lines)), is_new=is_new)
            )
        self.nudge()

    def _sample(self, view: EngineView) -> None:
        now = view.at or self._clock()
        for run in view.runs:
            for worker in run.workers:
                self._sample_worker(f"{run.run}/{worker.worker}", worker, now)

    def _sample_worker(self, name: str, worker: WorkerView, now: float) -> None:
        seconds = worker.usage.cpu_seconds
        if seconds is None or not worker.phase.holds_slot:
            return
        history = self._cpu.get(name)
        if history is None or history.attempt != worker.attempt:
            self._cpu[name] = _CpuHistory(worker.attempt, seconds, now)
        elif now - history.at >= _SAMPLE_EVERY_S:
            share = max(seconds - history.seconds, 0.0) / (now - history.at) * 100
            history.shares.append(share)
            history.seconds, history.at = seconds, now


def _seqs(view: EngineView) -> list[tuple[str, int]]:
    return [(run.run, run.seq) for run in view.runs]


def _why(error: BaseException) -> str:
    """Return what an error says, as a reason to show."""
    return clean_tree(whole_of(error))


def _cleaned_diff(found: ChangeDiff) -> ChangeDiff:
    """A diff that may be shown; its hunks, and what moved, by what is really in them."""
    cleaned: ChangeDiff = clean_tree(found, clean_line)
    vars(cleaned)["keys"] = found.keys
    vars(cleaned)["paths"] = found.paths
    keep_moves(cleaned, moves_of(found))
    return cleaned

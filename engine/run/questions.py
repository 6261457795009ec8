"""What is asked of an engine about its runs: those it works on, and those that are long over.

Nothing here changes anything; a run that nobody works on is read from its journal.
"""

import math
from abc import ABC
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.core.report import report
from engine.core.state import RunState, Worker
from engine.errors import NoSuchRun, WorkspaceError
from engine.ids import AttemptId, RunId
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Told
from engine.messages.logs import LogChunk
from engine.messages.results import EngineView, Entrance, Machine, RunReport, RunView
from engine.review.comparing import Wanted
from engine.run.journal import Journal
from engine.run.judge import find_worker
from engine.run.live_run import LiveRun
from engine.run.merges import Merges
from engine.run.view import view_of
from engine.store.history import RunSummary, list_runs
from engine.work.cleaning import TrashItem, trash_items
from engine.work.entering import entrance
from engine.work.replay import log_from, read_log
from engine.work.tools import Tools

_Written = tuple[tuple[int, int], ...]
"""What tells a journal from what it was before: the sizes and times of its files."""


class Questions(Merges, ABC):
    """The runs of one engine, to be looked at."""

    def __init__(self, tools: Tools, tasks: TaskGroup) -> None:
        super().__init__(tools, tasks)
        self._runs: dict[RunId, LiveRun] = {}
        self._read: tuple[RunId, _Written, RunState] | None = None

    @property
    def runs(self) -> Mapping[RunId, LiveRun]:
        """The runs this engine works on, oldest first."""
        return self._runs

    def latest(self) -> LiveRun | None:
        """The run that was begun last."""
        return max(self._runs.values(), key=_began, default=None)

    def _find(self, name: str) -> LiveRun | None:
        return self._runs.get(RunId(name)) if name else self.latest()

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """What happened behind a number, then what happens."""
        return self._tools.bus.subscribe(run, after_seq)

    async def snapshot(self) -> EngineView:
        """Everything a console shows at this moment."""
        capacity = await self._tools.starter.host.capacity()
        return EngineView(
            repository=str(self._tools.project),
            runs=tuple(self._viewed(live) for live in self._runs.values()),
            machine=Machine(
                cores=capacity.cores,
                memory_mb=capacity.memory_mb,
                memory_available_mb=capacity.memory_available_mb,
                disk_free_mb=capacity.disk_free_mb,
            ),
            at=self._tools.clock.now(),
        )

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        """A worker's log from a line on, or its newest `most` lines: what is long ago is read anew.

        Raises:
            WorkspaceError: There is no such worker, or no such attempt of it.
        """
        state, found = await self._seen(run, worker)
        if not 0 <= (attempt or 0) <= found.attempt.number:
            raise WorkspaceError(f"{found.id} has had no attempt {attempt}")
        if not (number := attempt or found.attempt.number):
            return LogChunk(next_offset=after)
        read = partial(read_log, self._tools, state, AttemptId(state.run, found.id, number))
        kept = live.logbooks if (live := self._runs.get(state.run)) else {}
        logbook = kept.get((found.id, number)) or await read()
        logbook = kept.setdefault((found.id, number), logbook)  # or begun by now
        logbook.last_read = self._tools.clock.monotonic()
        return await log_from(logbook, after, most, read)

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """What a worker's attempt has changed; of one that runs, so far.

        It is held against where it began; or against `target` (what landing it now would change
        there), another attempt (`@2`), or any revision.

        Raises:
            WorkspaceError: There is no such worker, or nothing of it to compare.
        """
        state, found = await self._seen(run, worker)
        wanted = Wanted(attempt=attempt or found.attempt.number, against=against, context=context)
        return await self._tools.workshop.diff(state, found, wanted)

    async def enter(self, run: str, worker: str) -> Entrance:
        """What starts a program inside a worker's sandbox.

        Raises:
            WorkspaceError: There is no such worker, or no way in.
        """
        state, found = await self._seen(run, worker)
        return await entrance(self._tools, state, found)

    async def view(self, run: str = "") -> RunView:
        """One run as it stands, living or read from its journal."""
        live = self._find(run)
        if live is not None:
            return self._viewed(live)
        return view_of(await self._read_state(run), {})

    async def report(self, run: str = "") -> RunReport:
        """What a run has come to so far, living or read from its journal."""
        live = self._find(run)
        return report(live.state if live is not None else await self._read_state(run))

    async def history(self) -> list[RunSummary]:
        """Every run of the repository, newest first."""
        return await anyio.to_thread.run_sync(list_runs, self._tools.layout)

    async def trash(self) -> list[TrashItem]:
        """What was taken away and can be brought back."""
        return await anyio.to_thread.run_sync(trash_items, self._tools.layout.trash)

    async def _state_of(self, run: str) -> RunState:
        """A run's state, living or read from its journal."""
        live = self._find(run)
        return live.state if live else await self._read_state(run)

    async def _seen(self, run: str, worker: str) -> tuple[RunState, Worker]:
        """A run's state, living or read from its journal, and the worker that a name means there.

        Raises:
            WorkspaceError: There is no such worker.
        """
        run, command = split_run(c.Approve(worker=worker, run=run))
        state = await self._state_of(run)
        found = find_worker(state, getattr(command, "worker", worker))
        if isinstance(found, c.Refused):
            raise WorkspaceError(found.reason, hint=found.hint)
        return state, found

    async def _journal_path(self, run: RunId) -> Path:
        try:
            path = self._tools.layout.run_db(run)
        except ValueError:
            raise NoSuchRun(run) from None
        if not await anyio.to_thread.run_sync(path.is_file):
            raise NoSuchRun(run)
        return path

    async def _read_state(self, run: str) -> RunState:
        name = RunId(run) if run else next((s.id for s in await self.history()), RunId(""))
        path = await self._journal_path(name)
        written = await anyio.to_thread.run_sync(_written, path)
        # Whoever asks about one worker mostly asks about the next: a journal is replayed once.
        if self._read is not None and self._read[:2] == (name, written):
            return self._read[2]
        state = await anyio.to_thread.run_sync(_replayed, name, path)
        self._read = (name, written, state)
        return state


def _began(live: LiveRun) -> float:
    return math.inf if live.state.started_at is None else live.state.started_at


def _written(path: Path) -> _Written:
    files = (path, path.with_name(f"{path.name}-wal"))
    found = [file.stat() for file in files if file.exists()]
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in found)


def _replayed(run: RunId, path: Path) -> RunState:
    journal = Journal.open(run, path, read_only=True)
    try:
        return journal.replay()
    finally:
        journal.close()


def split_run(command: c.Command) -> tuple[str, c.Command]:
    """A command's run, also where it stands before the worker's name: `run/step/worker_1`."""
    worker = getattr(command, "worker", None)
    if command.run or worker is None or worker.count("/") < 2:  # noqa: PLR2004  run/step/worker
        return command.run, command
    run, _, rest = worker.partition("/")
    return run, replace(command, worker=rest)

"""Play a past run at any speed: an engine that only repeats what happened.

What stood at a moment is read from the journal; what was written until then from the recordings.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from os import PathLike, environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from engine.api.reaching import reach
from engine.core.state import RunState
from engine.errors import StoreError
from engine.ids import RunId
from engine.messages.commands import Command, Refused, Reply
from engine.messages.deeds import lately
from engine.messages.events import OutputAppended, Told
from engine.messages.logs import LogChunk, LogLine, LogLines, newest
from engine.messages.questions import A, Ask, ReadEngine, ReadLog, ReadRun
from engine.messages.results import EngineView, WorkerView
from engine.run.journal import Journal
from engine.run.view import view_of
from engine.site.place import find_place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.messages.patches import Show
    from engine.port.port import EnginePort
    from engine.store.store import Store

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)
_TICK_S = 0.1
_TAIL_LINES, _DEED_LINES = 12, 500


class Replay:
    """A run being played: a port for consoles, and the keys of a player.

    Whatever it does not tell from the past (a diff, the history) the engine behind it is asked for.
    """

    def __init__(
        self,
        port: EnginePort,
        repository: str,
        states: list[tuple[float, RunState]],
        told: list[Told],
    ) -> None:
        self._port = port
        self._repository = repository
        self.run = states[0][1].run
        self._states = states
        self._starts = [at for at, _ in states]
        self._told = told
        self.begin, self.end = self._starts[0], max(self._starts[-1], told[-1].at if told else 0.0)
        self.speed = 1.0
        self._at = self.begin
        self._since: float | None = time.monotonic()
        self._logs: dict[tuple[str, int], tuple[LogLine, ...]] = {}
        self._moved = anyio.Event()

    # The player.

    def now(self) -> float:
        """Return the moment that is shown, in wall-clock seconds of then."""
        if self._since is None:
            return self._at
        return min(self._at + (time.monotonic() - self._since) * self.speed, self.end)

    @property
    def is_playing(self) -> bool:
        """Return whether the replay goes on by itself."""
        return self._since is not None and self.now() < self.end

    def go_to(self, at: float) -> None:
        """Show another moment."""
        self._at = max(min(at, self.end), self.begin)
        if self._since is not None:
            self._since = time.monotonic()
        self._nudge()

    def play_or_hold(self) -> None:
        """Pause or play on; at the end, play again from the beginning."""
        at, was_playing = self.now(), self.is_playing
        self._since = None if was_playing else time.monotonic()
        self.go_to(at if was_playing or at < self.end else self.begin)

    def step(self) -> None:
        """Pause at the next thing that happened."""
        at = self.now()
        self._since = None
        later = bisect_right(self._starts, at)
        self.go_to(self._starts[later] if later < len(self._starts) else self.end)

    def faster(self, by: int) -> None:
        """Go so many gears faster, or slower."""
        at = self.now()
        gear = min(range(len(SPEEDS)), key=lambda index: abs(SPEEDS[index] - self.speed)) + by
        self.speed = SPEEDS[max(min(gear, len(SPEEDS) - 1), 0)]
        self.go_to(at)

    def _nudge(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    # The port.

    async def command(self, command: Command) -> Reply:
        """Refuse: nothing can be done about the past."""
        del command
        return Refused(reason="this is a replay; nothing in it can be changed")

    async def ask(self, question: Ask[A]) -> A:
        """Answer from the past what it tells; ask the engine behind it for the rest."""
        is_of_it = getattr(question, "run", "") in {"", self.run}
        answer: Any
        match question:
            case ReadEngine():
                answer = await self._snapshot()
            case ReadRun() if is_of_it:
                answer = (await self._snapshot()).runs[0]
            case ReadLog() if is_of_it:
                answer = await self._log(question)
            case _:
                return await self._port.ask(question)
        return cast("A", answer)

    async def _snapshot(self) -> EngineView:
        """Return everything as it was then; its `at` only tells which view is newer."""
        now = self.now()
        view = view_of(self._state(now), {})
        steps = [
            replace(step, workers=tuple([await self._seen(w, now) for w in step.workers]))
            for step in view.steps
        ]
        run = replace(view, steps=tuple(steps))
        return EngineView(
            repository=self._repository, runs=(run,), is_read_only=True, at=time.monotonic()
        )

    async def _log(self, question: ReadLog) -> LogChunk:
        """Return what had been written until then."""
        now = self.now()
        workers = view_of(self._state(now), {}).workers
        shown = next(w for w in workers if w.worker == question.worker)
        lines = await self._lines(question.worker, question.attempt or shown.attempt, now)
        return newest(lines, question.after, question.most)

    async def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Yield what happened, when its time comes; between, that time goes on."""
        del run, show
        told = [one for one in self._told if (one.seq or 0) > after_seq]
        while True:
            now, moved = self.now(), self._moved
            while told and told[0].at <= now:
                yield told.pop(0)
            tick = OutputAppended(worker="", attempt=0, offset=0)
            yield Told(run=self.run, at=now, event=tick)
            with anyio.move_on_after(_TICK_S if self.is_playing else None):
                await moved.wait()

    def _state(self, now: float) -> RunState:
        return self._states[max(bisect_right(self._starts, now) - 1, 0)][1]

    async def _seen(self, worker: WorkerView, now: float) -> WorkerView:
        if not worker.attempt:
            return worker
        lines = await self._lines(worker.worker, worker.attempt, now)
        tail = tuple(line.text for line in lines[-_TAIL_LINES:])
        pieces = LogLines.of(lines[-_DEED_LINES:]).pieces
        return replace(
            worker,
            last_lines=tail,
            lately=lately((p.at, p.kind, p.text, p.count) for p in reversed(pieces)),
            last_output_at=lines[-1].at if lines else None,
        )

    async def _lines(self, worker: str, attempt: int, now: float) -> tuple[LogLine, ...]:
        lines = self._logs.get((worker, attempt))
        if lines is None:
            chunk = await self._port.ask(ReadLog(self.run, worker, attempt))
            lines = self._logs[worker, attempt] = tuple(chunk.lines)
        return lines[: bisect_right(lines, now, key=lambda line: line.at)]


@asynccontextmanager
async def open_replay(folder: str | PathLike[str] = ".", run: str = "") -> AsyncIterator[Replay]:
    """Open a run of a folder's repository to be played again; the latest where none is named.

    Raises:
        NoSuchRun: There is none of that name.
        StoreError: Its journal cannot be replayed.
    """
    place = await find_place(Path(folder), dict(environ))
    async with reach(folder) as (port, _):
        name = RunId((await port.ask(ReadRun(run))).run)
        read = partial(_read_run, name, place.store)
        states, told = await anyio.to_thread.run_sync(read)
        yield Replay(port, str(place.project), states, told)


def _read_run(run: RunId, store: Store) -> tuple[list[tuple[float, RunState]], list[Told]]:
    """Do as `read_journal` does, for a run in a store."""
    with Journal.open(run, store, read_only=True) as journal:
        return read_journal(journal)


def read_journal(journal: Journal) -> tuple[list[tuple[float, RunState]], list[Told]]:
    """Return every state of a run that has begun, when each began, and every event.

    Raises:
        StoreError: It cannot be replayed, or it has not begun.
    """
    states = [(at, state) for at, state in journal.states() if state.started_at]
    if not states:
        raise StoreError(f"nothing has happened in the run {journal.run}")
    return states, list(journal.events())

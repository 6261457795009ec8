"""Keep what is known of the programs that an engine serves: where each is, how it is, what it said.

They live and die with the engine, so nothing of them is written down.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from engine.ids import RunId, WorkerId
from engine.messages.served import Served, ServedState

MOST_LINES = 2000
LONGEST = 4000
_SHOWN = 8


@dataclass(eq=False)
class Program:
    """One program that is served, or was until it ended by itself.

    Attributes:
        workspace: The folder it runs in, if that is the worker's own; it ends with it.
        told: Is called when something of its view has changed.
        count: How many lines it has written in all.
    """

    run: RunId
    worker: WorkerId
    view: Served
    workspace: str = ""
    told: Callable[["Program"], None] = lambda _: None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    count: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_over(self) -> bool:
        """Return whether nothing of it runs any more."""
        return self.view.state is ServedState.ENDED

    def move(self, **now: Any) -> None:
        """Change its view, and tell of it if that says something else."""
        view = replace(self.view, tail=tuple(self.lines)[-_SHOWN:], **now)
        if view != self.view:
            self.view = view
            self.told(self)
            self.wake()

    def say(self, line: str) -> None:
        """Add a line to what it wrote."""
        self.lines.append(line[:LONGEST])
        self.count += 1
        self.wake()

    def since(self, number: int) -> tuple[str, ...]:
        """Return the lines behind the first so many, as far as they are kept."""
        news = min(self.count - number, len(self.lines))
        return tuple(self.lines)[len(self.lines) - news :] if news > 0 else ()

    def wake(self) -> None:
        """Wake those who wait for news."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Return when there is news."""
        await self._changed.wait()

    async def stop(self) -> None:
        """End it, and wait until nothing of it is left."""
        self.scope.cancel()
        await self.done.wait()


class ServedPrograms:
    """All programs that one engine serves, at most one for each worker."""

    def __init__(self) -> None:
        self._programs: dict[tuple[RunId, WorkerId], Program] = {}

    def __iter__(self) -> Iterator[Program]:
        """Yield each of them."""
        return iter(tuple(self._programs.values()))

    @property
    def is_any_alive(self) -> bool:
        """Return whether something is served now."""
        return any(not one.is_over for one in self)

    def find(self, run: RunId, worker: WorkerId) -> Program | None:
        """Return the program of a worker."""
        return self._programs.get((run, worker))

    def of(self, run: RunId) -> Mapping[WorkerId, Served]:
        """Return what is served of a run, as consoles see it."""
        return {one.worker: one.view for one in self if one.run == run}

    def add(self, program: Program) -> None:
        """Keep a program in place of an earlier one of its worker."""
        self._programs[program.run, program.worker] = program

    async def stop(self, run: RunId, worker: WorkerId, *, workspace: str | None = None) -> bool:
        """End the program of a worker and forget it; say if there was one.

        With a workspace only one that runs in there is ended.
        """
        program = self.find(run, worker)
        if program is None or workspace not in {None, program.workspace}:
            return False
        await program.stop()
        if self.find(run, worker) is program:
            del self._programs[run, worker]
            program.told(program)
        return True

    async def stop_run(self, run: RunId) -> None:
        """End every program of a run."""
        for one in self:
            if one.run == run:
                await self.stop(run, one.worker)

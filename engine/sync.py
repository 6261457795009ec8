"""The library for programs without an event loop: scripts, notebooks, the prompt of an interpreter.

It has the names, arguments and results of `engine`, without `await`. The loop runs in a thread. An
interrupt (Ctrl-C) cancels the call that waits, and is raised when that call has ended.

A method here is made from the one in `engine`, so that both take and mean the same. Only iterators,
properties, and methods that take or return a class of this module are written by hand.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial, wraps
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from engine import api, library
from engine.api import Plan, PlanDefaults
from engine.library.agent import AgentWords
from engine.library.loops import LoopThread, nothing
from engine.library.replies import Turn
from engine.library.seats import LoopSeat
from engine.library.session import SessionWords
from engine.messages.events import Told

H = TypeVar("H")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., None])
P = ParamSpec("P")

__all__ = ["Agent", "Engine", "IsolatedAgentSession", "Run"]


class _Face(Generic[H]):
    """Stands for a twin from `engine`, which works in the loop of a thread."""

    def __init__(self, twin: H, thread: Callable[[], LoopThread[Any]]) -> None:
        self._twin = twin
        self._thread = thread

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._thread().wait(lambda _: work())


def _waits(
    method: Callable[Concatenate[H, P], Awaitable[T]],
) -> Callable[Concatenate[_Face[H], P], T]:
    """Make a method that waits for the twin's."""

    @wraps(method)
    def wait(self: _Face[H], /, *args: P.args, **words: P.kwargs) -> T:
        return self._wait(lambda: method(self._twin, *args, **words))

    return wait


def _calls(method: Callable[Concatenate[H, P], T]) -> Callable[Concatenate[_Face[H], P], T]:
    """Make a method that calls the twin's, which awaits nothing."""

    @wraps(method)
    def call(self: _Face[H], /, *args: P.args, **words: P.kwargs) -> T:
        return method(self._twin, *args, **words)

    return call


def _described_by(twin: Callable[..., Any]) -> Callable[[F], F]:
    """Show the words of the twin's constructor in help, with an engine of this module."""

    def describe(init: F) -> F:
        described = inspect.signature(twin)
        words = dict(described.parameters)
        words["engine"] = words["engine"].replace(annotation=Engine | None)
        init.__doc__ = twin.__doc__
        vars(init)["__signature__"] = described.replace(parameters=list(words.values()))
        return init

    return describe


class Run(_Face[api.Run]):
    """One run of an engine: wait for it, look at it."""

    @property
    def id(self) -> str:
        """Return its id."""
        return self._twin.id

    wait = _waits(api.Run.wait)
    report = _calls(api.Run.report)
    step = _calls(api.Run.step)


class Engine(_Face[api.Engine]):
    """An engine of this program; `with Engine.open(…) as engine`."""

    @classmethod
    @contextmanager
    def open(
        cls,
        folder: str | PathLike[str] = ".",
        *,
        max_workers: int | None = None,
        detach: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Self]:
        """Open an engine on a repository or a plain folder, as `engine.Engine.open` does."""
        opened = partial(
            api.Engine.open,
            folder,
            max_workers=max_workers,
            detach=detach,
            environment=environment,
        )
        thread = LoopThread(opened, after=None)
        try:
            yield cls(thread.wait(_itself), lambda: thread)
        finally:
            thread.close()
        if thread.failure is not None:
            raise thread.failure

    @property
    def guests(self) -> tuple[str, ...]:
        """Return the runs that other processes gave to this engine; their agents outlive it."""
        return self._wait(partial(_guests, self._twin))

    @property
    def project(self) -> Path:
        """Return the folder of its project."""
        return self._twin.project

    def start(
        self,
        plan: str | PathLike[str] | Mapping[str, Any] | Plan,
        *,
        pipeline: str | None = None,
        defaults: PlanDefaults | None = None,
    ) -> Run:
        """Start a run from a manifest's path or text, a dict, or a plan.

        Raises:
            SpecError: The manifest is wrong; every problem is named.
            PlanError: No plan can be made from it.
            MechanismMissing: Something it requires cannot be enforced here.
        """
        begin = partial(self._twin.start, plan, pipeline=pipeline, defaults=defaults)
        return Run(self._wait(begin), self._thread)

    def resume(self, run: str) -> Run:
        """Resume a run that was interrupted."""
        return Run(self._wait(partial(self._twin.resume, run)), self._thread)

    def events(self, after_seq: int = 0, *, run: str | None = None) -> Iterator[Told]:
        """Yield the events after `after_seq`, then each new one until the engine is closed."""
        stream = self._wait(partial(_begin, self._twin, after_seq=after_seq, run=run))
        while (told := self._wait(partial(_next, stream))) is not None:
            yield told

    ask = _waits(api.Engine.ask)
    command = _waits(api.Engine.command)
    database = _calls(api.Engine.database)
    diff = _waits(api.Engine.diff)
    history = _waits(api.Engine.history)
    land = _waits(api.Engine.land)
    unload = _waits(api.Engine.unload)
    log = _waits(api.Engine.log)
    release = _waits(api.Engine.release)
    resume_unfinished = _waits(api.Engine.resume_unfinished)
    snapshot = _waits(api.Engine.snapshot)
    view = _waits(api.Engine.view)
    wait_idle = _waits(api.Engine.wait_idle)
    wait_unneeded = _waits(api.Engine.wait_unneeded)


async def _itself(engine: api.Engine) -> api.Engine:
    return engine


async def _guests(engine: api.Engine) -> tuple[str, ...]:
    return engine.guests


async def _begin(engine: api.Engine, *, after_seq: int, run: str | None) -> AsyncIterator[Told]:
    return engine.events(after_seq, run=run)


async def _next(stream: AsyncIterator[Told]) -> Told | None:
    return await anext(stream, None)


@cache
def _loop() -> LoopThread[None]:
    """Return the loop that agents and sessions of programs without one share."""
    return LoopThread(nothing, after=None)


_FIRST = Lock()  # a cache lets two threads that are first at once make a loop each


def _shared() -> LoopThread[None]:
    with _FIRST:
        return _loop()


def _seat(engine: Engine | None) -> LoopSeat | None:
    return None if engine is None else LoopSeat(engine._thread())  # noqa: SLF001 - of this module


class Agent(_Face[library.Agent]):
    """A coding agent, as `engine.Agent`; closed by `close` or at the end of `with agent`.

    plait calls its subscribers, and the function that answers its questions, in another thread.
    """

    @_described_by(library.Agent.__init__)
    def __init__(
        self, name: str | None = None, *, engine: Engine | None = None, **words: Unpack[AgentWords]
    ) -> None:
        super().__init__(library.Agent(name, engine=_seat(engine), **words), _shared)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *told: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the workspace if every change is saved, and release the engine.

        If you use the agent again, it continues from the same changes, as a fork does.
        """
        self._wait(self._twin.aclose)

    @property
    def history(self) -> tuple[Turn, ...]:
        """Return the turns of this conversation, oldest first."""
        return self._twin.history

    def fork(self) -> Self:
        """Return an independent copy with the same history, tools, subscribers and settings.

        The copy starts from the tree of this agent's last turn, in its own workspace. Close it
        separately.
        """
        copy = object.__new__(type(self))
        _Face.__init__(copy, self._twin.fork(), self._thread)
        return copy

    continue_turn = _waits(library.Agent.continue_turn)
    land = _waits(library.Agent.land)
    prompt = _waits(library.Agent.prompt)
    run_parallel_prompts = _waits(library.Agent.run_parallel_prompts)
    subscribe = _calls(library.Agent.subscribe)


class IsolatedAgentSession(_Face[library.IsolatedAgentSession]):
    """One worker's workspace, as `engine.IsolatedAgentSession`; opened by `with`.

    plait calls its subscribers, and the function that answers its questions, in another thread.
    """

    @_described_by(library.IsolatedAgentSession.__init__)
    def __init__(
        self, name: str, *, engine: Engine | None = None, **words: Unpack[SessionWords]
    ) -> None:
        twin = library.IsolatedAgentSession(name, engine=_seat(engine), **words)
        super().__init__(twin, _shared)

    def __enter__(self) -> Self:
        self._wait(self._twin.__aenter__)
        return self

    def __exit__(self, *told: object) -> None:
        self._wait(self._twin.__aexit__)

    @property
    def name(self) -> str:
        """Return its name."""
        return self._twin.name

    @property
    def workspace(self) -> Path:
        """Return the folder of its workspace."""
        return self._twin.workspace

    @property
    def branch(self) -> str | None:
        """Return the branch that holds its work; None in a plain folder."""
        return self._twin.branch

    @property
    def db_path(self) -> Path:
        """Return its own SQLite database: events, usage and notes."""
        return self._twin.db_path

    @property
    def worker(self) -> str:
        """Return its name in the engine, `run/step/worker_1`."""
        return self._twin.worker

    land = _waits(library.IsolatedAgentSession.land)
    run = _waits(library.IsolatedAgentSession.run)

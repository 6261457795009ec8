"""The library for programs without an event loop: scripts, notebooks, the prompt of an interpreter.

The same names as in `engine`, with the same words; what is awaited there returns here. The loop
runs in a thread. An interrupt (Ctrl-C) cancels what is waited for, and is raised when that ended.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypeVar, Unpack

from engine import api, library
from engine.api import PlanDefaults
from engine.library.agent import AgentWords
from engine.library.listening import Subscriber
from engine.library.loops import LoopThread, nothing
from engine.library.replies import Reply, Turn
from engine.library.seats import LoopSeat
from engine.library.session import SessionWords, Work
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Landed, Told
from engine.messages.logs import LogChunk
from engine.messages.questions import RunSummary
from engine.messages.results import EngineView, RunReport, RunView, StepResult
from engine.patterns import Outcome as Ended
from engine.patterns import Progress
from engine.plan.model import Plan

T = TypeVar("T")

__all__ = ["Agent", "Engine", "IsolatedAgentSession", "Run"]


class Engine:
    """An engine of this program; `with Engine.open(…) as engine`."""

    def __init__(self, thread: LoopThread[api.Engine]) -> None:
        self._thread = thread

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
        """An engine on a repository or a plain folder, as `engine.Engine.open` opens it."""
        opened = partial(
            api.Engine.open,
            folder,
            max_workers=max_workers,
            detach=detach,
            environment=environment,
        )
        thread = LoopThread(opened, after=None)
        try:
            yield cls(thread)
        finally:
            thread.close()
        if thread.failure is not None:
            raise thread.failure

    def start(
        self,
        plan: str | PathLike[str] | Mapping[str, Any] | Plan,
        *,
        pipeline: str | None = None,
        defaults: PlanDefaults | None = None,
    ) -> "Run":
        """Begin a run from a manifest's path or text, from a dict, or from a plan."""
        begun = self._do(lambda e: e.start(plan, pipeline=pipeline, defaults=defaults))
        return Run(self._thread, begun)

    def resume(self, run: str) -> "Run":
        """Take up a run that was interrupted."""
        return Run(self._thread, self._do(lambda e: e.resume(run)))

    def command(self, command: c.Command) -> c.Reply:
        """Ask for something; it is accepted, or refused with a reason."""
        return self._do(lambda e: e.command(command))

    def land(
        self,
        worker: str,
        *,
        to: str | None = None,
        style: str | None = None,
        despite_check: bool = False,
    ) -> Landed | c.Conflicted | c.Refused:
        """Move a worker's change onto its target, and wait for what becomes of that."""
        return self._do(lambda e: e.land(worker, to=to, style=style, despite_check=despite_check))

    def events(self, after_seq: int = 0, *, run: str | None = None) -> Iterator[Told]:
        """What happened behind a number, then what happens, until the engine is closed."""
        stream = self._do(partial(_begin, after_seq=after_seq, run=run))
        while (told := self._do(lambda _: anext(stream, None))) is not None:
            yield told

    def snapshot(self) -> EngineView:
        """Everything a console shows at this moment."""
        return self._do(lambda e: e.snapshot())

    def view(self, run: str = "") -> RunView:
        """One run as it stands; the latest where none is named."""
        return self._do(lambda e: e.view(run))

    def log(self, run: str, worker: str, attempt: int | None = None, after: int = 0) -> LogChunk:
        """A worker's log from a line on."""
        return self._do(lambda e: e.log(run, worker, attempt, after))

    def diff(self, run: str, worker: str, attempt: int | None = None) -> ChangeDiff:
        """What a worker's attempt changed, once it is collected."""
        return self._do(lambda e: e.diff(run, worker, attempt))

    def history(self) -> list[RunSummary]:
        """Every run of the repository, newest first."""
        return self._do(lambda e: e.history())

    def wait_idle(self) -> None:
        """Return when nothing goes on but what waits for a human."""
        self._do(lambda e: e.wait_idle())

    def _do(self, act: Callable[[api.Engine], Awaitable[T]]) -> T:
        return self._thread.wait(act)


async def _begin(engine: api.Engine, *, after_seq: int, run: str | None) -> Any:
    return engine.events(after_seq, run=run)


class Run:
    """One run of an engine: wait for it, look at it."""

    def __init__(self, thread: LoopThread[api.Engine], run: api.Run) -> None:
        self._thread = thread
        self._run = run

    @property
    def id(self) -> str:
        """Its id."""
        return self._run.id

    def wait(self) -> RunReport:
        """The report, once every worker has settled or a human is waited for."""
        return self._thread.wait(lambda _: self._run.wait())

    def report(self) -> RunReport:
        """What it has come to so far."""
        return self._run.report()

    def step(self, name: str) -> StepResult:
        """What one step has come to so far."""
        return self.report().steps[name]


@cache
def _loop() -> LoopThread[None]:
    """The loop that agents and sessions of programs without one share."""
    return LoopThread(nothing, after=None)


_FIRST = Lock()  # a cache lets two threads that are first at once make a loop each


def _now(work: Callable[[], Awaitable[T]]) -> T:
    with _FIRST:
        loop = _loop()
    return loop.wait(lambda _: work())


def _seat(engine: Engine | None) -> LoopSeat | None:
    return None if engine is None else LoopSeat(engine._thread)  # noqa: SLF001 - of this module


class Agent:
    """A coding agent, as `engine.Agent`; closed by `close` or at the end of `with agent`."""

    def __init__(
        self, name: str | None = None, *, engine: Engine | None = None, **words: Unpack[AgentWords]
    ) -> None:
        """Describe it with the words of `engine.Agent`, and with an engine of this module's."""
        self._agent = library.Agent(name, engine=_seat(engine), **words)

    @classmethod
    def _of(cls, agent: library.Agent) -> Self:
        made = cls.__new__(cls)
        vars(made)["_agent"] = agent
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *told: object) -> None:
        self.close()

    @property
    def history(self) -> tuple[Turn, ...]:
        """What was said in this conversation, oldest first."""
        return self._agent.history

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have a function called, in another thread, with every event of the runs that follow."""
        return self._agent.subscribe(subscriber)

    def prompt(self, text: str) -> Reply:
        """Begin a new conversation, in a new workspace, and wait for its answer."""
        return _now(lambda: self._agent.prompt(text))

    def continue_turn(self, text: str) -> Reply:
        """Go on with the conversation where it stands, and wait for the answer."""
        return _now(lambda: self._agent.continue_turn(text))

    def fork(self) -> Self:
        """A copy with the same history, tools, subscribers and settings, independent from now."""
        return self._of(self._agent.fork())

    def run_parallel_prompts(
        self,
        prompts: Iterable[str],
        max_parallel_runs: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Ended[Reply]]:
        """How each prompt ended, in input order: `Success` with a `Reply`, or `Failure`."""
        run = partial(self._agent.run_parallel_prompts, prompts, max_parallel_runs)
        return _now(partial(run, progress=progress))

    def land(
        self, *, to: str | None = None, style: str | None = None
    ) -> Landed | c.Conflicted | c.Refused:
        """Move what this conversation changed onto its target, and wait for what becomes of it."""
        return _now(lambda: self._agent.land(to=to, style=style))

    def close(self) -> None:
        """Give its workspace back, as far as everything in it is kept, and its engine with it."""
        _now(self._agent.aclose)


class IsolatedAgentSession:
    """A workspace for a while, as `engine.IsolatedAgentSession`; opened by `with`."""

    def __init__(
        self, name: str, *, engine: Engine | None = None, **words: Unpack[SessionWords]
    ) -> None:
        """Describe it with the words of `engine.IsolatedAgentSession`."""
        self._session = library.IsolatedAgentSession(name, engine=_seat(engine), **words)

    def __enter__(self) -> Self:
        _now(self._session.__aenter__)
        return self

    def __exit__(self, *told: object) -> None:
        _now(self._session.__aexit__)

    @property
    def name(self) -> str:
        """Its name."""
        return self._session.name

    @property
    def workspace(self) -> Path:
        """The folder that everything in this session works in."""
        return self._session.workspace

    @property
    def branch(self) -> str | None:
        """The branch that holds its work; None in a plain folder."""
        return self._session.branch

    @property
    def db_path(self) -> Path:
        """Its own SQLite database: events, usage and notes."""
        return self._session.db_path

    @property
    def worker(self) -> str:
        """Its name for the engine, `run/step/worker_1`."""
        return self._session.worker

    def run(self, work: Work, prompt: str = "") -> Reply:
        """Run something in the workspace, and wait for its end; its changes are collected."""
        return _now(lambda: self._session.run(work, prompt))

    def land(
        self, *, to: str | None = None, style: str | None = None
    ) -> Landed | c.Conflicted | c.Refused:
        """Move what was changed in it onto its target; then nothing more can be run in it."""
        return _now(lambda: self._session.land(to=to, style=style))

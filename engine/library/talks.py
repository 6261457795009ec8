"""One conversation as a run of an engine: begun, followed to its end, continued, released.

Everything here happens in the engine's own loop. A conversation is a run with one worker; each turn
is an attempt of it, so that consoles show it, refs keep it and journals tell it like any other.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from engine.api import Engine, Run, plain_errors
from engine.errors import EngineError, WorkspaceError
from engine.library.seats import CLOSING_S
from engine.messages import commands as c
from engine.messages.asked import Question
from engine.messages.events import Told
from engine.messages.results import Change, WorkerResult, WorkerView
from engine.phases import Phase
from engine.plan.model import Plan
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Hearing:
    """The callbacks of a conversation under way, wherever the caller lives."""

    observe: Callable[[Told], Awaitable[object]] | None = None
    answer: Callable[[Question], Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a turn; `worker` is `run/step/worker_1`."""

    worker: str
    result: WorkerResult
    change: Change | None


async def begin(engine: Engine, plan: Plan, hearing: Hearing) -> Ended:
    """Begin a conversation, and follow its first turn to its end."""
    run = await engine.start(plan)
    worker = f"{run.id}/{plan.steps[0].workers[0].id}"
    return await _follow(engine, run, worker, hearing, leave=release)


async def go_on(
    engine: Engine, command: c.RetryWorker, hearing: Hearing, *, leave: "Leave | None" = None
) -> Ended | c.Refused:
    """Begin another turn of a conversation, if its worker can be asked again."""
    run = await engine.resume(_run_of(command.worker))
    seq = (await engine.view(run.id)).seq
    reply = await engine.command(command)
    if isinstance(reply, c.Refused):
        return reply
    following = _follow(engine, run, command.worker, hearing, after=seq, leave=leave or release)
    return await following


async def _follow(
    engine: Engine, run: Run, worker: str, hearing: Hearing, *, leave: "Leave", after: int = 0
) -> Ended:
    """Watch it to its end; if the caller goes, it is left in order and nothing of it runs on."""
    try:
        with plain_errors():
            async with anyio.create_task_group() as group:
                telling = _Telling(engine, run.id, hearing.observe, after)
                group.start_soon(telling.tell)
                ended = await _until_ended(engine, run, worker, hearing)
                await telling.wait_told((await engine.view(run.id)).seq)
                group.cancel_scope.cancel()
    except BaseException:
        with anyio.move_on_after(CLOSING_S, shield=True):
            await leave(engine, worker)
        raise
    return ended


class _Telling:
    """Hands the events of a run on, and knows how far it has come."""

    def __init__(
        self,
        engine: Engine,
        run: str,
        observe: Callable[[Told], Awaitable[object]] | None,
        after: int,
    ) -> None:
        self._engine = engine
        self._run = run
        self._observe = observe
        self._seq = after
        self._moved = anyio.Event()

    async def tell(self) -> None:
        """Hand on every event of the run, in order."""
        if self._observe is None:
            return
        async for told in self._engine.events(self._seq, run=self._run):
            await self._observe(told)
            self._seq = max(self._seq, told.seq or 0)
            self._moved.set()
            self._moved = anyio.Event()

    async def wait_told(self, seq: int) -> None:
        """Return when everything up to this event has been reported."""
        while self._observe is not None and self._seq < seq:
            await self._moved.wait()


async def _until_ended(engine: Engine, run: Run, worker: str, hearing: Hearing) -> Ended:
    step, _, short = worker.partition("/")[2].partition("/")
    while True:
        report = await run.wait()
        view = (await engine.view(run.id)).worker(f"{step}/{short}")
        if not view.questions:
            result = next(r for r in report.steps[step].results if r.worker == view.worker)
            return Ended(worker=worker, result=result, change=view.change)
        for question in view.questions:
            answer = await hearing.answer(question)
            command = c.Answer(
                worker=worker, answer=answer, question=question.id, asked=question.text
            )
            await engine.command(command)


async def look(engine: Engine, worker: str) -> WorkerView:
    """Return a conversation's worker as it stands."""
    run, _, name = worker.partition("/")
    return (await engine.view(run)).worker(name)


Leave = Callable[[Engine, str], Awaitable[None]]


async def stop(engine: Engine, worker: str) -> None:
    """End what runs of it, and wait until that is collected."""
    with suppress(EngineError):
        await _end(engine, worker)
        await (await engine.resume(_run_of(worker))).wait()


async def release(engine: Engine, worker: str) -> None:
    """End what runs of it, give its workspace back as far as all is kept, and release its run."""
    with suppress(EngineError):
        await _end(engine, worker)
    with suppress(WorkspaceError):
        await engine.release(worker)
    await engine.unload(_run_of(worker))


async def _end(engine: Engine, worker: str) -> None:
    """Stop it if it has not come to its end; what waits for a human goes on waiting."""
    phase = (await look(engine, worker)).phase
    if not phase.is_settled and phase not in _WITH_A_HUMAN:
        await engine.command(c.StopWorker(worker=worker, is_kill=True))


_WITH_A_HUMAN = frozenset({Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING})


def _run_of(worker: str) -> str:
    return worker.partition("/")[0]

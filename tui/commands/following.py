"""Following a run without a console: events as JSON or lines, until its end or a human's turn."""

import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import singledispatch

import anyio

from engine import commands as c
from engine import events as ev
from engine.api import EnginePort, event_json, reach
from engine.errors import LockHeld
from engine.events import Told
from engine.phases import Phase, StopCause
from engine.remote.client import EngineGone
from engine.results import Outcome, RunReport, RunView
from tui.commands.base import EXIT_INTERRUPTED, say
from tui.commands.exits import exit_code
from tui.present.clean import clean

_HANDOVER_S = 10.0
_QUIET = {Phase.QUEUED, Phase.WAITING, Phase.COLLECTING}


@dataclass
class Following:
    """How a run is followed, and what is open in it."""

    is_json: bool = False
    on_question: str = "wait"
    questions: set[tuple[str, str]] = field(default_factory=set)
    interrupts: int = 0
    seq: int = 0


async def carry(
    repo: str, begin: Callable[[EnginePort], Awaitable[str]], following: Following
) -> int:
    """Begin a run with the engine that lives, or one of this process, and follow it; the exit code.

    An engine that lived may end before the run does: then the run is taken up where it stands.
    """
    run, code = "", None
    while code is None:
        async with _reach_soon(repo) as (port, has_lived):
            if run:
                say("the engine ended before the run did; going on with it here")
            run = await (port.resume(run) if run else begin(port))
            code = await follow(port, run, following)
            if not has_lived and not following.interrupts and await _others_go_on(port, run):
                say("other runs go on in this engine; it ends with them")
                await port.wait_idle()
    return code


@asynccontextmanager
async def _reach_soon(repo: str) -> AsyncIterator[tuple[EnginePort, bool]]:
    """The engine, also in the moment in which the last one goes and still holds its lock."""
    deadline = anyio.current_time() + _HANDOVER_S
    async with AsyncExitStack() as stack:
        yield await _entered(stack, repo, deadline)


async def _entered(stack: AsyncExitStack, repo: str, deadline: float) -> tuple[EnginePort, bool]:
    while True:
        try:
            return await stack.enter_async_context(reach(repo))
        except LockHeld:
            if anyio.current_time() > deadline:
                raise
            await anyio.sleep(_HANDOVER_S / 100)


async def _others_go_on(port: EnginePort, run: str) -> bool:
    snapshot = await port.snapshot()
    return any(
        worker.is_live for view in snapshot.runs if view.run != run for worker in view.workers
    )


async def follow(port: EnginePort, run: str, following: Following) -> int | None:
    """Tell what happens until the run ends or waits for a human; None if the engine ends before."""
    async with _interruptible(port, run, following):
        try:
            report = await _until_end(port, run, following)
        except EngineGone:
            report = None
    if following.interrupts:
        return EXIT_INTERRUPTED
    if report is None:
        return None
    if not following.is_json:
        _tell_report(report)
    return exit_code(report)


@asynccontextmanager
async def _interruptible(port: EnginePort, run: str, following: Following) -> AsyncIterator[None]:
    """The first Ctrl-C asks the run to stop, the second kills; work is kept either way."""

    async def listen() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                following.interrupts += 1
                is_kill = following.interrupts > 1
                say("stopping at once …" if is_kill else "stopping; once more kills …")
                await port.command(c.StopRun(run=run, is_kill=is_kill))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        yield
        tasks.cancel_scope.cancel()


async def _until_end(port: EnginePort, run: str, following: Following) -> RunReport | None:
    if following.seq and (view := await port.view(run)).seq <= following.seq and _rests(view):
        return await port.report(run)
    async for told in port.events(following.seq, run=run):
        _tell(told, following)
        following.seq = max(following.seq, told.seq or 0)
        match told.event:
            case ev.Asked():
                await _on_question(port, run, following, told.event)
            case ev.Answered():
                following.questions.discard((told.event.worker, told.event.question))
            case ev.WorkerMoved():
                _drop_questions(following, told.event)
            case ev.RunFinished() | ev.RunWaiting():
                is_asked = bool(following.questions) and following.on_question == "wait"
                if not is_asked and await _is_at_rest(port, run):
                    return await port.report(run)
            case _:
                continue
    return None


async def _is_at_rest(port: EnginePort, run: str) -> bool:
    """Whether that still holds: an event of a run taken up again may be of long ago."""
    return _rests(await port.view(run))


def _rests(view: RunView) -> bool:
    return view.is_waiting or view.ended_at is not None


def _drop_questions(following: Following, event: ev.WorkerMoved) -> None:
    gone = {key for key in following.questions if key[0] == event.worker}
    following.questions -= gone


async def _on_question(port: EnginePort, run: str, following: Following, event: ev.Asked) -> None:
    following.questions.add((event.worker, event.question.id))
    if following.on_question == "fail":
        say(f"{event.worker} is stopped: it asks, and `--on-question fail` is set")
        await port.command(c.StopWorker(worker=event.worker, run=run))
    elif following.on_question == "deny":
        await port.command(
            c.Answer(worker=event.worker, answer="deny", question=event.question.id, run=run)
        )
    elif not following.is_json:
        say(f"{'':<28} `plait answer {run}/{event.worker} …` answers it")


def _tell(told: Told, following: Following) -> None:
    if following.is_json:
        sys.stdout.write(json.dumps(event_json(told), ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    line = sentence(told)
    if line:
        say(line)


def sentence(told: Told) -> str:
    """One event as a line for people; empty where it would only be noise."""
    words = _words(told.event)
    worker = getattr(told.event, "worker", "")
    return f"{worker:<28} {words}" if worker and words else words


@singledispatch
def _words(event: ev.Event) -> str:
    del event
    return ""


@_words.register
def _(event: ev.RunStarted) -> str:
    return "\n".join(f"note: {clean(note)}" for note in event.notes)


@_words.register
def _(event: ev.WorkerMoved) -> str:
    if event.after in _QUIET:
        return ""
    return f"{event.after} ({event.cause})" if event.cause else str(event.after)


@_words.register
def _(event: ev.Asked) -> str:
    return f"asks: {clean(event.question.text)}"


@_words.register
def _(event: ev.LimitHitSeen) -> str:
    return f"met its limit: {event.hit}"


@_words.register
def _(event: ev.Clamped) -> str:
    clamp = event.clamp
    return f"clamped: {clamp.where}: {clamp.asked} → {clamp.given} ({clamp.reason})"


@_words.register
def _(event: ev.ChoiceWanted) -> str:
    return f"{event.step}: choose one of {', '.join(event.candidates)}"


@_words.register
def _(event: ev.ConflictsFound) -> str:
    return f"conflicts in {clean(', '.join(event.paths))}"


@_words.register
def _(event: ev.LandingDelayed) -> str:
    return (
        f"waits to land until your edits are out of the way: {clean(', '.join(event.in_the_way))}"
    )


@_words.register
def _(event: ev.IsolationViolated) -> str:
    return f"REACHED OUTSIDE ITS TREE: {clean(event.path)}"


@_words.register
def _(event: ev.OutsideChanged) -> str:
    return f"changed meanwhile: {clean(event.path)} ({event.remark})"


@_words.register
def _(event: ev.Landed) -> str:
    return f"landed on {event.target} as {event.new[:10]}"


def _tell_report(report: RunReport) -> None:
    say("")
    for name, step in report.steps.items():
        say(f"{name}: {step.outcome} ({step.success_count} of {step.total_workers})")
        for result in step.worker_results:
            if result.outcome in {Outcome.FAILED, Outcome.CANCELLED} and result.error:
                first = clean(result.error.strip().split("\n", 1)[0])
                say(f"  {result.worker}: {_cause(result.cause)}{first}")
    for want in report.waits_for:
        say(f"waits for you: {clean(want)}")


def _cause(cause: StopCause | None) -> str:
    return f"{cause}: " if cause else ""

"""Following a run without a console: events as JSON or lines, until its end or a human's turn."""

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import singledispatch
from time import time

import anyio
from anyio.abc import TaskGroup

from engine.api import EnginePort, event_json, reach
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.events import Told
from engine.messages.questions import ReadEngine, ReadReport, ReadRun, ResumeRun
from engine.messages.results import Outcome, RunReport, RunView
from engine.phases import Phase, StopCause
from engine.port.client import EngineGone
from tui.commands.base import EXIT_INTERRUPTED, json_text, say
from tui.commands.exits import exit_code
from tui.commands.leaving import tell_left, wait_stuck
from tui.commands.outlet import write
from tui.words.clean import asked_line, clean, clean_name
from tui.words.figures import clock
from tui.words.served import served_text

_LAST_WORDS_S = 1.0
_MOST_UNREAD = 1000
_QUIET = {Phase.QUEUED, Phase.WAITING, Phase.COLLECTING}


@dataclass
class Following:
    """Keep how a run is followed, and what is open in it.

    Attributes:
        seq: The number of the last event that was acted upon.
        told: The number of the last event that was printed.
    """

    is_json: bool = False
    on_question: str = "wait"
    questions: set[tuple[str, str]] = field(default_factory=set)
    interrupts: int = 0
    seq: int = 0
    told: int = 0
    is_interrupted: anyio.Event = field(default_factory=anyio.Event)
    is_troubled: anyio.Event = field(default_factory=anyio.Event)
    left: RunView | None = None


async def carry(
    repo: str, begin: Callable[[EnginePort], Awaitable[str]], following: Following
) -> int:
    """Begin a run with the engine that lives, or one of this process, and follow it; the exit code.

    An engine that lived may end before the run does: then the run is resumed where it stands.
    """
    run, code = "", None
    while code is None:
        async with reach(repo) as (port, has_lived):
            if run:
                how = "another engine has taken over" if has_lived else "continuing here"
                say(f"the engine ended before the run; {how}")
            run = await (port.ask(ResumeRun(run)) if run else begin(port))
            code = await follow(port, run, following)
            if following.left is not None:
                await tell_left(repo, following.left)
            if not has_lived and await _others_go_on(port, run):
                say("other runs that started here continue in their own engine")
    return code


async def _others_go_on(port: EnginePort, run: str) -> bool:
    snapshot = await port.ask(ReadEngine())
    return any(
        worker.is_live for view in snapshot.runs if view.run != run for worker in view.workers
    )


async def follow(port: EnginePort, run: str, following: Following) -> int | None:
    """Tell what happens until the run ends or waits for a human; None if the engine ends before."""
    async with _interruptible(port, run, following):
        report = await _until_end_or_left(port, run, following)
    if following.interrupts or following.left:
        return EXIT_INTERRUPTED
    if report is None:
        return None
    if not following.is_json:
        await write(sys.stderr, "".join(f"{line}\n" for line in _report_lines(report)))
    return exit_code(report)


@asynccontextmanager
async def _interruptible(port: EnginePort, run: str, following: Following) -> AsyncIterator[None]:
    """The first Ctrl-C asks the run to stop, the second kills; work is kept either way.

    A terminal that is closed stops it too, unless whoever started the command said that it may go.
    """
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)

    async def listen() -> None:
        with anyio.open_signal_receiver(*ends) as signals:
            async for _ in signals:
                following.interrupts += 1
                following.is_interrupted.set()
                is_kill = following.interrupts > 1
                await port.command(c.StopRun(run=run, is_kill=is_kill))
                with anyio.move_on_after(_LAST_WORDS_S):
                    said = (
                        "stopping at once …"
                        if is_kill
                        else "stopping; press ctrl+c again to kill …"
                    )
                    await write(sys.stderr, f"{said}\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        yield
        tasks.cancel_scope.cancel()


async def _until_end_or_left(port: EnginePort, run: str, following: Following) -> RunReport | None:
    """Follow it to its end, or until its end cannot be written down; None if the engine goes."""
    report: RunReport | None = None

    async def leave() -> None:
        await following.is_troubled.wait()
        with suppress(EngineGone):
            following.left = await wait_stuck(port, run)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        telling = Telling(port, run, following)
        tasks.start_soon(leave)
        tasks.start_soon(telling.tell)
        with suppress(EngineGone):
            report = await _until_end(port, run, following, telling)
        await telling.finish()
        tasks.cancel_scope.cancel()
    return report


class Telling:
    """Prints events at the pace of whoever reads them; the run is followed meanwhile.

    So many are kept for a reader that is slow. Of one that stalls nothing more is kept: what it
    has not read is asked for again, from the journal, when it reads on.
    """

    def __init__(self, port: EnginePort, run: str, following: Following) -> None:
        self._port, self._run, self._following = port, run, following
        self._fresh, self._unread = anyio.create_memory_object_stream[Told](_MOST_UNREAD)
        self._last = following.told
        self._is_behind = False
        self._is_over = False
        self._catching = anyio.CancelScope()
        self._done = anyio.Event()

    def offer(self, told: Told) -> None:
        """Let an event be printed, without waiting for that."""
        self._last = max(self._last, told.seq or 0)
        if isinstance(told.event, ev.TroubleSeen):
            self._following.is_troubled.set()
        if self._is_behind:
            return
        try:
            self._fresh.send_nowait(told)
        except anyio.WouldBlock:
            self._is_behind = True
            self._fresh.close()

    async def tell(self) -> None:
        """Print all that is offered, and what had to be left out."""
        try:
            async with self._unread:
                async for told in self._unread:
                    await self._print(told)
            if self._is_behind:
                with self._catching:
                    await self._catch_up()
        except EngineGone:
            return
        finally:
            self._done.set()

    async def _catch_up(self) -> None:
        async for told in self._port.events(self._following.told, run=self._run):
            await self._print(told)
            if self._is_over and self._following.told >= self._last:
                return

    async def _print(self, told: Told) -> None:
        await _tell(told, self._following)
        self._following.told = max(self._following.told, told.seq or 0)

    async def finish(self) -> None:
        """Return when all is printed, or when a human wants to leave and nobody reads."""
        self._is_over = True
        self._fresh.close()
        if self._is_behind and self._following.told >= self._last:
            self._catching.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._give_up, tasks)
            await self._done.wait()
            tasks.cancel_scope.cancel()

    async def _give_up(self, tasks: TaskGroup) -> None:
        await self._following.is_interrupted.wait()
        await anyio.sleep(_LAST_WORDS_S)
        tasks.cancel_scope.cancel()


async def _until_end(
    port: EnginePort, run: str, following: Following, telling: Telling
) -> RunReport | None:
    if (
        following.seq
        and (view := await port.ask(ReadRun(run))).seq <= following.seq
        and _rests(view)
    ):
        return await port.ask(ReadReport(run))
    async for told in port.events(following.seq, run=run):
        telling.offer(told)
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
                    return await port.ask(ReadReport(run))
            case _:
                continue
    return None


async def _is_at_rest(port: EnginePort, run: str) -> bool:
    """Say whether that still holds: an event of a resumed run may be old."""
    return _rests(await port.ask(ReadRun(run)))


def _rests(view: RunView) -> bool:
    return view.is_waiting or view.ended_at is not None


def _drop_questions(following: Following, event: ev.WorkerMoved) -> None:
    gone = {key for key in following.questions if key[0] == event.worker}
    following.questions -= gone


async def _on_question(port: EnginePort, run: str, following: Following, event: ev.Asked) -> None:
    following.questions.add((event.worker, event.question.id))
    if following.on_question == "fail":
        await port.command(c.StopWorker(worker=event.worker, run=run))
        with anyio.move_on_after(_LAST_WORDS_S):
            said = (
                f"{event.worker} is stopped: it asked a question, and `--on-question fail` is set"
            )
            await write(sys.stderr, f"{said}\n")
    elif following.on_question == "deny":
        await port.command(
            c.Answer(worker=event.worker, answer="deny", question=event.question.id, run=run)
        )
    elif not following.is_json:
        with anyio.move_on_after(_LAST_WORDS_S):
            how = f"answer with `plait answer {run}/{event.worker} …`"
            await write(sys.stderr, f"{'':<28} {how}\n")


async def _tell(told: Told, following: Following) -> None:
    if following.is_json:
        await write(sys.stdout, json_text(event_json(told)) + "\n")
    elif line := sentence(told):
        await write(sys.stderr, f"{line}\n")


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
    return f"asks: {asked_line(event.question.text)}"


@_words.register
def _(event: ev.LimitHitSeen) -> str:
    return f"hit its limit: {event.hit}"


@_words.register
def _(event: ev.RateLimitMet) -> str:
    until = "" if event.until is None else f" until {clock(event.until, time())}"
    return f"waits{until}: its model answered {event.status}"


@_words.register
def _(event: ev.Clamped) -> str:
    clamp = event.clamp
    return f"clamped: {clamp.where}: {clamp.asked} → {clamp.given} ({clamp.reason})"


@_words.register
def _(event: ev.ChoiceWanted) -> str:
    return f"{event.step}: choose one of {', '.join(event.candidates)}"


@_words.register
def _(event: ev.ConflictsFound) -> str:
    return f"conflicts in {', '.join(map(clean_name, event.paths))}"


@_words.register
def _(event: ev.LandingDelayed) -> str:
    names = ", ".join(map(clean_name, event.in_the_way))
    return f"waits to land until your edits are out of the way: {names}"


@_words.register
def _(event: ev.IsolationViolated) -> str:
    return f"REACHED OUTSIDE ITS TREE: {clean_name(event.path)}"


@_words.register
def _(event: ev.OutsideChanged) -> str:
    return f"changed meanwhile: {clean_name(event.path)} ({event.remark})"


@_words.register
def _(event: ev.TroubleSeen) -> str:
    if event.trouble is None:
        return "the run continues"
    return f"the run is stalled: {clean(event.trouble.what)}. {clean(event.trouble.help)}"


@_words.register
def _(event: ev.HistoryDelayed) -> str:
    if event.delay is None:
        return "the shared history is up to date again"
    return f"the shared history is delayed: {clean(event.delay.what)}. {clean(event.delay.help)}"


@_words.register
def _(event: ev.ProgramServed) -> str:
    if event.served is None:
        return "its program has stopped"
    return f"its program {served_text(event.served)}"


@_words.register
def _(event: ev.Landed) -> str:
    landed = f"landed on {event.target} as {event.new[:10]}"
    return f"{landed}. {clean(event.note)}" if event.note else landed


_NEXT = (
    "`plait attach` opens the console; here, `plait diff WORKER` shows a change and "
    "`plait land WORKER` lands it"
)


def _report_lines(report: RunReport) -> Iterator[str]:
    yield ""
    for name, step in report.steps.items():
        yield f"{name}: {step.outcome} ({step.success_count} of {step.total_workers})"
        for result in step.worker_results:
            if result.ending:
                said = clean(result.output.strip().split("\n", 1)[0])
                yield f"  {result.worker} {result.ending}{f': {said}' if said else ''}"
            if result.outcome in {Outcome.FAILED, Outcome.CANCELLED} and result.error:
                first = clean(result.error.strip().split("\n", 1)[0])
                yield f"  {result.worker}: {_cause(result.cause)}{first}"
    for want in report.waits_for:
        yield f"waits for you: {asked_line(want)}"
    if report.waits_for:
        yield _NEXT


def _cause(cause: StopCause | None) -> str:
    return f"{cause}: " if cause else ""

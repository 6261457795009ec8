"""`plait cancel`, `retry`, `pause`, `answer`, `steer`: what a second shell says to a run."""

import argparse
import time
from collections.abc import Sequence
from functools import partial

import anyio

from engine.api import EnginePort, RetryMode, reach
from engine.errors import EngineError
from engine.limits import KINDS, Limits
from engine.messages import commands as c
from engine.messages.asked import AnswerScope
from engine.messages.events import Delivery, Steered, WorkerMoved
from engine.messages.questions import ReadRun, WaitIdle
from engine.messages.results import RunView
from engine.phases import Phase
from engine.port.client import EngineGone
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    add_repo,
    add_seen,
    in_loop,
    say,
    seen_of,
)
from tui.words.settings import MOMENTS, time_named

_HEARD_SOON_S = 2.0
_ENDS_SOON_S = 30.0
_WORD = {
    Delivery.DELIVERED: "the agent has read it",
    Delivery.REFUSED: "the agent did not get it; its next attempt will",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom, and what."""
    add_repo(parser)
    name = parser.get_default("command")
    many = name in {"cancel", "pause"}
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    if many:
        parser.add_argument("workers", nargs="*", metavar="WORKER")
    else:
        parser.add_argument(
            "worker", metavar="WORKER", help="[RUN/]STEP/worker_I, or the end of that name"
        )
    if name == "cancel":
        parser.add_argument("--all", action="store_true", help="every worker that has not settled")
        parser.add_argument(
            "--kill", action="store_true", help="kill at once, without a grace period"
        )
    if name == "retry":
        add_seen(parser)
        parser.add_argument(
            "-m",
            dest="feedback",
            default="",
            metavar="FEEDBACK",
            help="what the worker should do better",
        )
        parser.add_argument(
            "--mode",
            choices=[str(mode) for mode in RetryMode],
            help="continue the earlier work and session (default with -m), or start fresh",
        )
        parser.add_argument("--limit", action="append", default=[], metavar="memory_mb=2048")
        parser.add_argument("-a", dest="agent", metavar="AGENT")
        parser.add_argument(
            "--at",
            metavar="TIME",
            help=f"start from its files as they were at this time: {MOMENTS}",
        )
    if name == "answer":
        parser.add_argument("text", metavar="allow|deny|TEXT")
        parser.add_argument(
            "--for-run",
            action="store_true",
            help="also answer every worker of this run that asks the same",
        )
        parser.add_argument(
            "--for",
            dest="scope",
            choices=[str(scope) for scope in AnswerScope],
            help="keep the answer for this worker, its step, the run or every run of this"
            " repository (`plait rules` lists it)",
        )
        parser.add_argument(
            "--rule",
            default="",
            metavar="PATTERN",
            help="with --for: answer every match, such as 'Bash(git *)', except dangerous requests",
        )
    if name == "steer":
        parser.add_argument("text", metavar="TEXT")


def run(args: argparse.Namespace) -> int:
    """Say it to the engine that lives, or open one for the occasion."""
    if args.command == "cancel" and args.all:
        return in_loop(partial(_cancel_all, args))
    commands = _commands(args)
    if not commands:
        say("name a worker, or --all")
        return EXIT_USAGE
    return in_loop(partial(tell, args.repo, commands))


def _commands(args: argparse.Namespace) -> list[c.Command]:
    match args.command:
        case "cancel":
            return [
                c.StopWorker(worker=worker, run=args.run, is_kill=args.kill)
                for worker in args.workers
            ]
        case "pause":
            workers = args.workers or [None]
            return [c.Pause(worker=worker, run=args.run) for worker in workers]
        case "retry":
            return [
                c.RetryWorker(
                    worker=args.worker,
                    run=args.run,
                    mode=RetryMode(args.mode) if args.mode else None,
                    feedback=args.feedback,
                    limits=limits_from(args.limit),
                    agent=args.agent,
                    at=at_from(args.at),
                    seen=seen_of(args),
                )
            ]
        case "answer":
            return [
                c.Answer(
                    worker=args.worker,
                    answer=args.text,
                    run=args.run,
                    is_for_run=args.for_run,
                    scope=AnswerScope(args.scope) if args.scope else None,
                    pattern=args.rule,
                )
            ]
        case _:
            return [c.Steer(worker=args.worker, text=args.text, run=args.run)]


async def _cancel_all(args: argparse.Namespace) -> int:
    """Stop a whole run and wait for its end; the exit code is that of a run that was cancelled."""
    async with reach(args.repo) as (port, _):
        before = await port.ask(ReadRun(args.run))
        run = before.run
        if code := await tell_one(port, c.StopRun(run=run, is_kill=args.kill)):
            return code
        after = await _wait_stopped(port, before)
    left = _at_work(after) if after is not None else []
    if left:
        say(f"still stopping: {', '.join(left)}")
    say(f"the run {run} is cancelled{_of_landings(before, after)}")
    return EXIT_FAILED


def _of_landings(before: RunView, after: RunView | None) -> str:
    """Say which landings could not be stopped any more, because their target was moving."""
    was = {worker.worker for worker in before.workers if worker.phase is Phase.LANDING}
    workers = after.workers if after is not None else ()
    names = [w.worker for w in workers if w.phase is Phase.LANDED and w.worker in was]
    return f"; already landed: {', '.join(names)}" if names else ""


async def _wait_stopped(port: EnginePort, before: RunView) -> RunView | None:
    """Wait until nobody of a run is at work any more, or for some time; how it stands then.

    None where the engine has ended with its last run.
    """
    try:
        after = await port.ask(ReadRun(before.run))
        with anyio.move_on_after(_ENDS_SOON_S):
            async for told in port.events(before.seq, run=before.run):
                if isinstance(told.event, WorkerMoved):
                    after = await port.ask(ReadRun(before.run))
                if not _at_work(after):
                    break
    except EngineGone:
        return None
    return after


def _at_work(view: RunView) -> list[str]:
    return [w.worker for w in view.workers if w.is_live or w.phase is Phase.LANDING]


def limits_from(words: Sequence[str]) -> Limits | None:
    """Limits as `name=value` words say them; a wrong one ends the command with what is known."""
    if not words:
        return None
    values: dict[str, float] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if name not in KINDS or number <= 0:
            known = ", ".join(KINDS)
            say(f"--limit {word}: expected NAME=NUMBER with a name of: {known}")
            raise SystemExit(EXIT_USAGE)
        values[name] = int(number) if KINDS[name].is_whole else number
    return Limits(**values)  # type: ignore[arg-type]


def at_from(word: str | None) -> float | None:
    """The time that a word means; a word that means none ends the command."""
    if word is None:
        return None
    found = time_named(word, time.time())
    if found is None:
        say(f"--at {word}: expected a time: {MOMENTS}")
        raise SystemExit(EXIT_USAGE)
    return found


async def tell(repo: str, commands: Sequence[c.Command]) -> int:
    """Carry commands out; an engine opened for them stays until all is at rest."""
    async with reach(repo) as (port, has_lived):
        code = EXIT_OK
        for command in commands:
            if isinstance(command, c.Steer):
                code = max(code, await _steer(port, command))
            else:
                code = max(code, await tell_one(port, command))
        if not has_lived and code == EXIT_OK:
            await port.ask(WaitIdle())
    return code


async def _steer(port: EnginePort, command: c.Steer) -> int:
    """Say it, wait a moment, and tell whether it has reached the agent."""
    try:
        view = await port.ask(ReadRun(command.run))
    except EngineError:  # there is no such run: the refusal says so
        return await tell_one(port, command)
    if code := await tell_one(port, command):
        return code
    with anyio.move_on_after(_HEARD_SOON_S):
        async for told in port.events(view.seq, run=view.run):
            event = told.event
            if not isinstance(event, Steered) or event.text != command.text:
                continue
            if word := _WORD.get(event.delivery):
                say(word)
                return EXIT_OK if event.delivery is Delivery.DELIVERED else EXIT_FAILED
    say("the agent has not read it yet")
    return EXIT_OK


async def tell_one(port: EnginePort, command: c.Command) -> int:
    """Carry one command out and say what became of it."""
    reply = await port.command(command)
    if isinstance(reply, c.Refused):
        say(f"refused: {reply.reason}")
        if reply.hint:
            say(reply.hint)
        return EXIT_USAGE if reply.kind is c.RefusalKind.CHANGED else EXIT_FAILED
    say(reply.note)
    return EXIT_OK

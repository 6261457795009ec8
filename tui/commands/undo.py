"""`plait undo`: take a landing back, the newest one where none is named."""

import argparse
import re
from functools import partial

from engine.api import EnginePort, reach
from engine.errors import EngineError
from engine.messages import commands as c
from engine.messages.events import LandingUndone, UndoRefused
from engine.messages.questions import ListRuns, ReadRun, ResumeRun
from engine.messages.results import RunView, WorkerView
from engine.phases import Phase
from tui.commands.base import EXIT_FAILED, EXIT_OK, add_repo, in_loop, part_name, say
from tui.commands.deciding import full_name
from tui.words.clean import clean

_COMMIT = re.compile(r"[0-9a-f]{4,64}")
_SHORT = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the landing; the newest one of all runs where none is named."""
    add_repo(parser)
    parser.add_argument(
        "worker", nargs="?", metavar="LANDING", help="the worker that landed, or the commit"
    )
    parser.add_argument("--run", default="", help="which run (default: the latest)")


def run(args: argparse.Namespace) -> int:
    """Take it back; 0 where it is taken back, now or before, and 1 where it stays."""
    part_name(args)
    return in_loop(partial(_undo, args))


async def _undo(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        found = await _meant(port, args)
        if found is None:
            what = (
                f"with the commit {args.worker}" if args.worker else f"in {args.run or 'any run'}"
            )
            say(f"there is no landing to undo {clean(what)}")
            return EXIT_FAILED
        run, worker = found
        return await _undo_one(port, await port.ask(ResumeRun(run)), worker)


async def _meant(port: EnginePort, args: argparse.Namespace) -> tuple[str, str] | None:
    """Return the run and the worker of the landing that is meant."""
    is_commit = args.worker is not None and _COMMIT.fullmatch(args.worker) is not None
    if args.worker is not None and not is_commit:
        meant = await port.ask(ReadRun(args.run))
        return meant.run, full_name(meant, args.worker.removeprefix(f"{meant.run}/"))
    runs = [args.run] if args.run else [str(summary.id) for summary in await port.ask(ListRuns())]
    landings: list[tuple[float, str, str]] = []
    for name in runs:
        view = await _view_of(port, name)
        landings += [
            (worker.phase_since, name, worker.worker)
            for worker in (view.workers if view is not None else ())
            if worker.phase is Phase.LANDED and _is_meant(worker, args.worker)
        ]
    return max(landings)[1:] if landings else None


async def _view_of(port: EnginePort, run: str) -> RunView | None:
    """A run as it stands; None where its journal cannot be read."""
    try:
        return await port.ask(ReadRun(run))
    except EngineError:
        return None


def _is_meant(worker: WorkerView, commit: str | None) -> bool:
    return commit is None or (worker.landed or "").startswith(commit)


async def _undo_one(port: EnginePort, run: str, worker: str) -> int:
    before = await port.ask(ReadRun(run))
    reply = await port.command(c.UndoLanding(worker=worker, run=run))
    if isinstance(reply, c.Refused):
        say(f"refused: {reply.reason}")
        if reply.hint:
            say(reply.hint)
        return EXIT_FAILED
    say(reply.note)
    if before.worker(worker).phase is not Phase.LANDED:  # it was taken back before
        return EXIT_OK
    async for told in port.events(before.seq, run=run):
        match told.event:
            case LandingUndone(worker=name) as done if name == worker:
                _tell_undone(done)
                return EXIT_OK
            case UndoRefused(worker=name, reason=reason) if name == worker:
                say(f"{worker} stays landed: {clean(reason)}")
                return EXIT_FAILED
            case _:
                continue
    return EXIT_FAILED


def _tell_undone(done: LandingUndone) -> None:
    """Say what became of the target, and of the worker."""
    at = (done.new or "")[:_SHORT]
    if done.new is None:
        how = f"{done.target} is removed again"
    elif done.is_added:
        how = f"{done.target} had moved on, so the commit {at} reverts the landing"
    else:
        how = f"{done.target} is back at {at}"
    say(f"{clean(how)}; {done.worker} waits for review again")

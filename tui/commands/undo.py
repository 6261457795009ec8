"""`plait undo`: take the last landing back."""

import argparse
from functools import partial

from engine import commands as c
from engine.api import EnginePort, reach
from engine.phases import Phase
from tui.commands.acting import tell_one
from tui.commands.base import EXIT_FAILED, EXIT_OK, add_repo, in_loop, part_name, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which landing; the last one where none is named."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", metavar="LANDING", help="the worker that landed")
    parser.add_argument("--run", default="", help="which run; the latest where none is named")


def run(args: argparse.Namespace) -> int:
    """Move the target back."""
    part_name(args)
    return in_loop(partial(_undo, args))


async def _undo(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, has_lived):
        code = await _undo_one(port, args)
        if not has_lived:
            await port.wait_idle()
    return code


async def _undo_one(port: EnginePort, args: argparse.Namespace) -> int:
    run = await port.resume((await port.view(args.run)).run)
    view = await port.view(run)
    landed = [w for w in view.workers if w.phase is Phase.LANDED]
    if args.worker is None and not landed:
        say(f"nothing has landed in the run {run}")
        return EXIT_FAILED
    worker = args.worker or max(landed, key=lambda w: w.phase_since).worker
    code = await tell_one(port, c.UndoLanding(worker=worker, run=run))
    if code != EXIT_OK:
        return code
    await port.wait_idle()
    workers = (await port.view(run)).workers
    after = next(w for w in workers if w.worker.endswith(worker) or w.label == worker)
    if after.phase is Phase.LANDED:
        say(f"{after.worker} stays landed: {after.error}")
        return EXIT_FAILED
    say(f"{after.worker} waits for review again")
    return EXIT_OK

"""`plait checkpoint`: keep the files of running workers as they are now."""

import argparse
from datetime import UTC, datetime
from functools import partial

from engine.api import reach
from engine.messages.merging import MakeCheckpoint
from engine.messages.questions import ReadRun
from engine.phases import Phase
from tui.commands.base import EXIT_FAILED, EXIT_OK, add_repo, in_loop, put, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take whose files."""
    add_repo(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument(
        "workers",
        nargs="*",
        metavar="WORKER",
        help="whose files to keep (default: of all that run)",
    )


def run(args: argparse.Namespace) -> int:
    """Keep them, and say from which time on they can be begun again."""
    return in_loop(partial(_keep, args))


async def _keep(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        workers = list(args.workers)
        if not workers:
            view = await port.ask(ReadRun(args.run))
            workers = [w.worker for w in view.workers if w.phase is Phase.RUNNING]
        for worker in workers:
            kept = await port.ask(MakeCheckpoint(args.run, worker))
            at = datetime.fromtimestamp(kept.at, UTC).astimezone()
            put(f"{worker}: checkpoint at {at:%H:%M:%S}")
    if not workers:
        say("no worker runs: there is nothing to keep")
        return EXIT_FAILED
    return EXIT_OK

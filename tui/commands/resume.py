"""`plait resume`: go on after a pause, or take up a run that was interrupted."""

import argparse
from functools import partial

from engine import commands as c
from engine.api import reach
from tui.commands.acting import tell
from tui.commands.base import add_repo, in_loop
from tui.commands.following import Following, follow, follow_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run or workers, and how to follow it."""
    add_repo(parser)
    parser.add_argument("names", nargs="*", metavar="RUN|WORKER")
    parser.add_argument("--run", default="")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--json", action="store_true", help="NDJSON events on stdout")
    parser.add_argument("--on-question", choices=("fail", "deny", "wait"), default="wait")


def run(args: argparse.Namespace) -> int:
    """A name with a slash is a worker; anything else is a run."""
    workers = [name for name in args.names if "/" in name]
    if workers:
        commands = [c.Resume(worker=worker, run=args.run) for worker in workers]
        return in_loop(partial(tell, args.repo, commands))
    return in_loop(partial(_resume, args))


async def _resume(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, has_lived):
        run = args.names[0] if args.names else args.run
        if not run:
            run = next((summary.id for summary in await port.history()), "")
        run = await port.resume(run)
        view = await port.view(run)
        if view.is_paused:
            await port.command(c.Resume(run=run))
        if has_lived and not (args.headless or args.json):
            return 0
        following = Following(is_json=args.json, on_question=args.on_question)
        return await (follow if has_lived else follow_here)(port, run, following)

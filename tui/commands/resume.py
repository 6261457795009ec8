"""`plait resume`: go on after a pause, or resume a run that was interrupted."""

import argparse
from functools import partial

from engine.api import EnginePort, reach
from engine.messages import commands as c
from engine.messages.questions import ListRuns, ReadRun, ResumeRun
from engine.messages.results import Badge, RunView
from tui.commands.acting import tell
from tui.commands.base import EXIT_OK, add_repo, in_loop, say
from tui.commands.following import Following, carry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the run or the workers, and how to follow them."""
    add_repo(parser)
    parser.add_argument("names", nargs="*", metavar="RUN|WORKER")
    parser.add_argument("--run", default="")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--json", action="store_true", help="NDJSON events on stdout")
    parser.add_argument(
        "--on-question",
        choices=("fail", "deny", "wait"),
        default="wait",
        help="what a headless run does when an agent asks (default: wait for `plait answer`)",
    )


def run(args: argparse.Namespace) -> int:
    """A name with a slash is a worker; anything else is a run."""
    workers = [name for name in args.names if "/" in name]
    if workers:
        commands = [c.Resume(worker=worker, run=args.run) for worker in workers]
        return in_loop(partial(tell, args.repo, commands))
    return in_loop(partial(_resume, args))


async def _resume(args: argparse.Namespace) -> int:
    go_on = partial(_go_on, args)
    if not (args.headless or args.json):
        async with reach(args.repo) as (port, has_lived):
            if has_lived:
                _tell_frozen(await port.ask(ReadRun(await go_on(port))))
                return EXIT_OK
    following = Following(is_json=args.json, on_question=args.on_question)
    return await carry(args.repo, go_on, following)


def _tell_frozen(view: RunView) -> None:
    """Tell what goes on, and who does not: who was paused by name goes on by name."""
    say(f"{view.run} continues" if view.ended_at is None else f"{view.run} has ended")
    for worker in view.workers:
        if worker.is_live and Badge.PAUSED in worker.badges:
            name = f"{view.run}/{worker.worker}"
            say(f"{worker.worker} stays paused; `plait resume {name}` resumes it")


async def _go_on(args: argparse.Namespace, port: EnginePort) -> str:
    run: str = args.names[0] if args.names else args.run
    if not run:
        run = next((summary.id for summary in await port.ask(ListRuns())), "")
    run = await port.ask(ResumeRun(run))
    view = await port.ask(ReadRun(run))
    if view.is_paused or any(Badge.NEEDS_LOGIN in w.badges for w in view.workers):
        await port.command(c.Resume(run=run))
    return run

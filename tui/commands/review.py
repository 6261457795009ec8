"""`plait review`: decide a conflicted merge, rebase, pick or stash of your own, or a worker's.

On a terminal it opens the review screen; with decisions among its words it needs none.
"""

import argparse
from functools import partial

from engine.api import EnginePort, MergeReview, OwnMerge, ReviewPort, attach
from engine.messages import commands as c
from engine.messages.merging import ReadConflicts
from tui.commands.base import (
    EXIT_OK,
    EXIT_USAGE,
    EXIT_WAITS,
    add_repo,
    in_loop,
    put,
    put_json,
    say,
)
from tui.commands.resolve import (
    add_decisions,
    contradiction,
    decided,
    decides,
    view_json,
    view_text,
)
from tui.commands.streams import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose conflicts; without a worker those that git left in this working tree."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", metavar="WORKER", help="a worker, in the console")
    add_decisions(parser)


def run(args: argparse.Namespace) -> int:
    """Decide: 0 everything is in its place, 3 something is still open."""
    if args.worker:
        if decides(args):
            say(f"`plait resolve {args.worker} …` decides a worker's conflicts without the console")
            return EXIT_USAGE
        return in_loop(partial(_of_worker, args))
    if why := contradiction(args):
        say(why)
        return EXIT_USAGE
    return in_loop(partial(_own, args))


async def _own(args: argparse.Namespace) -> int:
    merge = await OwnMerge.begin(args.repo)
    if is_terminal() and not decides(args):
        return await show(merge)
    return await settle(merge, args)


async def settle(merge: MergeReview, args: argparse.Namespace) -> int:
    """Carry out what a command's words decide, and put the result in its place once it is whole."""
    view = await decided(args, await merge.conflicts(), merge.resolve)
    if view.is_resolved and not args.show:
        view = await merge.resolve(c.FinishResolving())
    if args.json:
        put_json({**view_json(view), "doing": view.doing, "next_step": view.next_step})
    elif not view.is_finished:
        put(view_text(view))
    if view.is_finished and view.next_step:
        say(f"everything is decided; to go on: {view.next_step}")
    return EXIT_OK if view.is_resolved else EXIT_WAITS


async def _of_worker(args: argparse.Namespace) -> int:
    """The review screen on a worker's conflicts."""
    async with attach(args.repo) as port:
        view = await port.ask(ReadConflicts("", args.worker))
        await _opened(port, run=view.run, worker=view.worker)
    return EXIT_OK


async def show(merge: MergeReview) -> int:
    """The review screen on a merge; 0 where it was finished there."""
    port = ReviewPort(merge)
    if not await _opened(port):
        return EXIT_USAGE
    from tui.screens.review.own import ended  # noqa: PLC0415  the shell's own words need none of it

    view = await port.ask(ReadConflicts("", ""))
    put("\n".join(ended(view)))
    return EXIT_OK if view.is_finished else EXIT_WAITS


async def _opened(port: EnginePort, *, run: str = "", worker: str = "") -> bool:
    """The console, beginning on the review screen; whether there is a terminal for it."""
    if not is_terminal():
        say("the review screen needs a terminal; `plait review --help` names what needs none")
        return False
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  textual is loaded only when it is shown

    options = Options(
        config=config_home(), can_stay_alive=bool(run), is_alone=not run, begins_on="review"
    )
    app = PlaitApp(port, options=options)
    app.session.run_id, app.session.worker = run, worker
    await app.run_async()
    return True

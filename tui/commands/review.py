"""`plait review`: decide conflicts, of your own merge, of a worker, or of a pull request.

On a terminal it opens the review screen; with decisions among its words it needs none.
"""

import argparse
from functools import partial

from engine.api import (
    DiffPort,
    EngineHelp,
    EnginePort,
    MergeReview,
    OwnMerge,
    ReviewPort,
    attach,
    is_request,
    own_help,
    request_beside,
)
from engine.errors import EngineError
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
    run_console,
    say,
)
from tui.commands.diff import patch_lines
from tui.commands.resolve import (
    add_decisions,
    add_regenerate,
    contradiction,
    decided,
    decides,
    view_json,
    view_text,
)
from tui.commands.streams import is_terminal
from tui.words.clean import clean

_WHOSE = "a worker, shown in the console; or a pull request: 12, #12 or its page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose conflicts; without a worker those that git left in this working tree."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", metavar="WORKER|PR", help=_WHOSE)
    add_decisions(parser)
    add_regenerate(parser)


def run(args: argparse.Namespace) -> int:
    """Decide: 0 everything is in its place, 3 something is still open."""
    if (why := contradiction(args)) and (is_request(args.worker or "") or not args.worker):
        say(why)
        return EXIT_USAGE
    if is_request(args.worker or ""):
        return in_loop(partial(_request, args))
    if args.worker:
        if decides(args):
            say(
                f"`plait resolve {args.worker} …` resolves a worker's conflicts without the console"
            )
            return EXIT_USAGE
        return in_loop(partial(_of_worker, args))
    return in_loop(partial(_own, args))


async def _request(args: argparse.Namespace) -> int:
    """Read a pull request: its diff, and its conflicts with the branch it is to be merged into."""
    beside = await request_beside(args.repo, args.worker)
    merge = beside.merge
    if merge is not None and decides(args):
        return await settle(merge, args)
    if args.json:  # without conflicts
        put_json({"is_resolved": True, "files": []})
        return EXIT_OK
    if is_terminal() and not decides(args):
        await opened(DiffPort(beside), begins_on="diff")
        return EXIT_WAITS if merge is not None else EXIT_OK
    put(clean(beside.name))
    put("\n".join(patch_lines(await beside.diff())))
    if merge is None:
        if decides(args):
            say("it merges without conflicts, so there is nothing to decide")
        return EXIT_OK
    put(view_text(await merge.conflicts()))
    return EXIT_WAITS


async def _own(args: argparse.Namespace) -> int:
    merge = await OwnMerge.begin(args.repo)
    if given := await _help(args.repo):
        merge.take_help(given)
    if is_terminal() and not decides(args):
        return await show(merge)
    return await settle(merge, args)


async def _help(folder: str) -> EngineHelp | None:
    """The help that the manifest names; a wrong manifest gives none, and keeps nobody waiting."""
    try:
        return await own_help(folder)
    except EngineError as error:
        say(f"plait.yaml cannot be read, so its review commands do nothing here: {error}")
        return None


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
        say(f"everything is resolved; next: {view.next_step}")
    return EXIT_OK if view.is_resolved else EXIT_WAITS


async def _of_worker(args: argparse.Namespace) -> int:
    """The review screen on a worker's conflicts."""
    async with attach(args.repo) as port:
        view = await port.ask(ReadConflicts("", args.worker))
        await opened(port, run=view.run, worker=view.worker)
    return EXIT_OK


async def show(merge: MergeReview) -> int:
    """The review screen on a merge; 0 where it was finished there."""
    port = ReviewPort(merge)
    async with port.helped():
        has_shown = await opened(port)
    if not has_shown:
        return EXIT_USAGE
    from tui.screens.review.own import ended  # noqa: PLC0415  the shell's own words need none of it

    view = await port.ask(ReadConflicts("", ""))
    put("\n".join(ended(view)))
    return EXIT_OK if view.is_finished else EXIT_WAITS


async def opened(
    port: EnginePort, *, run: str = "", worker: str = "", begins_on: str = "review"
) -> bool:
    """The console, beginning on one screen; whether there is a terminal for it."""
    if not is_terminal():
        say(
            "the review screen needs a terminal; `plait review --help` lists options that "
            "work without one"
        )
        return False
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  textual is loaded only when it is shown

    options = Options(
        config=config_home(), can_stay_alive=bool(run), is_alone=not run, begins_on=begins_on
    )
    app = PlaitApp(port, options=options)
    app.session.run_id, app.session.worker = run, worker
    await run_console(app)
    return True

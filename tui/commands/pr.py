"""`plait pr`: push a branch and open a pull request with your own git and `gh`, or say how."""

import argparse
import shlex
from functools import partial

from engine.api import Publishing, Wanted, pull_request, reach
from engine.errors import GitFailed, WorkspaceError
from engine.legible import cut_at_word
from engine.messages.questions import ReadRun
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    add_repo,
    add_seen,
    in_loop,
    part_name,
    put,
    require_seen,
    say,
)
from tui.commands.deciding import full_name
from tui.words.clean import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of what, and where to."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", default="", metavar="WORKER")
    add_seen(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument(
        "--branch", default="", help="push this branch instead of the worker's or the current one"
    )
    parser.add_argument("--base", default="", help="the branch to merge it into")
    parser.add_argument(
        "--remote", default="", help="the remote (default: origin, or the only one)"
    )
    parser.add_argument(
        "--as", dest="name", default="", metavar="NAME", help="its name on the remote"
    )
    parser.add_argument("--title", default="")
    parser.add_argument("--body", default="")
    parser.add_argument("--dry-run", action="store_true", help="only print what would happen")


def run(args: argparse.Namespace) -> int:
    """Push and ask; 0 where both are done or the rest is reported, 1 where it failed."""
    part_name(args)
    return in_loop(partial(_publish, args))


async def _publish(args: argparse.Namespace) -> int:
    publishing = await pull_request(args.repo, await _wanted(args))
    request = publishing.request
    if request.commit:
        say(f"pushed as one commit, {request.commit[:10]}: its history contains commits of others")
    commands = [shlex.join(request.push_words), shlex.join(request.gh_words)]
    if args.dry_run:
        put("\n".join(commands))
        return EXIT_OK
    try:
        await publishing.push()
        commands.pop(0)
        address = await publishing.ask()
    except GitFailed as failed:
        say(clean(failed.stderr.strip()))
        say("do this by hand:\n  " + "\n  ".join(commands))
        return EXIT_FAILED
    if address is None:
        _tell_how(publishing, commands[0])
    put(address if address is not None else request.page)
    return EXIT_OK


def _tell_how(publishing: Publishing, command: str) -> None:
    request = publishing.request
    say(f"{request.name} is at {request.remote}; `gh` is not installed, so open the pull request")
    say(f"on this page:\n  {request.page}" if request.page else f"with:\n  {command}")


def _refuse_unfinished(worker: WorkerView) -> None:
    """Refuse a change that is still being made: only one that can be reviewed is sent.

    Raises:
        WorkspaceError: There is none, or another attempt makes another one.
    """
    if worker.is_live or worker.phase in {Phase.WAITING, Phase.QUEUED}:
        raise WorkspaceError(f"{worker.worker} is {worker.phase}: its change is not finished")
    if worker.branch is None or worker.change is None or worker.change.head is None:
        raise WorkspaceError(f"{worker.worker} has no change to push")


async def _wanted(args: argparse.Namespace) -> Wanted:
    """Return what was asked for: branch, target and prompt of the worker that is named."""
    given = {name: getattr(args, name) for name in ("base", "remote", "name", "title", "body")}
    if not args.worker:
        if args.seen is not None:
            raise WorkspaceError("--seen needs a worker", hint="Name the worker too.")
        return Wanted(branch=args.branch, **given)
    async with reach(args.repo) as (port, _):
        view = await port.ask(ReadRun(args.run))
    worker = view.worker(full_name(view, args.worker))
    require_seen(args, worker)
    if not args.branch:
        _refuse_unfinished(worker)
    first = next((line.strip() for line in worker.prompt.splitlines() if line.strip()), "")
    check = f"\n\nCheck: {worker.check.summary}" if worker.check else ""
    given["base"] = given["base"] or view.target or ""
    given["title"] = given["title"] or cut_at_word(first)
    given["body"] = given["body"] or f"{worker.prompt.strip()}{check}".strip()
    if worker.change is not None and not args.branch:
        given["since"] = worker.change.base or ""
        given["head"] = worker.change.head or ""
    return Wanted(branch=args.branch or worker.branch or "", **given)

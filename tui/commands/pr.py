"""`plait pr`: push a branch and open a pull request with your own git and `gh`, or say how."""

import argparse
import shlex
from functools import partial

from engine.api import Publishing, Wanted, pull_request, reach
from engine.errors import GitFailed
from tui.commands.base import EXIT_FAILED, EXIT_OK, add_repo, in_loop, part_name, put, say
from tui.present.clean import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of what, and where to."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", default="", metavar="WORKER")
    parser.add_argument("--run", default="", help="which run; the latest where none is named")
    parser.add_argument("--branch", default="", help="in place of a worker's or the current one")
    parser.add_argument("--base", default="", help="what it is to be merged into there")
    parser.add_argument("--remote", default="", help="where to; origin, or the only one")
    parser.add_argument("--as", dest="name", default="", metavar="NAME", help="its name there")
    parser.add_argument("--title", default="")
    parser.add_argument("--body", default="")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def run(args: argparse.Namespace) -> int:
    """Push and ask; 0 where both are done or the rest is told, 1 where it failed."""
    part_name(args)
    return in_loop(partial(_publish, args))


async def _publish(args: argparse.Namespace) -> int:
    publishing = await pull_request(args.repo, await _wanted(args))
    request = publishing.request
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
        say("to be done by hand:\n  " + "\n  ".join(commands))
        return EXIT_FAILED
    if address is None:
        _tell_how(publishing, commands[0])
    put(address if address is not None else request.page)
    return EXIT_OK


def _tell_how(publishing: Publishing, command: str) -> None:
    request = publishing.request
    say(f"{request.name} is at {request.remote}; `gh` is not installed, so ask for the merge")
    say(f"on this page:\n  {request.page}" if request.page else f"with:\n  {command}")


async def _wanted(args: argparse.Namespace) -> Wanted:
    """What was asked for; a worker's branch, target and prompt where one is named."""
    given = {name: getattr(args, name) for name in ("base", "remote", "name", "title", "body")}
    if not args.worker:
        return Wanted(branch=args.branch, **given)
    async with reach(args.repo) as (port, _):
        view = await port.view(args.run)
    found = [w for w in view.workers if w.worker.endswith(args.worker) or w.label == args.worker]
    if len(found) != 1 or not found[0].branch:
        raise SystemExit(f"{clean(args.worker)} names no worker of {view.run} with a branch")
    worker = found[0]
    if worker.left_out and not args.branch:
        raise SystemExit(
            f"{clean(worker.worker)} has hunks left out that its branch still has: "
            "land it, or name another branch with --branch"
        )
    first = next((line.strip() for line in worker.prompt.splitlines() if line.strip()), "")
    check = f"\n\nCheck: {worker.check.summary}" if worker.check else ""
    given["base"] = given["base"] or view.target or ""
    given["title"] = given["title"] or first[:72]
    given["body"] = given["body"] or f"{worker.prompt.strip()}{check}".strip()
    return Wanted(branch=args.branch or worker.branch or "", **given)

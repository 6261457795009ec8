"""`plait db`: the history that a team shares: its tables, its state, its deliveries."""

import argparse
from dataclasses import asdict
from datetime import datetime
from functools import partial

from engine.api import OpenHistory, open_history
from tui.commands.base import EXIT_FAILED, EXIT_OK, add_repo, in_loop, put, put_json, say
from tui.commands.history import moment
from tui.words.clean import clean
from tui.words.figures import count, some


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what is to be done."""
    add_repo(parser)
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    acts.add_parser("up", help="create its tables, or update them to this version")
    status = acts.add_parser(
        "status", help="show its size, and which runs of this repository are missing"
    )
    status.add_argument("--json", action="store_true", help="one JSON document on stdout")
    push = acts.add_parser("push", help="deliver the runs of this repository that it lacks")
    push.add_argument(
        "--again", action="store_true", help="check all runs, even those already delivered"
    )
    push.add_argument(
        "--everything", action="store_true", help="also deliver runs that were not shared"
    )
    prune = acts.add_parser("prune", help="remove old runs from it; your journals stay")
    prune.add_argument(
        "--before",
        type=moment,
        required=True,
        help="runs that began before this date or age: 2026-01-31, 365d",
    )


def run(args: argparse.Namespace) -> int:
    """Do it on the shared history."""
    return in_loop(partial(_act, args))


async def _act(args: argparse.Namespace) -> int:
    async with open_history(args.repo, is_shared=True) as history:
        if args.act == "up":
            return await _up(history)
        if args.act == "push":
            return await _push(args, history)
        if args.act == "prune":
            gone = await history.prune(args.before)
            put(f"{some(gone, 'run')} removed")
            return EXIT_OK
        return await _status(args, history)


async def _up(history: OpenHistory) -> int:
    before, after = await history.up()
    put(f"version {after}" + (f", was {before}" if before != after else ", as before"))
    return EXIT_OK


async def _push(args: argparse.Namespace, history: OpenHistory) -> int:
    delivered = await history.push(again=args.again, everything=args.everything)
    put(f"{some(delivered.events, 'event')} delivered")
    problems = (*delivered.refused, *delivered.unread)
    for problem in problems:
        say(clean(problem))
    return EXIT_FAILED if problems else EXIT_OK


async def _status(args: argparse.Namespace, history: OpenHistory) -> int:
    extent, behind = await history.extent(), await history.behind()
    if args.json:
        put_json({**asdict(extent), "url_env": history.url_env, "to_look_at": behind})
        return EXIT_OK
    put(f"version {extent.version}, at the address in {history.url_env}")
    put(
        f"{some(extent.runs, 'run')}, {some(extent.attempts, 'attempt')},"
        f" {some(extent.events, 'event')}"
    )
    if extent.newest is not None:
        began = datetime.fromtimestamp(extent.newest).astimezone()
        put(f"the newest run began {began:%Y-%m-%d %H:%M}")
    if behind:
        put(f"{count(len(behind))} of this repository's runs changed since they were delivered")
        say("a running engine delivers them; so does `plait db push`")
    return EXIT_OK

"""`plait rules`: the answers to permissions that are kept, and how to drop one."""

import argparse
from dataclasses import asdict
from functools import partial

from engine.api import look, reach
from engine.messages.asked import KeptAnswer
from engine.messages.commands import RevokeAnswer
from engine.messages.questions import ReadRun
from tui.commands.acting import tell_one
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json
from tui.words.clean import asked_line, clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the rule to drop; none lists them all."""
    add_repo(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument("--revoke", type=int, metavar="N", help="revoke the rule with this number")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """List the rules of a run, or drop one of them."""
    return in_loop(partial(_revoke if args.revoke is not None else _list, args))


async def _list(args: argparse.Namespace) -> int:
    async with look(args.repo) as (port, _):
        view = await port.ask(ReadRun(args.run))
    if args.json:
        put_json({"run": view.run, "rules": [asdict(rule) for rule in view.rules]})
        return EXIT_OK
    for rule in view.rules:
        put(_line(rule))
    if not view.rules:
        put(f"run {view.run} has no saved answers")
    return EXIT_OK


def _line(rule: KeptAnswer) -> str:
    where = f"{rule.scope} {rule.where}".strip()
    asked = asked_line(rule.pattern or rule.asked)
    return f"{rule.number:>3}  {clean(rule.answer):<8}{asked}  for the {clean(where)}"


async def _revoke(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        return await tell_one(port, RevokeAnswer(number=args.revoke, run=args.run))

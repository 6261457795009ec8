"""`plait check`: run a worker's check again, on the exact tree that would land or on its own."""

import argparse
from functools import partial

from engine.api import reach
from engine.messages.merging import CheckWorker
from engine.messages.results import CheckResult, verdict_of
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    add_repo,
    add_seen,
    in_loop,
    put,
    put_json,
    say,
    seen_of,
)
from tui.words.clean import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose check, on which tree, and how to tell."""
    add_repo(parser)
    parser.add_argument("worker", metavar="WORKER")
    add_seen(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument(
        "--own", action="store_true", help="the worker's own tree, not merged with the target"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Run it; 0 where it passed, 1 where it did not."""
    return in_loop(partial(_check, args))


async def _check(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        found = await port.ask(
            CheckWorker(args.run, args.worker, is_own=args.own, seen=seen_of(args))
        )
    put_json(_json(found)) if args.json else _tell(found)
    return EXIT_OK if found.passed else EXIT_FAILED


def _json(found: CheckResult) -> dict[str, object]:
    names = ("command", "passed", "tree", "exit_code", "summary", "duration_s")
    given = {name: getattr(found, name) for name in names}
    return {**given, "verdict": verdict_of(found, is_stale=False, has_claimed=False)}


def _tell(found: CheckResult) -> None:
    verdict = verdict_of(found, is_stale=False, has_claimed=False)
    said = f"{verdict} ({found.tree})" if verdict else f"failed on tree {found.tree}"
    put(f"{said}: {clean(found.command)}")
    if not found.passed:
        for line in found.summary.splitlines():
            say(clean(line))

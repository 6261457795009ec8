"""`plait history` and `plait stats`: what all runs came to, one's own or the team's."""

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial

from engine.api import Hit, OpenHistory, Query, open_history
from engine.messages.statistics import Axis, Figures
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json, say
from tui.words.clean import clean, clean_name
from tui.words.figures import UNKNOWN, cost, count, lasting, some, tokens

_SPANS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"(\d{1,6})([hdw])")
_FILTERS = {
    "person": "only attempts of this person",
    "agent": "only attempts of this agent",
    "model": "only attempts of this model",
    "step": "only attempts of this step",
    "outcome": "success, unchanged, failed, cancelled, skipped or pending",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take whose attempts, which of them, and how to tell it."""
    add_repo(parser)
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--all", action="store_true", help="search all your repositories")
    whose.add_argument("--team", action="store_true", help="search the shared history of the team")
    if parser.get_default("command") == "history":
        parser.add_argument(
            "words", nargs="*", metavar="WORD", help="each matches the beginning of a word"
        )
        parser.add_argument(
            "-n", dest="most", type=_some_of, default=50, help="how many (default: 50)"
        )
    else:
        axes = [str(axis) for axis in Axis]
        parser.add_argument(
            "--by", choices=axes, default="agent", help="group by this (default: agent)"
        )
        parser.add_argument("--words", default="", help="only attempts with these words")
    parser.add_argument("--repository", default="", help="only this repository, by its address")
    for name, purpose in _FILTERS.items():
        parser.add_argument(f"--{name}", default="", help=purpose)
    for name in ("since", "until"):
        parser.add_argument(
            f"--{name}", type=moment, help=f"{name} a date or an age: 2026-01-31, 12h, 30d, 8w"
        )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _some_of(text: str) -> int:
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError("expected a number of at least 1")


def moment(text: str) -> float:
    """A date, or how long ago, as seconds since 1970."""
    if found := _SPAN.fullmatch(text):
        return time.time() - int(found[1]) * _SPANS[found[2]]
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        reason = "expected a date such as 2026-01-31, or an age such as 30d"
        raise argparse.ArgumentTypeError(reason) from None


def run(args: argparse.Namespace) -> int:
    """Look, without changing anything."""
    return in_loop(partial(_stats if args.command == "stats" else _history, args))


def _query(args: argparse.Namespace, history: OpenHistory) -> Query:
    is_wide = args.all or args.team
    filters = {name: getattr(args, name) for name in _FILTERS}
    return Query(
        words=args.words if isinstance(args.words, str) else " ".join(args.words),
        repository=args.repository or ("" if is_wide else history.repository),
        since=args.since,
        until=args.until,
        most=getattr(args, "most", 0),
        **filters,
    )


async def _history(args: argparse.Namespace) -> int:
    async with open_history(args.repo, is_shared=args.team) as history:
        hits = await history.search(_query(args, history))
    if args.json:
        put_json([{**asdict(hit.run), "attempt": asdict(hit.attempt)} for hit in hits])
        return EXIT_OK
    for hit in hits:
        put(_line(hit, is_wide=args.all or args.team))
    if not hits:
        say("no attempt matches")
    elif len(hits) == args.most:
        say(f"only the newest {some(len(hits), 'attempt')}; `-n` shows more")
    return EXIT_OK


def _line(hit: Hit, *, is_wide: bool) -> str:
    one = hit.attempt
    began = datetime.fromtimestamp(one.began).astimezone().strftime("%Y-%m-%d %H:%M")
    name = f"{hit.run.run}/{one.worker}@{one.attempt}"
    parts = [began, f"{name:<34}"]
    if is_wide:
        parts.append(clean_name(f"{hit.run.repository} {hit.run.person}"))
    agent = " ".join(filter(None, (one.agent, one.model))) or "command"
    parts += [clean_name(agent), f"landed {one.landed[:10]}" if one.landed else one.outcome]
    if one.usd:
        parts.append(cost(one.usd))
    parts.append(clean(" ".join((one.prompt or one.error).split()))[:80])
    return "  ".join(parts).rstrip()


async def _stats(args: argparse.Namespace) -> int:
    async with open_history(args.repo, is_shared=args.team) as history:
        found = await history.figures(Axis(args.by), _query(args, history))
    if args.json:
        put_json([{**asdict(one), "usd_per_landed": one.usd_per_landed} for one in found])
        return EXIT_OK
    if not found:
        say("no attempt matches")
        return EXIT_OK
    for line in _table([_HEAD, *map(_row, found)]):
        put(line)
    return EXIT_OK


_HEAD = (
    *("", "runs", "attempts", "success", "1st check", "conflicts", "kept", "review"),
    *("landed", "cost", "tokens", "cost/landed"),
)


def _row(one: Figures) -> tuple[str, ...]:
    return (
        clean_name(one.name) or UNKNOWN,
        count(one.runs),
        count(one.attempts),
        _share(one.success, one.attempts),
        _share(one.first_passed, one.first_checks),
        count(one.conflicts),
        _share(one.kept, one.proposed),
        lasting(one.review_s),
        count(one.landed),
        cost(one.usd),
        tokens(one.tokens),
        cost(one.usd_per_landed),
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part // whole}%" if whole else UNKNOWN


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns: the first one left, the figures right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *figures in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines

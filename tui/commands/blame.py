"""`plait blame`: which attempt wrote a line, from which prompt, how it was checked and landed."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial

from engine.api import BlamedLines, Hit, blame
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json
from tui.words.clean import clean, clean_name
from tui.words.figures import cost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the file and its lines."""
    add_repo(parser)
    parser.add_argument("place", type=_place, metavar="FILE[:LINE[-LINE]]")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _place(text: str) -> tuple[str, tuple[int, int] | None]:
    """The file, and the lines that are named after it."""
    path, _, said = text.rpartition(":")
    first, _, last = said.partition("-")
    if not path or not first.isdecimal() or (last and not last.isdecimal()):
        return text, None
    return path, (int(first), int(last or first))


def run(args: argparse.Namespace) -> int:
    """Look, without changing anything."""
    return in_loop(partial(_blame, args))


async def _blame(args: argparse.Namespace) -> int:
    path, lines = args.place
    found = await blame(args.repo, path, lines)
    if args.json:
        put_json([asdict(one) for one in found])
        return EXIT_OK
    for line in _told(clean_name(path), found):
        put(line)
    return EXIT_OK


def _told(path: str, found: Sequence[BlamedLines]) -> list[str]:
    """Each piece of the file, and what is known of it; an attempt's story once."""
    told, lines = set[str](), []
    for one in found:
        numbers = str(one.first) if one.first == one.last else f"{one.first}-{one.last}"
        lines.append(f"{path}:{numbers}  {_source(one)}")
        if one.landing is not None and one.landing.commit not in told:
            told.add(one.landing.commit)
            lines += [f"  {line}" for line in _story(one)]
    return lines


def _source(one: BlamedLines) -> str:
    if one.commit is None:
        return "not committed"
    if one.landing is None:
        return f"{one.commit.commit[:10]}  {_who(one.commit.author, one.commit.at)}"
    name = f"{one.landing.worker}@{one.landing.attempt} of run {one.landing.run}"
    return f"{one.commit.commit[:10]}  {clean_name(name)}"


def _who(name: str, at: float) -> str:
    day = datetime.fromtimestamp(at).astimezone()
    return f"{clean_name(name)}, {day:%Y-%m-%d}"


def _story(one: BlamedLines) -> list[str]:
    landing = one.landing
    if landing is None:
        return []
    lines = [f"landed as {landing.commit[:10]} by {_who(landing.author, landing.at)}"]
    if landing.check:
        lines.append(f"check {clean(landing.check)}")
    if one.hit is None:
        return [*lines, "no history here contains its run"]
    return [*lines, *_attempt(one.hit)]


def _attempt(hit: Hit) -> list[str]:
    one = hit.attempt
    agent = clean_name(" ".join(filter(None, (one.agent, one.model))) or "a command")
    spent = f", {cost(one.usd)}" if one.usd else ""
    lines = [f"written by {agent}{spent}"]
    if one.reviewer:
        lines.append(f"resolved by {clean_name(one.reviewer)}")
    if one.prompt:
        lines.append(f"prompt: {clean(' '.join(one.prompt.split()))[:200]}")
    return lines

"""`plait sites` and `plait site check`: the places where workers can live, and trying one out."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from engine.api import SiteEntry, describe_sites, try_site
from tui.commands.base import EXIT_FAILED, EXIT_OK, in_loop, put, put_json
from tui.words.clean import clean

_MB_IN_A_GB = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take which one, and how to tell it."""
    if parser.get_default("command") == "site":
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser("check", help="let a worker live there from its start to its end")
        check.add_argument("name", metavar="NAME", help="`local`, or `child`")
        check.add_argument("--json", action="store_true", help="one JSON document on stdout")
    else:
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """List them, or try one."""
    return in_loop(partial(_check if args.command == "site" else _list, args))


async def _list(args: argparse.Namespace) -> int:
    sites = await describe_sites()
    if args.json:
        put_json([asdict(site) for site in sites])
    for site in () if args.json else sites:
        for line in _lines(site):
            put(line)
    return EXIT_FAILED if any(site.problem for site in sites) else EXIT_OK


def _lines(site: SiteEntry) -> Iterator[str]:
    yield site.name
    if site.report is None:
        yield f"  {clean(site.problem)}"
        return
    has = site.report.capacity
    memory, free = has.memory_mb // _MB_IN_A_GB, has.memory_available_mb // _MB_IN_A_GB
    disk = has.disk_free_mb // _MB_IN_A_GB
    yield f"  has      {has.cores} cores, {memory} GB ({free} free), {disk} GB of disk free"
    yield f"  can      {', '.join(site.abilities)}"
    for row in site.report.rows:
        yield f"  {row.dimension:<8} {row.level:<9} {row.mechanism}"
    for name, version in site.report.versions.items():
        yield f"  {name:<8} {clean(version)}"


async def _check(args: argparse.Namespace) -> int:
    tried = await try_site(args.name)
    if args.json:
        put_json([asdict(one) for one in tried])
    for one in () if args.json else tried:
        put(f"{'failed' if one.problem else 'ok':<6} {one.seconds:6.2f} s  {one.what}")
        if one.problem:
            put(f"                 {clean(one.problem)}")
    return EXIT_FAILED if any(one.problem for one in tried) else EXIT_OK

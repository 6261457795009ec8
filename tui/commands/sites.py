"""`plait sites` and `plait site`: the places where workers can live, and trying one out."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from engine.api import (
    LOCAL_CLUSTER,
    Plan,
    SiteEntry,
    describe_sites,
    end_cluster,
    plans_in,
    start_cluster,
    try_site,
)
from tui.commands.base import EXIT_FAILED, EXIT_OK, in_loop, put, put_json
from tui.words.clean import clean
from tui.words.looks import LEVELS

MANIFEST = "plait.yaml"
_MB_IN_A_GB = 1024
_RAYS_OWN = ("node:", "object_store_memory")
"""Resources that Ray counts for itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take which one, and how to tell it."""
    if parser.get_default("command") == "site":
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser("check", help="run a test worker there from start to end")
        help_name = "`local`, `child`, a site of the manifest, or `ray:ADDRESS`"
        check.add_argument("name", metavar="NAME", help=help_name)
        for act, what in (("up", "start a Ray cluster on this machine only"), ("down", "stop it")):
            other = acts.add_parser(act, help=what)
            other.add_argument("name", metavar="NAME", choices=[LOCAL_CLUSTER], help=LOCAL_CLUSTER)
        parser = check
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument(
        "--file", default=MANIFEST, metavar="FILE", help="the manifest that adds sites"
    )


def run(args: argparse.Namespace) -> int:
    """List them, try one, or start and end the one for trying."""
    acts = {"check": _check, "up": _up, "down": _down}
    return in_loop(partial(acts[args.act] if args.command == "site" else _list, args))


def _plans(args: argparse.Namespace) -> tuple[Plan, ...]:
    """Return the plans of the manifest, which may add sites; none where there is no manifest."""
    path = Path(args.file)
    if args.file == MANIFEST and not path.is_file():
        return ()
    return plans_in(path)


async def _list(args: argparse.Namespace) -> int:
    sites = await describe_sites(plans=_plans(args))
    if args.json:
        put_json([asdict(site) for site in sites])
    for site in () if args.json else sites:
        for line in _lines(site):
            put(line)
    return EXIT_FAILED if any(site.problem for site in sites) else EXIT_OK


def _lines(site: SiteEntry) -> Iterator[str]:
    yield site.name
    if site.problem:
        yield f"  {clean(site.problem)}"
    if site.nodes:
        yield f"  can      {', '.join(site.abilities)}"
        yield f"  queued   {_waiting(site)}"
    for node in site.nodes:
        going = " (being drained)" if node.is_leaving else ""
        yield f"  {clean(node.name)}{going}: {', '.join(_shares(node.total, node.free))}"
        machine = site.machines.get(node.name)
        if machine is None:
            yield "    no workers run there"
        elif machine.problem:
            yield f"    {clean(machine.problem)}"
        else:
            yield from (f"  {line}" for line in _machine(machine))
    if site.report is not None:
        yield from _machine(site)
        yield f"  can      {', '.join(site.abilities)}"


def _machine(site: SiteEntry) -> Iterator[str]:
    """Yield what a machine has, how it holds each dimension, and its versions."""
    report = site.report
    if report is None:
        return
    has = report.capacity
    memory, free = has.memory_mb // _MB_IN_A_GB, has.memory_available_mb // _MB_IN_A_GB
    disk = has.disk_free_mb // _MB_IN_A_GB
    yield f"  has      {has.cores} cores, {memory} GB ({free} free), {disk} GB of disk free"
    for row in report.rows:
        yield f"  {row.dimension:<8} {LEVELS[row.level][0]:<12} {row.mechanism}"
    for name, version in report.versions.items():
        yield f"  {name:<8} {clean(version)}"


def _waiting(site: SiteEntry) -> str:
    """Return how many workers wait for room, and what each reserves."""
    if not site.queued:
        return "no workers are queued"
    needs = Counter(", ".join(_needed(one.needs)) for one in site.queued)
    each = "; ".join(f"{count} for {what}" for what, count in needs.items())
    waits = "workers wait" if len(site.queued) > 1 else "worker waits"
    return f"{len(site.queued)} {waits} for room: {each}"


def _needed(needs: Mapping[str, float]) -> Iterator[str]:
    for name, amount in sorted(needs.items()):
        is_memory = name == "memory"
        yield f"{amount / 1024**2:.0f} MB" if is_memory else f"{amount:g} {clean(name)}"


def _shares(total: Mapping[str, float], free: Mapping[str, float]) -> Iterator[str]:
    """Yield what of a node is used, and all that it has."""
    for name, most in sorted(total.items()):
        used = most - free.get(name, 0.0)
        if name == "memory":
            yield f"memory {used / 1024**3:.3g} of {most / 1024**3:.3g} GB used"
        elif not name.startswith(_RAYS_OWN):
            yield f"{clean(name)} {used:.3g} of {most:.3g} used"


async def _check(args: argparse.Namespace) -> int:
    tried = await try_site(args.name, plans=_plans(args))
    if args.json:
        put_json([asdict(one) for one in tried])
    for one in () if args.json else tried:
        put(f"{'failed' if one.problem else 'ok':<6} {one.seconds:6.2f} s  {one.what}")
        if one.problem:
            put(f"                 {clean(one.problem)}")
    return EXIT_FAILED if any(one.problem for one in tried) else EXIT_OK


async def _up(args: argparse.Namespace) -> int:
    made = await start_cluster()
    put(f"a Ray cluster of this machine listens at {made.address}; it asks for a token")
    put("In the shell that runs plait:")
    put(f"  export {' '.join(f'{name}={value}' for name, value in made.environment.items())}")
    put("In the manifest, below `runtime`:")
    put(f'  sites: {{{args.name}: {{ray: {{address: "{made.address}"}}}}}}')
    put(f"Try it: `plait site check ray:{made.address}`. End it: `plait site down {args.name}`.")
    return EXIT_OK


async def _down(args: argparse.Namespace) -> int:
    ended = await end_cluster()
    put(f"{args.name} has ended" if ended else f"{args.name} was not running")
    return EXIT_OK

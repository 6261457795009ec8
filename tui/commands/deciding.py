"""`plait choose`, `approve`, `reject`, `land`: what a reviewer decides."""

import argparse
import json
from functools import partial

from engine import commands as c
from engine import events as ev
from engine.api import EnginePort, reach
from tui.commands.acting import tell, tell_one
from tui.commands.base import EXIT_FAILED, EXIT_OK, EXIT_WAITS, add_repo, in_loop, put, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom, and for `land` where and how."""
    add_repo(parser)
    name = parser.get_default("command")
    parser.add_argument("--run", default="", help="which run; the latest where none is named")
    parser.add_argument("workers", nargs="+", metavar="WORKER")
    if name == "land":
        parser.add_argument("--to", metavar="BRANCH", help="in place of the run's target")
        parser.add_argument("--style", choices=("merge", "squash", "rebase"))
        parser.add_argument("--despite-check", action="store_true", help="land red, and say so")
        parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Carry the decision out."""
    if args.command == "land":
        return in_loop(partial(_land_all, args))
    kinds: dict[str, type[c.Choose | c.Approve | c.Reject]] = {
        "choose": c.Choose,
        "approve": c.Approve,
        "reject": c.Reject,
    }
    kind = kinds[args.command]
    commands = [kind(worker=worker, run=args.run) for worker in args.workers]
    return in_loop(partial(tell, args.repo, commands))


async def _land_all(args: argparse.Namespace) -> int:
    """One after another; a conflict ends with 3, a refusal with 1."""
    async with reach(args.repo) as (port, has_lived):
        code = EXIT_OK
        for worker in args.workers:
            code = await _land(port, args, worker)
            if code != EXIT_OK:
                break
        if not has_lived:
            await port.wait_idle()
    return code


async def _land(port: EnginePort, args: argparse.Namespace, worker: str) -> int:
    run = await port.resume((await port.view(args.run or _run_of(worker))).run)
    view = await port.view(run)
    tail = worker.removeprefix(f"{run}/")
    name = next((w.worker for w in view.workers if w.worker.endswith(tail)), tail)
    events = port.events(view.seq, run=run)
    command = c.Land(
        worker=name,
        run=run,
        to=args.to,
        style=args.style,
        is_despite_check=args.despite_check,
    )
    code = await tell_one(port, command)
    if code != EXIT_OK:
        return code
    async for told in events:
        is_its = getattr(told.event, "worker", None) == name
        found = _told_of_landing(told.event, is_json=args.json) if is_its else None
        if found is not None:
            return found
    return EXIT_FAILED


def _run_of(worker: str) -> str:
    return worker.split("/", maxsplit=1)[0] if worker.count("/") > 1 else ""


def _told_of_landing(event: ev.Event, *, is_json: bool) -> int | None:
    match event:
        case ev.Landed():
            fields = {"worker": event.worker, "target": event.target, "commit": event.new}
            put(json.dumps({"landed": True, **fields}) if is_json else event.new)
            return EXIT_OK
        case ev.ConflictsFound():
            if is_json:
                put(json.dumps({"landed": False, "conflicts": event.paths}))
            say(f"{event.worker} conflicts with the target in {', '.join(event.paths)}")
            return EXIT_WAITS
        case ev.WorkerMoved(after="REVIEWING"):
            say(f"{event.worker} was not landed: see `plait status`")
            return EXIT_FAILED
        case _:
            return None

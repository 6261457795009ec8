"""`plait choose`, `approve`, `reject`, `land`: what a reviewer decides."""

import argparse
from functools import partial
from typing import Any

from engine.api import (
    EnginePort,
    LandingEnd,
    LandingOrder,
    land_batch,
    land_queue,
    landing_end,
    reach,
)
from engine.errors import WorkspaceError
from engine.ids import WorkerId, meant
from engine.messages import commands as c
from engine.messages.merging import PlanLandings
from engine.messages.questions import ReadRun, ResumeRun, WaitIdle
from engine.messages.results import RunView
from engine.spec.nearest import unmeant
from tui.commands.acting import tell
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    EXIT_WAITS,
    add_repo,
    add_seen,
    in_loop,
    put,
    put_json,
    say,
    seen_of,
)
from tui.words.clean import clean, clean_name
from tui.words.figures import some

_CUT = (
    "its diff is too long to show in full; pass the tree that you looked at with --seen, or use "
    "--despite-cut"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom, and for `land` where and how."""
    add_repo(parser)
    name = parser.get_default("command")
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument("workers", nargs="+", metavar="WORKER")
    add_seen(parser)
    if name == "land":
        parser.add_argument("--to", metavar="BRANCH", help="instead of the run's target")
        parser.add_argument("--style", choices=("merge", "squash", "rebase"))
        parser.add_argument(
            "--order",
            choices=[str(order) for order in LandingOrder],
            default=str(LandingOrder.PLAN),
            help="order of several: as planned, or fewest conflicts first",
        )
        parser.add_argument(
            "--edits",
            type=c.Edits,
            choices=list(c.Edits),
            default=c.Edits.REFUSE,
            metavar="|".join(c.Edits),
            help="if your uncommitted edits are in the way: keep them on top, commit "
            "them first, or wait",
        )
        parser.add_argument(
            "--batch",
            action="store_true",
            help="one check for all of them together; if it fails, plait bisects the batch",
        )
        parser.add_argument(
            "--despite-check",
            action="store_true",
            help="land although the check failed; the commit says so",
        )
        parser.add_argument(
            "--despite-cut",
            action="store_true",
            help="without --seen, land a change whose diff is too long to show in full",
        )
        parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Carry the decision out."""
    if args.seen is not None and len(args.workers) > 1:
        say("--seen takes the change of one worker only")
        return EXIT_USAGE
    if args.command == "land":
        return in_loop(partial(_land_all, args))
    kinds: dict[str, type[c.Choose | c.Approve | c.Reject]] = {
        "choose": c.Choose,
        "approve": c.Approve,
        "reject": c.Reject,
    }
    kind = kinds[args.command]
    seen = seen_of(args)
    commands = [kind(worker=worker, run=args.run, seen=seen) for worker in args.workers]
    return in_loop(partial(tell, args.repo, commands))


async def _land_all(args: argparse.Namespace) -> int:
    """One after another; what cannot land is set aside: 3 where one conflicts, 1 where refused."""
    async with reach(args.repo) as (port, has_lived):
        run = await port.ask(
            ResumeRun((await port.ask(ReadRun(args.run or run_of(args.workers[0])))).run)
        )
        workers = await _in_order(port, args, run)
        cut = await _unread(port, args, run)
        commands = [
            c.Land(
                worker=worker,
                run=run,
                to=args.to,
                style=args.style,
                is_despite_check=args.despite_check,
                edits=args.edits,
                seen=seen_of(args),
            )
            for worker in workers
            if worker not in cut
        ]
        queue = land_batch if args.batch and not args.despite_check else land_queue
        ends = [LandingEnd(worker=worker, reason=_CUT) for worker in workers if worker in cut]
        ends = [end for end in ends if _told(end, run, args)]
        async for end in queue(port, commands):
            whole = await _taken_up(args.repo, run, end)
            ends += [whole] if _told(whole, run, args) else []
        if args.json:
            put_json(_json(ends, args))
        if not has_lived:
            await port.ask(WaitIdle())
    if all(end.is_landed for end in ends):
        return EXIT_OK
    if any(end.is_changed for end in ends):
        return EXIT_USAGE
    return EXIT_FAILED if any(not (end.is_landed or end.conflicts) for end in ends) else EXIT_WAITS


async def _taken_up(repo: str, run: str, end: LandingEnd) -> LandingEnd:
    """Return the end of a landing, from the engine that goes on with it where one was lost."""
    while end.lost_at is not None:
        async with reach(repo) as (port, has_lived):
            await port.ask(ResumeRun(run))
            end = await landing_end(port, run, end.worker, after_seq=end.lost_at)
            if not has_lived:
                await port.ask(WaitIdle())
    return end


async def _unread(port: EnginePort, args: argparse.Namespace, run: str) -> set[str]:
    """Return the workers whose change nobody can have read whole, where nobody vouches for it."""
    if args.despite_cut or args.seen is not None:
        return set()
    workers = (await port.ask(ReadRun(run))).workers
    return {w.worker for w in workers if w.change is not None and w.change.is_cut}


async def _in_order(port: EnginePort, args: argparse.Namespace, run: str) -> list[str]:
    """The workers by their full names, in the order asked for."""
    view = await port.ask(ReadRun(run))
    names = [full_name(view, worker.removeprefix(f"{run}/")) for worker in args.workers]
    places = [w.worker for w in view.workers]
    names = sorted(dict.fromkeys(names), key=places.index)
    if args.order == LandingOrder.PLAN or len(names) == 1:
        return names
    able = [name for name in names if view.worker(name).change is not None]
    order = await port.ask(PlanLandings(run, able, LandingOrder(args.order)))
    for planned in order:
        told = f"{some(planned.hunks, 'conflict')} expected" if planned.hunks else "no conflict"
        say(f"{planned.worker}: {told}")
    return [planned.worker for planned in order] + [name for name in names if name not in able]


def full_name(view: RunView, name: str) -> str:
    """The one worker that a name means: nothing lands where one of several is a slip."""
    labels = {WorkerId.parse(w.worker): w.label for w in view.workers}
    found = meant(labels, name.partition("@")[0])
    if len(found) == 1:
        return str(found[0])
    reason, hint = unmeant(name, found, labels)
    raise WorkspaceError(reason, hint=hint)


def run_of(worker: str) -> str:
    """Return the run that a worker's name begins with; empty where it names none."""
    return worker.split("/", maxsplit=1)[0] if worker.count("/") > 1 else ""


def _told(end: LandingEnd, run: str, args: argparse.Namespace) -> bool:
    """Say at once what became of one; the JSON of all follows at the end."""
    if end.conflicts:
        say(
            f"{end.worker} conflicts with the target in {', '.join(map(clean_name, end.conflicts))}"
        )
        say(
            f"Resolve them with `plait review {run}/{end.worker}`, or without the console "
            "with `plait resolve`."
        )
    elif not end.is_landed:
        say(f"{end.worker} was not landed: {clean(end.reason)}")
    elif not args.json:
        put(end.commit or "")
        say(f"{end.worker} landed on {end.target}; `plait undo {run}/{end.worker}` undoes it")
        if end.note:
            say(clean(end.note))
    return True


def _json(ends: list[LandingEnd], args: argparse.Namespace) -> Any:
    rows = [
        {
            "worker": end.worker,
            "landed": end.is_landed,
            "target": end.target,
            "commit": end.commit,
            "conflicts": list(end.conflicts),
            "reason": end.reason,
            "note": end.note,
        }
        for end in ends
    ]
    return rows[0] if len(args.workers) == 1 else rows

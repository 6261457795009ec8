"""`plait logs`: what a worker wrote, as text, or byte for byte as it came."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import anyio

from engine.api import EnginePort
from engine.messages.events import OutputAppended, WorkerMoved
from engine.messages.logs import LogKind, LogLine
from engine.messages.merging import ListMoments
from engine.messages.questions import ReadLog, ReadRun
from tui.commands.base import EXIT_OK, add_repo, in_loop, part_name, put, say
from tui.commands.shells import reached, told
from tui.words.clean import clean

_MARKS = {
    LogKind.SAYS: "",
    LogKind.OUTPUT: "  ",
    LogKind.THOUGHT: "· ",
    LogKind.TOOL: "$ ",
    LogKind.TOOL_END: "  ",
    LogKind.ERROR: "! ",
    LogKind.NOTE: "- ",
    LogKind.YOU: "> ",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose log, and how much of it."""
    add_repo(parser)
    parser.add_argument("worker", metavar="WORKER")
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument("--attempt", type=int, help="instead of the newest")
    parser.add_argument("-f", "--follow", action="store_true", help="follow until it ends")
    parser.add_argument("--raw", action="store_true", help="the agent's output, byte for byte")
    about = "list its checkpoints, for `plait retry --at`"
    parser.add_argument("--moments", action="store_true", help=about)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    return in_loop(partial(act, args))


def is_quick(args: argparse.Namespace) -> bool:
    """Return True if it is text that is there already."""
    return not (args.follow or args.raw)


async def act(args: argparse.Namespace) -> int:
    """Print it, in an event loop."""
    part_name(args)
    if args.moments:
        return await _print_moments(args)
    return await (_print_raw if args.raw else _print)(args)


async def _print_moments(args: argparse.Namespace) -> int:
    async with reached(args.repo) as (port, _):
        moments = await port.ask(ListMoments(args.run, args.worker))
    wanted = [one for one in moments if args.attempt in {None, one.attempt}]
    for one in wanted:
        then = datetime.fromtimestamp(one.at, UTC).astimezone()
        put(f"{then:%Y-%m-%d %H:%M:%S}  attempt {one.attempt}  {one.commit[:12]}")
    if not wanted:
        say("no checkpoint yet: plait saves checkpoints while an agent works")
    return EXIT_OK


async def _print_raw(args: argparse.Namespace) -> int:
    from engine.api import raw_output  # noqa: PLC0415  it loads all that tells the machine

    data = await raw_output(args.repo, args.run, args.worker, args.attempt)
    sys.stdout.buffer.write(data)
    return EXIT_OK


async def _print(args: argparse.Namespace) -> int:
    async with reached(args.repo) as (port, _):
        after = await _print_new(port, args, 0)
        if args.follow:
            await _follow(port, args, after)
    return EXIT_OK


async def _print_new(port: EnginePort, args: argparse.Namespace, after: int) -> int:
    chunk = await port.ask(ReadLog(args.run, args.worker, args.attempt, after))
    await told(partial(_put_lines, chunk.lines, is_live=args.follow))
    return -1 if chunk.is_end else chunk.next_offset


def _put_lines(lines: Sequence[LogLine], *, is_live: bool) -> None:
    for line in lines:
        put(log_text(line))
    if is_live:  # an engine that runs this for a shell has another stdout, and follows nothing
        sys.stdout.flush()


async def _follow(port: EnginePort, args: argparse.Namespace, after: int) -> None:
    view = await port.ask(ReadRun(args.run))
    news = port.events(view.seq, run=view.run)
    while after >= 0:
        with anyio.move_on_after(1.0):
            async for told in news:
                if isinstance(told.event, OutputAppended | WorkerMoved):
                    break
        after = await _print_new(port, args, after)


def log_text(line: LogLine) -> str:
    """One line of a log for a terminal: nothing in it can act on the terminal."""
    return f"{_MARKS[line.kind]}{clean(line.text)}"

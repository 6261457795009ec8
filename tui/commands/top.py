"""`plait top`: where CPU time goes now, for plait itself and for each worker."""

import argparse
import shutil
import signal
import sys
from functools import partial

import anyio

from engine.api import look, plain_errors
from engine.messages.questions import ReadEngine
from engine.messages.timing import ReadCosts
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json, say
from tui.commands.shells import Asked
from tui.commands.streams import is_terminal
from tui.words.costs import Look, costs_json, costs_text

_FIRST_S = 0.5
_BEGIN, _END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST = "\x1b[H", "\x1b[J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how often, and how to tell it."""
    add_repo(parser)
    parser.add_argument(
        "--every", type=_seconds, default=1.0, metavar="S", help="seconds (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0.1 <= seconds <= 3600:  # noqa: PLR2004  the sentence below says it
        return seconds
    raise argparse.ArgumentTypeError("expected a number from 0.1 to 3600")


def run(args: argparse.Namespace) -> int:
    """Look until interrupted; once where nobody watches."""
    return in_loop(partial(_top, args))


async def _top(args: argparse.Namespace) -> int:
    async with look(args.repo) as (port, has_lived):
        if not has_lived:
            say("no engine runs for this repository, so there is nothing to measure")
            if args.json:
                put_json({})
            return EXIT_OK
        if is_terminal() and not args.json:
            await _watch_until_left(port, args.every)
            return EXIT_OK
        before = await _look(port)
        await anyio.sleep(args.every)
        now = await _look(port)
    if args.json:
        put_json(costs_json(before, now))
    else:
        put("\n".join(costs_text(before, now, 200, 1000)))
    return EXIT_OK


async def _look(port: Asked) -> Look:
    return Look(await port.ask(ReadEngine()), await port.ask(ReadCosts()))


async def _watch_until_left(port: Asked, every: float) -> None:
    """Draw a screen until a signal comes, which is the way to leave it."""
    with plain_errors(), anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, port, every)
            await anext(signals)
            group.cancel_scope.cancel()


async def _watch(port: Asked, every: float) -> None:
    """Draw a screen again and again, and leave the terminal as it was."""
    before, pause = await _look(port), min(_FIRST_S, every)
    sys.stdout.write(_BEGIN)
    try:
        while True:
            await anyio.sleep(pause)
            now, pause = await _look(port), every
            width, height = shutil.get_terminal_size()
            rows = costs_text(before, now, width, height)
            lines = "\r\n".join(f"{row}\x1b[K" for row in rows)
            sys.stdout.write(f"{_HOME}{lines}{_REST}")
            sys.stdout.flush()
            before = now
    finally:
        sys.stdout.write(_END)
        sys.stdout.flush()

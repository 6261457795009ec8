"""`plait replay`: a run of the past, played again in the console; nothing in it can be changed."""

import argparse
import sys
from functools import partial

from engine.api import open_replay
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and how fast."""
    add_repo(parser)
    parser.add_argument("run_id", nargs="?", default="", metavar="RUN", help="the latest if none")
    parser.add_argument("--speed", type=_speed, default=1.0, metavar="X", help="times as fast")
    parser.add_argument("--theme", help="one of the themes, or one of your own")


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed <= 10_000:  # noqa: PLR2004  beyond it nobody sees anything
        raise ValueError(text)
    return speed


def run(args: argparse.Namespace) -> int:
    """Play it."""
    return in_loop(partial(_play, args))


async def _play(args: argparse.Namespace) -> int:
    if not sys.stdout.isatty():
        say("a replay needs a terminal; `plait logs` and `plait status` need none")
        return EXIT_USAGE
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  loaded only when shown

    async with open_replay(args.repo, args.run_id) as replay:
        replay.speed = args.speed
        options = Options(config=config_home(), clock=replay.now, player=replay)
        await PlaitApp(replay, theme=args.theme, options=options).run_async()
    return EXIT_OK

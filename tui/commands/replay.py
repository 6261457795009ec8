"""`plait replay`: a run of the past, played again in the console; nothing in it can be changed."""

import argparse
from functools import partial
from pathlib import Path

from engine.api import exported_file, open_exported, open_replay
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, run_console, say
from tui.commands.streams import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the run or the exported file, and the speed."""
    add_repo(parser)
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="RUN|FILE",
        help="a run (default: the latest), or a folder that `plait export` wrote",
    )
    parser.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="X",
        help="speed, such as 4 for four times as fast",
    )
    parser.add_argument("--theme", help="a theme, built in or your own")


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed <= 10_000:  # noqa: PLR2004  beyond it nobody sees anything
        raise ValueError(text)
    return speed


def run(args: argparse.Namespace) -> int:
    """Play it."""
    file = exported_file(args.name) if args.name else None
    return in_loop(partial(_play, args, file))


async def _play(args: argparse.Namespace, file: Path | None) -> int:
    if not is_terminal():
        say("a replay needs a terminal; `plait logs` and `plait status` need none")
        return EXIT_USAGE
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  loaded only when shown

    source = open_exported(file) if file else open_replay(args.repo, args.name)
    async with source as replay:
        replay.speed = args.speed
        options = Options(config=config_home(), clock=replay.now, player=replay)
        await run_console(PlaitApp(replay, theme=args.theme, options=options))
    return EXIT_OK

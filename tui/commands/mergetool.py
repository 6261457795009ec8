"""`plait mergetool`: one conflicted file, decided for `git mergetool`.

git config merge.tool plait
git config mergetool.plait.cmd 'plait mergetool "$BASE" "$LOCAL" "$REMOTE" "$MERGED"'
git config mergetool.plait.trustExitCode true
"""

import argparse
from functools import partial
from pathlib import Path

from engine.api import ToolFiles, ToolMerge
from tui.commands.base import EXIT_FAILED, EXIT_OK, EXIT_USAGE, in_loop, say
from tui.commands.resolve import add_decisions, contradiction, decides
from tui.commands.review import settle, show
from tui.commands.streams import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files as git names them."""
    for name, what in (
        ("base", "the common ancestor; empty if there is none"),
        ("local", "this side"),
        ("remote", "the other side"),
        ("merged", "where the result is written"),
    ):
        parser.add_argument(name, type=Path, metavar=name.upper(), help=what)
    add_decisions(parser)


def run(args: argparse.Namespace) -> int:
    """Decide it: 0 the result is written, 1 it is not."""
    if why := contradiction(args):
        say(why)
        return EXIT_USAGE
    return EXIT_OK if in_loop(partial(_one, args)) == EXIT_OK else EXIT_FAILED


async def _one(args: argparse.Namespace) -> int:
    files = ToolFiles(base=args.base, local=args.local, remote=args.remote, merged=args.merged)
    merge = await ToolMerge.begin(files)
    if is_terminal() and not decides(args):
        return await show(merge)
    return await settle(merge, args)

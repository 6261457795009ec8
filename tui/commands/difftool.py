"""`plait difftool`: two files or folders in the diff screen, for `git difftool`.

git config diff.tool plait
git config difftool.plait.cmd 'plait difftool "$LOCAL" "$REMOTE" "$MERGED"'
git difftool --dir-diff main feature
"""

import argparse
from functools import partial
from pathlib import Path

from engine.api import DiffPort, files_beside
from tui.commands.base import EXIT_OK, in_loop, put
from tui.commands.diff import patch_lines, stat_text
from tui.commands.review import opened
from tui.commands.streams import is_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the sides as git names them."""
    parser.add_argument("local", type=Path, metavar="LOCAL", help="the old file, or folder")
    parser.add_argument("remote", type=Path, metavar="REMOTE", help="the new one")
    parser.add_argument("name", nargs="?", default="", metavar="MERGED", help="the name to show")
    parser.add_argument("--stat", action="store_true", help="only the counts")


def run(args: argparse.Namespace) -> int:
    """Show it; without a terminal print it."""
    return in_loop(partial(_shown, args))


async def _shown(args: argparse.Namespace) -> int:
    are_folders = args.remote.is_dir() or args.local.is_dir()
    name = "" if are_folders else args.name
    beside = await files_beside(args.local, args.remote, name=name)
    if is_terminal() and not args.stat:
        await opened(DiffPort(beside), begins_on="diff")
        return EXIT_OK
    change = await beside.diff()
    put(stat_text(change) if args.stat else "\n".join(patch_lines(change)))
    return EXIT_OK

"""`plait export`: a run as a folder of plain files: report, events, logs, patches."""

import argparse
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.api import export_run
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, put, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to."""
    add_repo(parser)
    parser.add_argument("run_id", nargs="?", default="", metavar="RUN", help="the latest if none")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="in place of ./plait-RUN")
    parser.add_argument(
        "--cast", action="store_true", help="with an asciicast of what each attempt showed"
    )


def run(args: argparse.Namespace) -> int:
    """Write it, and say where on stdout."""
    return in_loop(partial(_export, args))


async def _export(args: argparse.Namespace) -> int:
    run_id, files = await export_run(args.repo, args.run_id, with_casts=args.cast)
    folder: Path = args.to or Path(f"plait-{run_id}")
    try:
        await anyio.to_thread.run_sync(_write, folder, files)
    except FileExistsError:
        say(f"there is a {folder} already; nothing is written over")
        return EXIT_USAGE
    put(str(folder))
    return EXIT_OK


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

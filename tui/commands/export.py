"""`plait export`: a run as a folder of plain files: report, events, logs, patches."""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.api import export_run
from engine.private import private_folder, write_private
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, put, say
from tui.words.clean import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the run, and where to write it."""
    add_repo(parser)
    parser.add_argument(
        "run_id", nargs="?", default="", metavar="RUN", help="which run (default: the latest)"
    )
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="instead of ./plait-RUN")
    parser.add_argument(
        "--cast", action="store_true", help="add an asciicast of each attempt's output"
    )
    parser.add_argument(
        "--raw", action="store_true", help="do not replace secrets; asks first, unless --yes"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    """Write it, and say where on stdout, and how many secrets were replaced."""
    if args.raw and not args.yes and not _is_wanted():
        say("nothing was exported")
        return EXIT_USAGE
    return in_loop(partial(_export, args))


def _is_wanted() -> bool:
    """Ask a human; where there is none, nobody has said yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("--raw exports tokens and passwords in clear text; add --yes if you want that")
        return False
    sys.stderr.write("export tokens and passwords in clear text? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


async def _export(args: argparse.Namespace) -> int:
    run_id, files = await export_run(args.repo, args.run_id, with_casts=args.cast, is_raw=args.raw)
    folder: Path = args.to or Path(f"plait-{run_id}")
    try:
        await anyio.to_thread.run_sync(_write, folder, files)
    except FileExistsError:
        say(f"{folder} exists already and is not overwritten")
        return EXIT_USAGE
    for line in _redaction_lines(files):
        say(line)
    put(str(folder))
    return EXIT_OK


def _redaction_lines(files: dict[str, bytes]) -> Iterator[str]:
    """Yield a line for each file in which something was replaced; none for a raw export."""
    found = json.loads(files.get("redactions.json", b"{}")).get("redacted", {})
    for name, kinds in found.items():
        said = ", ".join(f"{count} {clean(kind)}" for kind, count in kinds.items())
        yield f"replaced in {clean(name)}: {said}"
    if found:
        yield "check the export yourself anyway; `--raw` exports everything unchanged"


def _write(folder: Path, files: dict[str, bytes]) -> None:
    if folder.exists():
        raise FileExistsError(folder)
    for name, data in files.items():
        path = folder / name
        private_folder(path.parent)
        write_private(path, data)

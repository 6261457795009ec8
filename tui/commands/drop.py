"""`plait drop`: leave hunks or whole files of a change out before it lands, or take them back."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

from engine.api import reach
from engine.errors import WorkspaceError
from engine.messages.diffs import ChangeDiff, file_key
from engine.messages.merging import LeaveOutHunks
from engine.messages.questions import ReadDiff, ReadRun
from tui.commands.base import (
    EXIT_OK,
    add_repo,
    add_seen,
    in_loop,
    part_name,
    put,
    say,
    seen_of,
)
from tui.words.clean import clean, clean_name
from tui.words.figures import some


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose change, and what of it stays behind."""
    add_repo(parser)
    parser.add_argument("worker", metavar="WORKER")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="PATH[:N]",
        help="a file, or its Nth hunk: exactly these are left out; without a name, list all",
    )
    parser.add_argument("--nothing", action="store_true", help="leave nothing out")
    add_seen(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")


def run(args: argparse.Namespace) -> int:
    """List the hunks of the change, or say which of them stay behind."""
    part_name(args)
    return in_loop(partial(_drop, args))


async def _drop(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        view = await port.ask(ReadRun(args.run))
        diff = await port.ask(ReadDiff(view.run, args.worker))
        if args.names or args.nothing:
            keys = () if args.nothing else _named(diff, args.names)
            left = await port.ask(LeaveOutHunks(view.run, args.worker, keys, seen=seen_of(args)))
            out = f"{some(len(keys), 'hunk')} left out" if keys else "nothing is left out"
            put(f"{out}; to land: {some(left.files, 'file')}, +{left.insertions} -{left.deletions}")
            return EXIT_OK
        found = [
            w for w in view.workers if w.worker.endswith(args.worker) or w.label == args.worker
        ]
        out_now = {key for w in found for key in w.left_out}
    for name, key, said in _hunks(diff):
        put(f"{'left out' if key in out_now else '':<9} {name}  {clean(said)}")
    say("`plait drop WORKER PATH[:N] …` leaves out exactly these; `--nothing` restores all")
    return EXIT_OK


def _hunks(diff: ChangeDiff) -> Iterator[tuple[str, str, str]]:
    """Every hunk by its name, its key and what it is; a file without any is one."""
    for file, keys in zip(diff.files, diff.keys, strict=True):
        if not keys:
            yield clean_name(file.path), file_key(file), file.note or str(file.kind)
        for number, (hunk, key) in enumerate(zip(file.hunks, keys, strict=True), 1):
            counts = f"+{hunk.added} -{hunk.removed}"
            yield f"{clean_name(file.path)}:{number}", key, f"{counts}  {hunk.where}".strip()


def _named(diff: ChangeDiff, names: Sequence[str]) -> tuple[str, ...]:
    """The keys of what is named: a file is all of its hunks.

    Raises:
        WorkspaceError: The change has no such file or hunk.
    """
    hunks = {name: (key,) for name, key, _ in _hunks(diff)}
    files = {
        file.path: keys or (file_key(file),)
        for file, keys in zip(diff.files, diff.keys, strict=True)
    }
    shown = {clean_name(path): keys for path, keys in files.items()}
    known = {**files, **hunks, **shown}  # what is listed goes before a name as it is on disk
    for name in names:
        if name not in known:
            raise WorkspaceError(
                f"the change has no {clean_name(name)}",
                hint="`plait drop WORKER` lists what it has.",
            )
    return tuple(dict.fromkeys(key for name in names for key in known[name]))

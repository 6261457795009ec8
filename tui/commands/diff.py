"""`plait diff`: what a worker changed, as a patch for reading or as counts."""

import argparse
from functools import partial

from engine.ids import WorkerId, meant
from engine.messages.diffs import ChangeDiff, FileDiff, Hunk
from engine.messages.questions import ReadDiff, ReadRun
from engine.messages.results import Change, RunView
from tui.commands.base import EXIT_OK, add_repo, in_loop, part_name, put, say
from tui.commands.shells import is_colored, reached, told
from tui.words.clean import clean, clean_code, clean_name
from tui.words.figures import some

_COLORS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose change, and how much of it."""
    add_repo(parser)
    parser.add_argument("worker", metavar="WORKER")
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument("--attempt", type=int, help="instead of the newest")
    parser.add_argument("--stat", action="store_true", help="only the counts")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    return in_loop(partial(act, args))


async def act(args: argparse.Namespace) -> int:
    """Print it, in an event loop."""
    part_name(args)
    async with reached(args.repo) as (port, _):
        view = await port.ask(
            ReadRun(args.run)
        )  # before the diff, so that it never names a newer change
        change = await port.ask(ReadDiff(view.run, args.worker, args.attempt))
    await told(partial(_tell, args, view, change))
    return EXIT_OK


def _tell(args: argparse.Namespace, view: RunView, change: ChangeDiff) -> None:
    if args.attempt is None and (seen := _change_of(view, args.worker)) and (tree := seen.tree):
        say(f"this is tree {tree}; pass `--seen {tree[:12]}` to act on exactly this tree")
        for remark in seen.set_aside:
            say(f"note: {clean(remark)}")
    if args.stat:
        put(stat_text(change))
        return
    colored = is_colored()
    for line in patch_lines(change):
        color = _COLORS.get(line[:1]) if colored else None
        put(f"{color}{line}\x1b[0m" if color else line)


def _change_of(view: RunView, name: str) -> Change | None:
    """Return a worker's change, where the name means one worker that has one."""
    found = meant({WorkerId.parse(w.worker): w.label for w in view.workers}, name)
    return view.worker(str(found[0])).change if len(found) == 1 else None


def stat_text(change: ChangeDiff) -> str:
    """One row a file, and the sum."""
    width = max((len(_name(file)) for file in change.files), default=0)
    rows = [f" {_name(file):<{width}}  {_counts(file)}" for file in change.files]
    added = sum(file.added for file in change.files)
    removed = sum(file.removed for file in change.files)
    return "\n".join([*rows, f" {some(len(change.files), 'file')}, +{added} -{removed}"])


def _counts(file: FileDiff) -> str:
    note = f"  ({file.note})" if file.note else ""
    return f"+{file.added} -{file.removed}{note}"


def _name(file: FileDiff) -> str:
    if file.old_path:
        return f"{clean_name(file.old_path)} → {clean_name(file.path)}"
    return clean_name(file.path)


def patch_lines(change: ChangeDiff) -> list[str]:
    """A change as the lines of a patch, with nothing in them that acts on a terminal."""
    lines: list[str] = []
    for file in change.files:
        note = f" ({file.note})" if file.note else ""
        lines.append(f"{file.kind} {_name(file)}{note}")
        for hunk in file.hunks:
            lines.append(_header(hunk))
            lines += [f"{line.sign}{clean_code(line.text)}" for line in hunk.lines]
    return lines


def _header(hunk: Hunk) -> str:
    old = [line.old for line in hunk.lines if line.old is not None]
    new = [line.new for line in hunk.lines if line.new is not None]
    where = f" {clean_code(hunk.where)}" if hunk.where else ""
    return f"@@ -{old[0] if old else 0},{len(old)} +{new[0] if new else 0},{len(new)} @@{where}"

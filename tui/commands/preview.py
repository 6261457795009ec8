"""`plait preview`: the conflicts of a merge, in memory; nothing is written but objects."""

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.api import OpenMerge
from engine.merge.packing import pack
from tui.commands.base import EXIT_OK, EXIT_WAITS, add_repo, in_loop, put, put_json
from tui.commands.shells import told
from tui.words.clean import clean, clean_name
from tui.words.figures import some

if TYPE_CHECKING:
    from engine.merge import FileConflict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the merge, and how to tell it."""
    add_repo(parser)
    parser.add_argument("target", metavar="TARGET", help="the branch that would be merged into")
    parser.add_argument(
        "incoming", metavar="INCOMING", help="the branch or commit to merge into it"
    )
    parser.add_argument("--open", action="store_true", help="show it in the console")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Merge in memory and tell: 0 where it is clean, 3 where a human has to decide."""
    return in_loop(partial(act, args))


def is_quick(args: argparse.Namespace) -> bool:
    """Return True if it opens no console."""
    return not args.open


async def act(args: argparse.Namespace) -> int:
    """Merge in memory and tell, in an event loop."""
    if args.open:
        from engine.api import BranchMerge  # noqa: PLC0415  text needs no console
        from tui.commands.review import show  # noqa: PLC0415

        merge = await BranchMerge.begin(args.repo, target=args.target, incoming=args.incoming)
        return await show(merge)
    opened = await OpenMerge.begin(args.repo, target=args.target, incoming=args.incoming)
    await told(partial(_tell, args, opened))
    return EXIT_OK if opened.is_clean else EXIT_WAITS


def _tell(args: argparse.Namespace, opened: OpenMerge) -> None:
    if args.json:
        put_json(preview_json(opened, args.target, args.incoming))
    else:
        put(preview_text(opened, args.target, args.incoming))


def preview_json(merge: OpenMerge, target: str, incoming: str) -> dict[str, Any]:
    """A merge in memory as plain data; a path that is no UTF-8 is an object with its base64."""
    return {
        "target": target,
        "incoming": incoming,
        "is_clean": merge.is_clean,
        "tree": merge.tree_now if merge.is_clean else None,
        "caveat": merge.caveat,
        "unsafe": [pack(path) for path in merge.unsafe],
        "conflicts": [
            {
                "path": pack(one.path),
                "kind": str(one.kind),
                "paths": {
                    name: pack(side.path) if side else None
                    for name, side in (
                        ("base", one.file.base),
                        ("target", one.file.target),
                        ("incoming", one.file.incoming),
                    )
                },
                "hunks": [
                    {
                        "key": hunk.key,
                        "line": hunk.target_line + 1,
                        "base": _text(hunk.base),
                        "target": _text(hunk.target),
                        "incoming": _text(hunk.incoming),
                        "proposals": len(proposals),
                        "likely": any(proposal.likely for proposal in proposals),
                    }
                    for hunk, proposals in zip(one.hunks, one.proposals, strict=True)
                ],
                "options": [
                    {"choice": str(option.choice), "label": option.label, "effect": option.effect}
                    for option in one.options
                ],
            }
            for one in merge.conflicts
        ],
    }


def _text(lines: tuple[bytes, ...]) -> str:
    return b"".join(lines).decode(errors="replace")


def _elsewhere(one: "FileConflict") -> str:
    """Return the other names that the sides have for a file."""
    sides = ((one.target, one.names.target), (one.incoming, one.names.incoming))
    found = [
        f"{clean_name(os.fsdecode(side.path))} in {clean(name)}"
        for side, name in sides
        if side and side.path != one.path
    ]
    return f", {', '.join(found)}" if found else ""


def preview_text(merge: OpenMerge, target: str, incoming: str) -> str:
    """The same in lines for people."""
    title = f"{clean(incoming)} into {clean(target)}"
    caveat = [merge.caveat] if merge.caveat else []
    if merge.is_clean:
        return "\n".join([f"{title}: no conflicts, tree {merge.tree_now}", *caveat])
    rows = [f"{title}: {some(len(merge.conflicts), 'conflict')}"]
    for one in merge.conflicts:
        offered = sum(map(bool, one.proposals))
        what = f", {some(len(one.hunks), 'hunk')}, {offered} with a proposal" if one.hunks else ""
        rows.append(
            f"  {clean_name(os.fsdecode(one.path))}  {one.kind}{_elsewhere(one.file)}{what}"
        )
    rows += [f"  {clean_name(os.fsdecode(path))}  git refuses this path" for path in merge.unsafe]
    return "\n".join([*rows, *caveat])

"""`plait clean` and `plait restore`: what can go safely, and getting it back."""

import argparse
from dataclasses import asdict
from datetime import datetime
from functools import partial

from engine.api import reach
from engine.messages.questions import CleanUp, ListTrash, RestoreTrash
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, put_json, say
from tui.words.clean import clean as shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to look at, and how to tell it."""
    add_repo(parser)
    if parser.get_default("command") == "clean":
        parser.add_argument(
            "--dry-run", action="store_true", help="only list what would be removed"
        )
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    else:
        parser.add_argument(
            "id", nargs="?", metavar="ID", help="what to restore; without a name, list the trash"
        )


def run(args: argparse.Namespace) -> int:
    """Take away, or bring back."""
    return in_loop(partial(_clean if args.command == "clean" else _restore, args))


async def _clean(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        items = await port.ask(CleanUp(dry_run=args.dry_run))
    if args.json:
        put_json([{**asdict(item), "is_safe": item.is_safe} for item in items])
        return EXIT_OK
    word = "would be removed" if args.dry_run else "removed"
    said: dict[str, list[str]] = {}
    for item in items:
        what = word if item.is_safe else f"stays: {shown('; '.join(item.reasons))}"
        head = f"{'/'.join(filter(None, (item.run, item.worker)))}  {what}"
        line = f"  {shown(f'branch {item.branch}' if item.branch else item.path)}"
        said.setdefault(head, []).append(line)
    for head, lines in said.items():
        put("\n".join((head, *lines)))
    if not items:
        say("there is no workspace and no branch to clean")
    elif any(item.is_safe and not (item.branch or item.is_for_good) for item in items):
        say(
            "removed files stay in the trash for 30 days and still use space; `plait restore` "
            "lists them"
        )
    return EXIT_OK


async def _restore(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, _):
        if args.id:
            put(shown(await port.ask(RestoreTrash(args.id))))
            return EXIT_OK
        items = await port.ask(ListTrash())
    for item in items:
        at = datetime.fromtimestamp(item.at).astimezone().strftime("%Y-%m-%d %H:%M")
        put(f"{item.id}  {at}  {shown(item.origin)}")
    if not items:
        say("the trash is empty")
    return EXIT_OK

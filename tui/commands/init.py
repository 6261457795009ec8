"""`plait init`: a commented manifest fitted to the repository."""

import argparse
import os
from functools import partial
from pathlib import Path

from engine.api import ProjectFacts, find_agents, init_manifest
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, put, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the place, and whether to write."""
    add_repo(parser)
    parser.add_argument("--stdout", action="store_true", help="print it instead of writing it")


def run(args: argparse.Namespace) -> int:
    """Never overwrites."""
    return in_loop(partial(_init, args))


async def _init(args: argparse.Namespace) -> int:
    found = await find_agents(os.environ)
    agents = tuple(agent.name for agent in found if agent.path)
    return _write(Path(args.repo), agents, is_stdout=args.stdout)


def _write(folder: Path, agents: tuple[str, ...], *, is_stdout: bool) -> int:
    files = frozenset(entry.name for entry in folder.iterdir())
    text = init_manifest(ProjectFacts(files=files, agents=agents))
    target = folder / "plait.yaml"
    if is_stdout:
        put(text.rstrip())
        return EXIT_OK
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        say(f"{target} exists already; `plait init --stdout` prints a fresh one")
        return EXIT_USAGE
    say(f"wrote {target}; `plait validate {target}` checks it, `plait run {target}` runs it")
    return EXIT_OK

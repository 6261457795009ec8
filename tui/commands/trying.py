"""`plait try`: a worker's merged result in your own checkout, and back again byte for byte."""

import argparse
import os
from collections.abc import Sequence
from functools import partial

from engine.api import OpenTry, TakenBack, end_try, keep_try, open_try, try_worker
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    add_repo,
    add_seen,
    in_loop,
    say,
    seen_of,
)
from tui.words.clean import clean, clean_name
from tui.words.figures import some

_MOST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the worker to try, or the way out of a try."""
    add_repo(parser)
    parser.add_argument("worker", nargs="?", default="", metavar="WORKER")
    add_seen(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--back", action="store_true", help="restore your files, byte for byte")
    ends.add_argument(
        "--keep", action="store_true", help="end the try and keep its files as your edits"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; 0 where it is done, 1 where there is nothing to do."""
    return in_loop(partial(_try, args))


async def _try(args: argparse.Namespace) -> int:
    if args.back or args.keep:
        if args.worker:
            say("name a worker, or use --back or --keep, not both")
            return EXIT_USAGE
        return await (_back(args) if args.back else _keep(args))
    if not args.worker:
        trial = await open_try(args.repo)
        say(try_line(trial) if trial else "no try is active; `plait try WORKER` starts one")
        return EXIT_OK if trial else EXIT_FAILED
    trial, back = await try_worker(args.repo, args.worker, run=args.run, seen=seen_of(args))
    if back is not None:
        _tell_back(back)
    _tell_on(trial)
    return EXIT_OK


async def _back(args: argparse.Namespace) -> int:
    done = await end_try(args.repo)
    if done is None:
        say("no try is active, so there is nothing to restore")
        return EXIT_FAILED
    _tell_back(done)
    return EXIT_OK


async def _keep(args: argparse.Namespace) -> int:
    trial = await keep_try(args.repo)
    if trial is None:
        say("no try is active, so there is nothing to keep")
        return EXIT_FAILED
    say(f"the files of {trial.name} stay in {clean_name(trial.worktree)} as your edits")
    if trial.edits:
        say(f"your own edits to {_names(trial.aside)} are kept on {trial.edits}")
    return EXIT_OK


def try_line(trial: OpenTry) -> str:
    """Return a sentence that says what is tried, where, and how to go back."""
    how = "has the result of" if trial.is_whole else "has only a part of the result of"
    return (
        f"{clean_name(trial.worktree)} {how} {trial.name}: `plait try --back` restores your files"
    )


def _tell_on(trial: OpenTry) -> None:
    result = trial.result
    where = clean_name(trial.worktree)
    what = f"{trial.name} as it would land on {clean(result.target)}"
    say(f"{where} now holds {what}: {some(trial.written, 'file')} changed, nothing committed")
    if trial.head != result.onto:
        say(f"note: the commit checked out there is not that of {clean(result.target)}")
    if trial.aside:
        say(f"set aside until --back: your own edits to {_names(trial.aside)}")
        say(f"a copy is kept on {trial.edits}")
    if trial.skipped:
        say(f"{some(trial.skipped, 'file')} left out, because the sparse checkout excludes them")
    say("`plait try --back` restores your files")


def _tell_back(done: TakenBack) -> None:
    trial = done.trial
    say(f"{clean_name(trial.worktree)} is as it was before {trial.name} was tried")
    if done.edited:
        where = " and ".join(filter(None, (done.ref, clean_name(done.copies))))
        say(f"your edits made during the try are kept on {where}: {_names(done.edited)}")
    if done.staged:
        say(f"what you staged during the try is kept on {clean_name(done.staged)}")


def _names(paths: Sequence[bytes]) -> str:
    shown = ", ".join(clean_name(os.fsdecode(path)) for path in paths[:_MOST])
    return f"{shown} and {len(paths) - _MOST} more" if len(paths) > _MOST else shown

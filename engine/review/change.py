"""Measure an attempt's work for people: its figures, and what was kept apart."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import NamedTuple

from engine.git.base import Base
from engine.git.collection import CollectedChange
from engine.git.diff import FileChange, counted_files
from engine.git.embedded import Embedded
from engine.git.ownership import CommitLine, is_own, plain_line
from engine.git.runner import Repo
from engine.git.submodules import LINK, missing_links
from engine.legible import legible_name
from engine.messages.results import Change
from engine.site.artifacts import Artifacts

_SHOWN = 5
_ONE_COMMIT = (
    "its history is not linear on its base, or uses plait's trailers, so it lands as one commit"
)
_OTHERS = "its history contains commits of other branches or tags, so it lands as one commit"


class HistoryWanted(NamedTuple):
    """The branch on which a worker's commits become history, and the form they take there.

    Attributes:
        target: The ref that a landing moves, in full.
        prefix: The branches of workers stand below it.
        is_as_it_is: The very commits are to be kept; else they are made again on the target.
    """

    target: str
    prefix: str
    is_as_it_is: bool


async def measured(
    repo: Repo,
    found: CollectedChange,
    base: str,
    *,
    meant: Sequence[str],
    artifacts: Artifacts,
    history: HistoryWanted | None = None,
) -> Change | None:
    """Return what was collected, in figures; None if it comes to nothing.

    Where a landing is to keep the commits and cannot, the reviewer hears it beforehand. `history`
    says where they are to come; None where no landing keeps them.
    """
    aside = [f"{_named(one.path)}: {one.reason}" for one in found.set_aside]
    files, hunks = await counted_files(repo, base, found.head) if found.head != base else ((), 0)
    aside += await _repositories(repo, found, files)
    aside += [f"artifact {_named(one.path)}: {one.reason}" for one in artifacts.refused]
    if found.head == base and not aside and not artifacts.found:
        return None
    told = [await _lost_history(repo, base, found.head, history)] if history else []
    strays = _strays([os.fsdecode(file.path) for file in files], meant)
    head = found.head if found.head != base else None
    change = Change(head=head, base=base, tree=found.tree)
    return replace(
        in_figures(change, files, hunks) if head else change,
        artifacts=artifacts.found,
        set_aside=(*aside, *found.notes, *strays, *filter(None, told)),
    )


async def _lost_history(repo: Repo, base: str, head: str, history: HistoryWanted) -> str:
    """Return why a landing will not keep the commits; nothing if it will, as far as known."""
    line = await plain_line(repo, base, head)
    if line is None:
        return _ONE_COMMIT
    if not line or not history.is_as_it_is:
        return ""
    target, prefix, _ = history
    asked = CommitLine(base=base, commits=line, besides=base, target=target, prefix=prefix)
    return "" if await is_own(repo, asked) else _OTHERS


def in_figures(change: Change, files: Sequence[FileChange], hunks: int | None) -> Change:
    """Return a change with the figures of its files, and what of it no diff can show."""
    return replace(
        change,
        files=len(files),
        insertions=sum(file.added or 0 for file in files),
        deletions=sum(file.removed or 0 for file in files),
        binary=sum(file.is_binary for file in files),
        hunks=hunks,
        is_cut=hunks is None,
    )


async def _repositories(
    repo: Repo, found: CollectedChange, files: Sequence[FileChange]
) -> Iterable[str]:
    """Return notes on repositories inside the workspace and on links to their commits."""
    bundled = {one.path for one in found.embedded if one.bundle}
    links = {f.path: f.new_oid for f in files if f.new_mode == LINK and f.path not in bundled}
    inside = [_embedded(one) for one in found.embedded if one.path not in links]
    return [*inside, *map(_missing, await missing_links(repo, found.head, links))]


def _embedded(one: Embedded) -> str:
    """Return where the commits of an inner repository are: the branch only names one."""
    kept = (
        f"its commits are in {one.bundle}; fetch them with `git fetch`" if one.bundle else one.note
    )
    return f"{_named(one.path)}: a nested repository; {kept}"


def _missing(path: bytes) -> str:
    """Return a note on a link whose commit a landing would not bring along."""
    return f"{_named(path)}: points to a commit that your submodule does not have"


def _strays(paths: Sequence[str], meant: Sequence[str]) -> list[str]:
    """Return notes on changed files that lie outside `workspace.paths`."""
    if not meant:
        return []
    strays = [path for path in paths if not any(fnmatch(path, one) for one in meant)]
    return [f"{path}: changed, but not in workspace.paths" for path in strays]


def left_out_note(base: Base) -> tuple[str, ...]:
    """Return one sentence naming the user's edits that no worker will see, if any."""
    if not base.left_out:
        return ()
    shown = ", ".join(_named(path) for path in base.left_out[:_SHOWN])
    more = len(base.left_out) - _SHOWN
    names = f"{shown} and {more} more" if more > 0 else shown
    hint = "" if base.is_snapshot else "; `--base WORKTREE` includes uncommitted edits"
    return (f"not in the base of this run: {names}{hint}",)


def _named(path: bytes) -> str:
    """Return a path for a sentence, so that no other looks like it."""
    return legible_name(os.fsdecode(path))

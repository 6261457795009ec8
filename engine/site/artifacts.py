"""Keep files that a step gives to later steps, where no agent reaches them."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from engine.beneath import Bounds, PathRefused, Why, copy_tree, list_tree, open_up, remove_tree
from engine.ids import AttemptId, RunId, WorkerId
from engine.private import private_folder
from engine.store.layout import Layout
from engine.values import dataclass

BOUNDS = Bounds(entries=200_000, size=4 << 30, depth=1000)
"""The most that one step may give to the next."""
_Parts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """The kept files that a step names, and the ones not kept, with the reasons."""

    found: tuple[str, ...] = ()
    refused: tuple[PathRefused, ...] = ()


def artifacts_folder(layout: Layout, attempt: AttemptId) -> Path:
    """Return the folder of an attempt's artifacts."""
    return layout.attempt(attempt).with_name(f"artifacts_{attempt.number}")


def keep_artifacts(root: Path, patterns: Sequence[str], kept: Path) -> Artifacts:
    """Copy what matches out of a workspace; links that lead out of it are passed over."""
    if not patterns or not root.is_dir():
        return Artifacts()
    private_folder(kept)
    done = _kept(root, patterns, kept)
    if any(one.why is Why.UNREADABLE for one in done.refused) and open_up(root):
        remove_tree(kept)
        private_folder(kept)
        done = _kept(root, patterns, kept)
    return done


def _kept(root: Path, patterns: Sequence[str], kept: Path) -> Artifacts:
    found = list(matching(root, patterns))
    names = sorted(one for one in found if isinstance(one, bytes))
    hidden = [one for one in found if isinstance(one, PathRefused)]
    done = copy_tree(root, names, kept, bounds=BOUNDS, is_closed=True)
    left = {one.path for one in done.refused}
    return Artifacts(
        found=tuple(os.fsdecode(name) for name in names if name not in left),
        refused=(*hidden, *done.refused),
    )


def give_all(
    layout: Layout, run: RunId, bases: Sequence[tuple[WorkerId, int]], workspace: Path
) -> tuple[str, ...]:
    """Copy what earlier steps kept into a workspace; say what could not be given.

    What is there already stays as it is. The workspace holds what an earlier agent committed: where
    a folder of an artifact should be there may be a link.
    """
    notes: list[str] = []
    for worker, number in bases:
        kept = artifacts_folder(layout, AttemptId(run, worker, number))
        if kept.is_dir():
            left = copy_tree(kept, [b""], workspace, bounds=BOUNDS).refused
            notes += [_note(worker, one) for one in left if one.why is not Why.TAKEN]
    return tuple(notes)


def refusal(one: PathRefused) -> str:
    """Return one sentence on a file that was not copied."""
    return f"{os.fsdecode(one.path)}: {one.reason}"


def _note(worker: WorkerId, one: PathRefused) -> str:
    return f"artifact {os.fsdecode(one.path)} of {worker} was not passed on: {one.reason}"


def matching(root: Path, patterns: Sequence[str]) -> Iterator[bytes | PathRefused]:
    """Find what matches one of the patterns, in the language of `Path.glob`, following no link.

    A folder that matches stands for all it contains.
    """
    wanted = [tuple(Path(pattern).parts) for pattern in patterns]

    def is_entered(path: bytes) -> bool:
        parts = _split(path)
        return not _is_taken(wanted, parts) and any(_may_lead(one, parts) for one in wanted)

    for entry in list_tree(root, bounds=BOUNDS, is_entered=is_entered):
        if isinstance(entry, PathRefused):
            yield entry
        elif _is_taken(wanted, _split(entry.path)):
            yield entry.path


def _split(path: bytes) -> _Parts:
    return tuple(os.fsdecode(path).split("/"))


def _is_taken(wanted: Sequence[_Parts], parts: _Parts) -> bool:
    return parts[0] != ".git" and any(_matches(one, parts) for one in wanted)


def _matches(pattern: _Parts, parts: _Parts) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(pattern[1:], parts) or (bool(parts) and _matches(pattern, parts[1:]))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])


def _may_lead(pattern: _Parts, parts: _Parts) -> bool:
    """Return whether something below a folder could match."""
    for number, part in enumerate(parts):
        if number >= len(pattern):
            return False
        if pattern[number] == "**":
            return True
        if not fnmatchcase(part, pattern[number]):
            return False
    return len(pattern) > len(parts)

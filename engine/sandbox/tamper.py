"""Tell if somebody wrote where no attempt may: by looking before and after, and by times.

What git executes is compared by content, because there is little of it and it matters most. Whole
trees are asked for what changed since a moment: an inode's change time moves with every write, and
only the kernel sets it. What follows from a finding is decided elsewhere.
"""

import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from engine.values import dataclass

_EXECUTED = ("config", "config.worktree", "hooks", "info/attributes", "objects/info/alternates")
_EXECUTED_IN_WORKTREE = ("config.worktree", "commondir", "gitdir")
_BRANCHES = re.compile(
    rb'^\[branch "[^"\\\n]*"\]\n'
    rb'(?:[ \t]+(?:remote|merge|rebase|pushRemote|description) = [^"\\;#\n]*\n)+(?=\[|\Z)',
    re.MULTILINE,
)
"""Sections that `git push -u` and `git switch --track` write by the way: they name branches and
execute nothing."""

MOST_LOOKED_AT = 100_000
"""The most entries of folders that are looked at for changes."""


class PathChange(StrEnum):
    """The change of a path."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One path that is not as it was."""

    path: bytes
    change: PathChange

    def __str__(self) -> str:
        return f"{self.path.decode(errors='replace')} was {self.change}"


Fingerprint = Mapping[bytes, bytes]
"""Path to a digest of what lies there; links are never followed."""


def executed_by_git(git_dir: Path) -> tuple[Path, ...]:
    """Return what below a git directory makes git run a program or read other configuration."""
    own = tuple(git_dir / name for name in _EXECUTED)
    trees = git_dir / "worktrees"
    names = sorted(os.listdir(trees)) if trees.is_dir() else []  # noqa: PTH208 - names are wanted
    return own + tuple(trees / name / file for name in names for file in _EXECUTED_IN_WORKTREE)


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """Return a fingerprint of these paths and all below, so that a change can be named later.

    Files are known by content, links by target, folders by name: times say nothing, because they
    can be set.
    """
    return {
        os.fsencode(path): _digest(path)
        for top in paths
        for path in _walk(top)
        if os.path.lexists(path)
    }


def violations(before: Fingerprint, after: Fingerprint) -> tuple[Violation, ...]:
    """Return what changed between two looks."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        change = PathChange.CHANGED
        if path not in before:
            change = PathChange.ADDED
        elif path not in after:
            change = PathChange.REMOVED
        found.append(Violation(path=path, change=change))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class News:
    """The changes below some folders; `is_whole` is false where there was too much to look at."""

    paths: tuple[Path, ...]
    is_whole: bool


def changed_since(
    tops: Iterable[Path],
    since_ns: int,
    *,
    leave_out: Collection[Path] = (),
    at_most: int = MOST_LOOKED_AT,
) -> News:
    """Return what was written, made or removed after a moment; a removal shows as its folder.

    Args:
        tops: The folders.
        since_ns: The moment, on the clock of the file system.
        leave_out: Paths that are not looked into.
        at_most: How many entries are looked at.
    """
    found: list[Path] = []
    left = at_most
    skipped = set(map(os.fspath, leave_out))
    waiting = [os.fspath(top) for top in tops]
    for folder in waiting:  # grows while it is walked
        try:
            status = os.lstat(folder)
            if not stat.S_ISDIR(status.st_mode):  # something else was put in its place
                found += [Path(folder)] if status.st_ctime_ns > since_ns else []
                continue
            with os.scandir(folder) as listed:
                entries = [each for each in listed if each.path not in skipped]
        except OSError:  # gone, or closed to us
            continue
        left -= len(entries)
        if left < 0:
            return News(paths=tuple(found), is_whole=False)
        waiting += [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        news = [Path(each.path) for each in entries if _is_new(each, since_ns)]
        if not news and status.st_ctime_ns > since_ns:
            news = [Path(folder)]
        found += news
    return News(paths=tuple(found), is_whole=True)


def _is_new(entry: "os.DirEntry[str]", since_ns: int) -> bool:
    """A folder's own times move with its entries, which are looked at themselves."""
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        return not is_folder and entry.stat(follow_symlinks=False).st_ctime_ns > since_ns
    except OSError:
        return False


def was_empty(path: Path, digest: bytes) -> bool:
    """Return whether a file that is here held nothing when it had this fingerprint."""
    try:
        return hashlib.sha256(f"{path.lstat().st_mode:o}\0".encode()).digest() == digest
    except OSError:
        return False


def _walk(top: Path) -> Iterator[Path]:
    yield top
    if top.is_dir() and not top.is_symlink():
        for root, folders, files in os.walk(top):
            for name in (*folders, *files):
                yield Path(root, name)


def _digest(path: Path) -> bytes:
    found = path.lstat()
    seen = hashlib.sha256(f"{found.st_mode:o}\0".encode())
    if stat.S_ISLNK(found.st_mode):
        seen.update(os.fsencode(path.readlink()))
    elif stat.S_ISREG(found.st_mode) and os.access(path, os.R_OK):
        content = path.read_bytes()
        seen.update(_BRANCHES.sub(b"", content) if path.name == "config" else content)
    return seen.digest()

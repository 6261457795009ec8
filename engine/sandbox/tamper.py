"""Whether somebody wrote where no attempt may: the lowest rung, by looking before and after.

Where nothing keeps an attempt from the repository, this notices what it did to what git executes
or trusts (config, hooks, attributes, refs). A violation is data; what follows is decided elsewhere.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

GIT_TRUSTS = ("config", "config.worktree", "hooks", "info", "HEAD", "packed-refs", "refs")
"""Below a git directory: what makes git run something, or move somebody's branch."""


class Change(StrEnum):
    """What happened to a path."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One path that is not as it was."""

    path: bytes
    change: Change

    def __str__(self) -> str:
        return f"{self.path.decode(errors='replace')} was {self.change}"


Fingerprint = Mapping[bytes, bytes]
"""Path to a digest of what lies there; links are never followed."""


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """What lies at these paths and below, so that a change can be named later.

    Files are known by content, links by target, folders by name: times say nothing, because they
    can be set.
    """
    return {
        os.fsencode(path): _digest(path)
        for top in paths
        for path in _walk(top)
        if os.path.lexists(path)
    }


def git_paths(git_dir: Path) -> tuple[Path, ...]:
    """What is to be watched of a git directory; the refs that the engine moves are the caller's."""
    return tuple(git_dir / name for name in GIT_TRUSTS)


def outline(paths: Iterable[Path]) -> Fingerprint:
    """The cheap form for whole trees: size, mode, and the times that only the kernel can set.

    The inode's change time moves with every write, whoever sets the other times back.
    """
    return {
        os.fsencode(path): _outline(path)
        for top in paths
        for path in _walk(top)
        if os.path.lexists(path)
    }


def violations(
    before: Fingerprint, after: Fingerprint, allowed: Iterable[Path] = ()
) -> tuple[Violation, ...]:
    """What changed between two looks, outside the paths that the attempt may write."""
    own = tuple(os.fsencode(path) for path in allowed)
    found = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path) or _is_own(path, own):
            continue
        change = Change.CHANGED
        if path not in before:
            change = Change.ADDED
        elif path not in after:
            change = Change.REMOVED
        found.append(Violation(path=path, change=change))
    return tuple(found)


def _is_own(path: bytes, own: tuple[bytes, ...]) -> bool:
    return any(path == each or path.startswith(each + b"/") for each in own)


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
    elif stat.S_ISREG(found.st_mode):
        seen.update(path.read_bytes())
    return seen.digest()


def _outline(path: Path) -> bytes:
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode):
        # A folder's own times move with its entries, which are looked at themselves.
        return f"{found.st_mode:o}".encode()
    return f"{found.st_mode:o} {found.st_size} {found.st_ino} {found.st_ctime_ns}".encode()

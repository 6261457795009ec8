"""Everything in a working tree as one tree object, without touching the index that belongs to it.

The files to stage are named one by one rather than left to `git add -A`, which fails as a whole on
a half-made embedded repository, commits a finished one as a link to nothing, and knows no size
limit.
"""

import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from engine.git.objects import scratch_folder
from engine.git.runner import Repo

BIG_FILE = 5 * 1024 * 1024
"""A file above it is set aside and listed instead of committed."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that was not committed, its size, and why: `big` or `unreadable`."""

    path: bytes
    size: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Staged:
    """A working tree as a tree object, and what is not in it.

    Attributes:
        embedded: Repositories that are no submodules; nothing of them is in the tree.
        links: Paths where the tree has a link to a repository's commit, with that commit.
    """

    tree: str
    set_aside: tuple[SetAside, ...] = ()
    embedded: tuple[bytes, ...] = ()
    links: tuple[tuple[bytes, str], ...] = ()


class Git(Protocol):
    """Runs git on one working tree with one index; wherever that has to happen."""

    async def __call__(self, *words: str, stdin: bytes = b"") -> bytes:
        """What the command writes."""


@asynccontextmanager
async def private_index(repo: Repo, *, copy_of: str | None = None) -> AsyncIterator[str]:
    """An index file of our own, gone afterwards; a copy keeps what is known of unchanged files."""
    async with scratch_folder(repo) as folder:
        if copy_of is not None:
            await to_thread.run_sync(_copy_if_there, copy_of, folder / "index")
        yield str(folder / "index")


def copy_index(source: str | Path, target: str | Path) -> None:
    """Copy an index with its time stamp.

    Git compares that with the files' to know which it must read because they may have been changed
    in the very moment that the index was written; a newer copy would hide such changes.
    """
    shutil.copy2(source, target)


def _copy_if_there(source: str, target: Path) -> None:
    """A repository without an index has nothing staged."""
    with suppress(FileNotFoundError):
        copy_index(source, target)


async def stage_all(git: Git, worktree: str, *, big_file: int) -> Staged:
    """Bring the index that `git` works with in line with the working tree, and write its tree."""
    await _clear_flags(git, worktree)
    changed = _names(await git("diff-files", "--name-only", "-z", "--ignore-submodules=dirty"))
    others = _names(await git("ls-files", "-z", "--others", "--exclude-standard"))
    found = await to_thread.run_sync(_sort_out, worktree, (changed, others), big_file)
    if found.gone:
        stdin = b"".join(b"0 %040d\t%s\0" % (0, name) for name in found.gone)
        await git("update-index", "-z", "--index-info", stdin=stdin)
    if found.present:
        stdin = b"".join(name + b"\0" for name in found.present)
        words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        await git(*words, stdin=stdin)
    tree = (await git("write-tree")).decode().strip()
    return Staged(
        tree=tree,
        set_aside=tuple(found.set_aside),
        embedded=tuple(sorted(found.embedded)),
        links=await _links(git),
    )


async def _links(git: Git) -> tuple[tuple[bytes, str], ...]:
    listing = await git("ls-files", "-s", "-z")
    heads = (record.split(b"\t", 1) for record in listing.split(b"\0") if record[:6] == b"160000")
    return tuple((path, head.split(b" ")[1].decode()) for head, path in heads)


def _names(listing: bytes) -> list[bytes]:
    return list(dict.fromkeys(name for name in listing.split(b"\0") if name))


async def _clear_flags(git: Git, worktree: str) -> None:
    """Look at every file there is: one that was assumed unchanged, or left out, holds work too.

    A file that a sparse checkout leaves out and that is not there has not been deleted.
    """
    listing = (await git("ls-files", "-v", "-z")).split(b"\0")
    assumed = [record[2:] for record in listing if record[:1].islower()]
    skipped = [record[2:] for record in listing if record[:1] in {b"S", b"s"}]
    present = await to_thread.run_sync(_present, worktree, skipped) if skipped else []
    for flag, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", present)):
        if names:
            stdin = b"".join(name + b"\0" for name in names)
            await git("update-index", flag, "-z", "--stdin", stdin=stdin)


def _present(worktree: str, names: list[bytes]) -> list[bytes]:
    root = os.fsencode(worktree)
    return [name for name in names if _kind_of(root, name) is not _Kind.NOTHING]


@dataclass(frozen=True, slots=True)
class _SortedOut:
    present: list[bytes]
    gone: list[bytes]
    set_aside: list[SetAside]
    embedded: list[bytes]


def _sort_out(worktree: str, names: tuple[list[bytes], list[bytes]], big_file: int) -> _SortedOut:
    """What is there, what is not, and what must not be committed."""
    root = os.fsencode(worktree)
    found = _SortedOut([], [], [], [])
    changed, others = names
    for name in changed:
        path = os.path.join(root, name)  # noqa: PTH118 (paths are bytes)
        kind = _kind_of(root, name)
        (found.present if kind is not _Kind.NOTHING else found.gone).append(name)
        if kind is _Kind.UNREADABLE:
            found.present.pop()
            found.set_aside.append(SetAside(name, os.lstat(path).st_size, "unreadable"))
    for name in others:
        if name.endswith(b"/"):
            found.embedded.append(name.rstrip(b"/"))
            continue
        kind = _kind_of(root, name)
        if kind is _Kind.NOTHING:
            continue
        size = os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 (paths are bytes)
        if kind is _Kind.UNREADABLE or size > big_file:
            reason = "unreadable" if kind is _Kind.UNREADABLE else "big"
            found.set_aside.append(SetAside(name, size, reason))
        else:
            found.present.append(name)
    return found


class _Kind(Enum):
    """What can be committed under a name."""

    FILE = "file"
    SUBMODULE = "submodule"
    UNREADABLE = "unreadable"
    NOTHING = "nothing"


def _kind_of(root: bytes, name: bytes) -> _Kind:
    path = os.path.join(root, name)  # noqa: PTH118 (paths are bytes)
    parents = name.split(b"/")[:-1]
    for depth in range(len(parents)):
        if os.path.islink(os.path.join(root, *parents[: depth + 1])):  # noqa: PTH114, PTH118 (bytes)
            return _Kind.NOTHING  # it lies behind a link, so not in this tree
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return _Kind.NOTHING
    if stat.S_ISDIR(mode):
        is_repository = os.path.lexists(os.path.join(path, b".git"))  # noqa: PTH118 (bytes)
        return _Kind.SUBMODULE if is_repository else _Kind.NOTHING
    if stat.S_ISLNK(mode):
        return _Kind.FILE
    if not stat.S_ISREG(mode):
        return _Kind.NOTHING
    return _Kind.FILE if os.access(path, os.R_OK) else _Kind.UNREADABLE

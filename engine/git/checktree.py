"""A scratch tree in which a check runs: exactly one commit's files.

Files that are as they should be stay from check to check. The code that runs there is the agents',
so nothing else that it left stays, ignored files included. That code never sees the git directory
that fills the tree.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.beneath import remove_tree
from engine.errors import GitFailed
from engine.git.inside import InsideGit, Source, Wrap, outside
from engine.git.objects import commit_of, tree_of
from engine.git.private import PrivateClone, make_private
from engine.git.runner import Repo
from engine.git.staging import copy_index
from engine.git.stumbling import look_through, past_obstacles
from engine.private import private_folder
from engine.values import dataclass

_BRANCH = "refs/heads/plait-check"


@dataclass(frozen=True, kw_only=True)
class CheckTree:
    """A place for checks.

    Attributes:
        path: The files.
        folder: Ours, out of reach of what runs in `path`; to be bound writable while filling.
    """

    path: Path
    folder: Path

    @property
    def git_dir(self) -> str:
        """The git directory that a check sees, inside the tree."""
        return f"{self.path}/.git"


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A check tree that is brought to a commit.

    Attributes:
        borrowed: The object folders it borrows from, to be bound read-only.
        kept: What was left of `keep`: the commit has nothing there.
    """

    borrowed: tuple[str, ...]
    kept: tuple[str, ...] = ()


async def fill_check_tree(
    repo: Repo, place: CheckTree, commit: str, *, keep: Sequence[str] = (), wrap: Wrap = outside
) -> Filled:
    """Bring a check tree to a commit; nothing else stays, ignored or not, but what is kept."""
    commit = await commit_of(repo, commit)
    await to_thread.run_sync(_make_ready, place)
    async with InsideGit.opened(repo, _source(place), wrap) as git:
        await git("read-tree", "--reset", "-u", "--no-recurse-submodules", commit)
        kept = await _untracked(git, keep)
        spared = (word for path in kept for word in ("-e", _pattern(path)))
        await git("clean", "-ffdxq", *spared)
    await to_thread.run_sync(_keep_index, git, place)
    clone = PrivateClone(path=Path(place.git_dir), branch=_BRANCH, base=commit, hide="plait")
    borrowed = await make_private(repo, clone)
    await to_thread.run_sync(_give_index, place)
    return Filled(borrowed=borrowed, kept=kept)


async def _untracked(git: InsideGit, paths: Sequence[str]) -> tuple[str, ...]:
    """Return those at which, and below which, the commit has nothing."""
    if not paths:
        return ()
    listing = await git("ls-files", "-z", "--", *paths)
    tracked = os.fsdecode(listing).split("\0")
    return tuple(
        path for path in paths if not any(f"{one}/".startswith(f"{path}/") for one in tracked)
    )


def _pattern(path: str) -> str:
    """Return a pattern of gitignore that this path alone matches."""
    return "/" + re.sub(r"([\\*?\[\] ])", r"\\\1", path)


async def holds(repo: Repo, place: CheckTree, commit: str, *, wrap: Wrap = outside) -> bool:
    """The tree still is the commit's: the check changed nothing that git tracks or would add."""
    async with InsideGit.opened(repo, _source(place), wrap) as git:
        tree = await tree_of(repo, commit)
        found, is_same = await past_obstacles(str(place.path), partial(_is_same, git, tree))
    return is_same and not found.moved


async def _is_same(git: InsideGit, tree: str) -> bool:
    """Tell without reading what is new: it may be as long as a disk."""
    if await git("ls-files", "-z", "--others", "--exclude-standard"):
        return False
    with suppress(GitFailed):  # it fails where something did change
        await git("update-index", "-q", "--refresh")
    if await git("diff-files", "--name-only", "-z", "--ignore-submodules=dirty"):
        return False
    return (await git("write-tree")).decode().strip() == tree


def _source(place: CheckTree) -> Source:
    return Source(
        worktree=str(place.path),
        agent_git=str(place.folder / "none"),
        folder=place.folder / "git",
        index=place.folder / "index",
    )


def _make_ready(place: CheckTree) -> None:
    private_folder(place.folder)
    if place.path.is_symlink():
        place.path.unlink()
    private_folder(place.path)
    remove_tree(place.path, ".git")
    look_through(str(place.path))


def _keep_index(git: InsideGit, place: CheckTree) -> None:
    copy_index(Path(git.git_dir, "index"), place.folder / "index")


def _give_index(place: CheckTree) -> None:
    copy_index(place.folder / "index", Path(place.git_dir, "index"))

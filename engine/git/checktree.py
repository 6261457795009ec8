"""A scratch tree in which a check runs: exactly one commit's files, and warm from the time before.

What git ignores (installed dependencies, build caches) stays from check to check; everything else
is brought to the commit. The code that runs there is the agents', so the files are written from
inside its sandbox and by a git directory that it never sees.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from engine.git.inside import InsideGit, Site, Wrap, outside
from engine.git.objects import commit_of, tree_of
from engine.git.private import PrivateClone, make_private
from engine.git.runner import Repo
from engine.git.staging import copy_index, stage_all

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


async def fill_check_tree(
    repo: Repo, place: CheckTree, commit: str, *, wrap: Wrap = outside
) -> tuple[str, ...]:
    """Bring a check tree to a commit; the object folders it borrows from, to be bound read-only."""
    commit = await commit_of(repo, commit)
    await to_thread.run_sync(_make_ready, place)
    async with InsideGit.opened(repo, _site(place), wrap) as git:
        await git("read-tree", "--reset", "-u", "--no-recurse-submodules", commit)
        await git("clean", "-ffdq")
    await to_thread.run_sync(_keep_index, git, place)
    clone = PrivateClone(path=Path(place.git_dir), branch=_BRANCH, base=commit, hide="plait")
    borrowed = await make_private(repo, clone)
    await to_thread.run_sync(_give_index, place)
    return borrowed


async def holds(repo: Repo, place: CheckTree, commit: str, *, wrap: Wrap = outside) -> bool:
    """The tree still is the commit's: the check changed nothing that git tracks or would add."""
    async with InsideGit.opened(repo, _site(place), wrap) as git:
        staged = await stage_all(git, str(place.path), big_file=1 << 62)
    return staged.tree == await tree_of(repo, commit)


def _site(place: CheckTree) -> Site:
    return Site(
        worktree=str(place.path),
        agent_git=str(place.folder / "none"),
        folder=place.folder / "git",
        index=place.folder / "index",
    )


def _make_ready(place: CheckTree) -> None:
    place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.path.is_symlink():
        place.path.unlink()
    place.path.mkdir(parents=True, exist_ok=True)
    dot_git = place.path / ".git"
    if dot_git.is_dir() and not dot_git.is_symlink():
        shutil.rmtree(dot_git)
    else:
        dot_git.unlink(missing_ok=True)


def _keep_index(git: InsideGit, place: CheckTree) -> None:
    copy_index(Path(git.git_dir, "index"), place.folder / "index")


def _give_index(place: CheckTree) -> None:
    copy_index(place.folder / "index", Path(place.git_dir, "index"))

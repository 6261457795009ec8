"""Fill a workspace from the tree of one that was released, instead of from nothing.

The kernel's own time of a file's last change decides: the file is used again if that is earlier
than the moment at which our git had filled the tree, before any agent was in it. No program can set
that time. Everything else stays in the trash, and git writes the files that are missing or differ.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from engine.beneath import Parting, part, remove_file
from engine.git.disk_moment import DiskMoment
from engine.git.filled import FillNote, filled, settings_of
from engine.git.objects import list_tree, resolve
from engine.git.removal import Removed, rest_of
from engine.git.runner import Repo
from engine.git.submodules import LINK
from engine.git.workspace import Spare, Strategy

_MOST_CHANGED = 0.5
"""If more than this share of the files differs, a new tree costs no more."""


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """A released tree that a new workspace can begin with.

    Attributes:
        index: What git knows of its files, from before an agent was in it.
        base: The commit that the tree was filled from, and how many files it has.
        head: The commit that has the files, from which the trash can make the tree again.
        rule: How to tell the files that nobody has touched.
    """

    index: Path
    base: tuple[str, int]
    head: str
    rule: Parting


async def reuse_of(repo: Repo, removed: Removed, base: str) -> Reuse | None:
    """Return how a released tree can be used for a base; None if it cannot, or does not pay."""
    released = removed.workspace
    if released.strategy is not Strategy.WORKTREE:
        return None
    found = await to_thread.run_sync(_proved, repo, removed)
    if found is None:
        return None
    index = Path(released.directory, "index")
    shape = await repo.cache.of(("shape", found.base), partial(_shape, repo, found.base))
    if shape.has_links or not await _is_near(repo, found.base, base, shape.files):
        return None
    head = await resolve(repo, removed.files or released.refs.head)
    if head is None:
        return None
    rule = Parting(
        before_ns=found.moment.disk_ns,
        folders=shape.folders,
        folder_mode=found.folder_mode,
    )
    return Reuse(index=index, base=(found.base, shape.files), head=head, rule=rule)


def _proved(repo: Repo, removed: Removed) -> FillNote | None:
    """Return the note of a tree whose times can be trusted."""
    noted = filled(Path(removed.workspace.directory))
    now = DiskMoment.now(removed.kept_in)
    if noted is None or now is None or noted.made_by != settings_of(repo):
        return None
    return noted if now.is_after(noted.moment) and now.folder == noted.moment.folder else None


class _Listed(NamedTuple):
    """A tree: how many files it has, in which folders, and if a submodule is among them."""

    files: int
    folders: frozenset[bytes]
    has_links: bool


async def _shape(repo: Repo, commit: str) -> _Listed:
    entries = await list_tree(repo, commit)
    folders = frozenset(_folders_of(entry.path for entry in entries))
    return _Listed(len(entries), folders, any(entry.mode == LINK for entry in entries))


async def _is_near(repo: Repo, earlier: str, base: str, count: int) -> bool:
    """Return whether most files are the same, and written by the same rules."""
    if earlier == base:
        return True
    listing = await repo.read("diff-tree", "-r", "-z", "--name-only", earlier, base)
    names = [name for name in listing.split(b"\0") if name]
    is_ruled_anew = any(name.rpartition(b"/")[2] == b".gitattributes" for name in names)
    return not is_ruled_anew and len(names) <= _MOST_CHANGED * count


def _folders_of(names: Iterable[bytes]) -> Iterator[bytes]:
    seen = set()
    for name in names:
        folder = name.rpartition(b"/")[0]
        while folder and folder not in seen:
            seen.add(folder)
            yield folder
            folder = folder.rpartition(b"/")[0]


def take_out(reuse: Reuse, kept_in: Path, spare: Path) -> Spare | None:
    """Take the untouched part of a released tree; what was touched stays beside it."""
    rest = rest_of(kept_in)
    rest.mkdir(0o700, exist_ok=True)
    remove_file(
        kept_in, ".git"
    )  # says where the workspace was registered, and is none of its files
    kept = part(kept_in, rest, reuse.rule)
    if not kept:
        return None
    kept_in.rename(spare)
    base, files = reuse.base
    return Spare(tree=spare, index=reuse.index, base=base, is_whole=kept == files)

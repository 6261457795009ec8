"""Fill a workspace from the tree of one that was released, instead of from nothing.

The index from before any agent was in the tree decides. A file is used again if it is the same
inode at the same path, and the kernel's own time of its last change is the same. No program can set
that time. Everything else stays in the trash, and git writes the files that are missing or differ.
"""

from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from engine.beneath import (
    Known,
    Parting,
    is_mounted,
    join,
    part,
    remove_file,
    remove_tree,
)
from engine.git.disk_moment import DiskMoment
from engine.git.filled import FillNote, filled, folder_mode, settings_of
from engine.git.objects import resolve
from engine.git.plumbing.index_file import known_files
from engine.git.removal import Removed, rest_of
from engine.git.runner import Repo
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
    made_by = await settings_of(repo)
    found = await to_thread.run_sync(_proved, removed, made_by)
    if found is None:
        return None
    index = Path(released.directory, "index")
    known = await to_thread.run_sync(known_files, index, repo.object_format)
    if known is None:
        return None
    files = sum(map(len, known.values()))
    head = await resolve(repo, removed.files or released.refs.head)
    if head is None or not await _is_near(repo, found.base, base, files):
        return None
    known = await _without(repo, known, (found.base, head))
    rule = Parting(known=known, before_ns=found.moment.disk_ns, folder_mode=found.folder_mode)
    return Reuse(index=index, base=(found.base, files), head=head, rule=rule)


def _proved(removed: Removed, made_by: str | None) -> FillNote | None:
    """Return the note of a tree whose times can be trusted, and that nobody can write to now."""
    noted = filled(Path(removed.workspace.directory))
    now = DiskMoment.now(removed.kept_in)
    if noted is None or now is None or noted.made_by != made_by:
        return None
    if not now.is_after(noted.moment) or now.folder != noted.moment.folder:
        return None
    if folder_mode(Path(removed.workspace.directory)) != noted.folder_mode:
        return None
    return None if is_mounted(Path(removed.kept_in)) else noted


async def _is_near(repo: Repo, earlier: str, base: str, count: int) -> bool:
    """Return whether most files are the same, and written by the same rules."""
    names = await _changed(repo, earlier, base)
    is_ruled_anew = any(name.rpartition(b"/")[2] == b".gitattributes" for name in names)
    return not is_ruled_anew and len(names) <= _MOST_CHANGED * count


async def _without(repo: Repo, known: Known, pair: tuple[str, str]) -> Known:
    """Return the files that the second of two commits has as well: from there they come back."""
    left = {folder: dict(names) for folder, names in known.items()}
    for path in await _changed(repo, *pair):
        folder, _, name = path.rpartition(b"/")
        left.get(folder, {}).pop(name, None)
    return left


async def _changed(repo: Repo, earlier: str, later: str) -> list[bytes]:
    if earlier == later:
        return []
    listing = await repo.read("diff-tree", "-r", "-z", "--name-only", earlier, later)
    return [name for name in listing.split(b"\0") if name]


def take_out(reuse: Reuse, kept_in: Path, spare: Path) -> Spare | None:
    """Take the untouched part of a released tree; what was touched stays beside it.

    If nothing can be taken, the tree is whole again; if not even that could be done, the rest of it
    stays beside it.
    """
    rest = rest_of(kept_in)
    rest.mkdir(0o700)
    # It says where the workspace was registered, and is none of its files.
    remove_file(kept_in, ".git")
    kept = part(kept_in, rest, reuse.rule)
    if not kept:
        if not any(rest.iterdir()) or join(rest, kept_in):
            remove_tree(rest)
        return None
    kept_in.rename(spare)
    base, files = reuse.base
    return Spare(tree=spare, index=reuse.index, base=base, is_whole=kept == files)

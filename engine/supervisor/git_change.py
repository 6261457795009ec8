"""What an attempt came to, measured for people: figures, and what was kept apart."""

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

from engine.git.base import Base
from engine.git.collection import Change as Collected
from engine.git.diff import FileChange, changed_files
from engine.git.embedded import Embedded
from engine.git.runner import Repo
from engine.git.submodules import LINK, missing_links
from engine.results import Change

_SHOWN = 5


async def measured(
    repo: Repo, found: Collected, base: str, *, meant: Sequence[str], artifacts: tuple[str, ...]
) -> Change | None:
    """What was collected, in figures; None where it comes to nothing."""
    aside = [f"{os.fsdecode(one.path)}: {one.reason}" for one in found.set_aside]
    files = await changed_files(repo, base, found.head) if found.head != base else []
    aside += await _repositories(repo, found, files)
    if found.head == base and not aside and not artifacts:
        return None
    strays = _strays([os.fsdecode(file.path) for file in files], meant)
    return Change(
        head=found.head if found.head != base else None,
        base=base,
        tree=found.tree,
        files=len(files),
        insertions=sum(file.added or 0 for file in files),
        deletions=sum(file.removed or 0 for file in files),
        artifacts=artifacts,
        set_aside=(*aside, *found.notes, *strays),
    )


async def _repositories(repo: Repo, found: Collected, files: Sequence[FileChange]) -> Iterable[str]:
    """What there is to say of repositories inside, and of links to commits of such."""
    bundled = {one.path for one in found.embedded if one.bundle}
    links = {f.path: f.new_oid for f in files if f.new_mode == LINK and f.path not in bundled}
    inside = [_embedded(one) for one in found.embedded if one.path not in links]
    return [*inside, *map(_missing, await missing_links(repo, found.head, links))]


def _embedded(one: Embedded) -> str:
    """Where the commits of a repository inside a workspace are: the branch only names one."""
    kept = f"its commits are in {one.bundle}, for `git fetch`" if one.bundle else one.note
    return f"{os.fsdecode(one.path)}: a repository inside; {kept}"


def _missing(path: bytes) -> str:
    """A link whose commit nobody could check out here: landing it would not bring the commit."""
    return f"{os.fsdecode(path)}: links to a commit that your submodule there does not have"


def _strays(paths: Sequence[str], meant: Sequence[str]) -> list[str]:
    """What a reviewer is to look at because it was not meant to be changed."""
    if not meant:
        return []
    strays = [path for path in paths if not any(fnmatch(path, one) for one in meant)]
    return [f"{path}: changed, and not among workspace.paths" for path in strays]


def left_out_note(base: Base) -> tuple[str, ...]:
    """Which of the user's edits no worker will see, in one sentence, where there are any."""
    if not base.left_out:
        return ()
    shown = ", ".join(os.fsdecode(path) for path in base.left_out[:_SHOWN])
    more = len(base.left_out) - _SHOWN
    names = f"{shown} and {more} more" if more > 0 else shown
    hint = "" if base.is_snapshot else "; `--base WORKTREE` takes uncommitted edits along"
    return (f"not in the base of this run: {names}{hint}",)

"""Files that git does not know and a build needs all the same, copied into a workspace.

The user lists them (`workspace.include`, `.worktreeinclude`). Nothing is overwritten, nothing is
moved, and no link that leads out of the user's tree is followed or copied.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from engine.beneath import EntryKind, PathRefused, WalkEntry, copy_tree, kind_of, list_tree
from engine.git.runner import Call, Repo, Where

FILE = ".worktreeinclude"


@dataclass(frozen=True, slots=True)
class Include:
    """One path that was asked for: copied, or why not."""

    path: bytes
    refused: str = ""


async def copy_includes(repo: Repo, patterns: Sequence[str], target: str) -> tuple[Include, ...]:
    """Copy what the patterns (in the language of `.gitignore`) name and git does not track."""
    if repo.worktree is None:
        return ()
    wanted = [*patterns, *(await to_thread.run_sync(_listed, repo.worktree))]
    if not wanted:
        return ()
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    words = ["ls-files", "-z", "--others", "--ignored", "--directory"]
    words += [f"--exclude={pattern}" for pattern in wanted]
    listing = await repo.read(*words, call=Call(), where=where)
    names = [name for name in listing.split(b"\0") if name]
    return await to_thread.run_sync(_copy_all, repo.worktree, target, names)


def _listed(worktree: str) -> list[str]:
    try:
        content = Path(worktree, FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [line for line in content.split("\n") if line.strip() and not line.startswith("#")]


def _copy_all(source: str, target: str, names: Iterable[bytes]) -> tuple[Include, ...]:
    wanted: list[bytes] = []
    refused: list[Include] = []
    top = Path(source).resolve()
    for entry in (one for name in names for one in _below(source, name.rstrip(b"/"))):
        if isinstance(entry, PathRefused):
            refused.append(Include(entry.path, entry.reason))
        elif entry.kind is EntryKind.LINK and not _leads_inside(top, entry.path):
            refused.append(Include(entry.path, "the link leads out of the repository"))
        elif entry.kind is not EntryKind.FOLDER:
            wanted.append(entry.path)
    done = copy_tree(source, wanted, target)
    copied = [Include(path) for path in done.files]
    return (*copied, *refused, *(Include(one.path, one.reason) for one in done.refused))


def _below(source: str, name: bytes) -> Iterator[WalkEntry | PathRefused]:
    """List a name and all that lies below it; a link to a folder is one entry."""
    place = os.fsencode(source) + b"/" + name
    try:
        seen = os.lstat(place)
    except OSError:
        return
    yield WalkEntry(name, kind_of(seen.st_mode), seen.st_size, seen.st_mode)
    if stat.S_ISDIR(seen.st_mode):
        for one in list_tree(place):
            yield replace(one, path=name + b"/" + one.path)


def _leads_inside(top: Path, name: bytes) -> bool:
    return Path(top, os.fsdecode(name)).resolve().is_relative_to(top)

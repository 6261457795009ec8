"""Files that git does not know and a build needs all the same, copied into a workspace.

The user lists them (`workspace.include`, `.worktreeinclude`). Nothing is overwritten, nothing is
moved, and no link that leads out of the user's tree is followed or copied.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from engine.git.runner import Call, Repo, Where

FILE = ".worktreeinclude"
_FICLONE = 0x40049409


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
    done: list[Include] = []
    root = Path(source)
    for name in names:
        relative = os.fsdecode(name.rstrip(b"/"))
        if not (root / relative).is_dir() or (root / relative).is_symlink():
            done.append(_copy(root, Path(target), relative))
            continue
        for folder, folders, files in os.walk(root / relative):
            links = [n for n in folders if Path(folder, n).is_symlink()]
            inner = Path(folder).relative_to(root)
            done += [_copy(root, Path(target), str(inner / n)) for n in sorted([*files, *links])]
    return tuple(done)


def _copy(root: Path, target: Path, relative: str) -> Include:
    source, copy = root / relative, target / relative
    name = os.fsencode(relative)
    seen = source.lstat()
    if stat.S_ISLNK(seen.st_mode) and not source.resolve().is_relative_to(root.resolve()):
        return Include(name, "the link leads out of the repository")
    if not (stat.S_ISLNK(seen.st_mode) or stat.S_ISREG(seen.st_mode)):
        return Include(name, "it is neither a file nor a link")
    if os.path.lexists(copy):
        return Include(name, "the workspace has a file of that name")
    if not copy.parent.resolve().is_relative_to(target.resolve()):
        return Include(name, "a link in the workspace leads out of it")
    copy.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(seen.st_mode):
        copy.symlink_to(source.readlink())
    else:
        _copy_file(source, copy)
    return Include(name)


def _copy_file(source: Path, copy: Path) -> None:
    """A copy that shares its blocks where the file system can, never its inode."""
    with source.open("rb") as read, copy.open("xb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError:
            shutil.copyfileobj(read, written)
    shutil.copystat(source, copy)

"""Open two trees beside each other for a reader: files of `git difftool`, a pull request.

Nothing is written but objects, and for a request two refs.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git.common import common_sides
from engine.git.merge3 import Merger
from engine.git.objects import commits_of, write_blob
from engine.git.publishing import Fetched, fetch_request
from engine.git.runner import Call, Repo, Where
from engine.git.staging import private_index
from engine.legible import legible_name
from engine.port.diff_port import Beside
from engine.review.alone.local import MergeReview
from engine.review.alone.other_merges import BranchMerge


async def files_beside(
    old: Path,
    new: Path,
    *,
    name: str = "",
    environment: Mapping[str, str] | None = None,
) -> Beside:
    """Hold two files against each other, or two folders as `git difftool --dir-diff` makes them.

    The empty device stands for a file that is not there. Folders called `.git` are left out.

    Raises:
        WorkspaceError: One of them cannot be read, or has a name that git refuses; or this is no
            repository.
    """
    repo = await Repo.open(Path.cwd(), os.environ if environment is None else environment)
    there = new if str(new) != os.devnull else old
    name = _in_tree(name or there.name)
    try:
        sides = [await to_thread.run_sync(_files, side, name) for side in (old, new)]
        trees = [await _tree(repo, files) for files in sides]
    except OSError as error:
        raise WorkspaceError(f"{error.filename} cannot be read: {error.strerror}") from error
    return Beside(
        repo=repo,
        old=trees[0],
        new=trees[1],
        name=f"diff of {'two folders' if there.is_dir() else name}",
        said="the old side",
    )


async def request_beside(
    folder: str | PathLike[str], request: str, environment: Mapping[str, str] | None = None
) -> Beside:
    """Fetch a pull request, and hold it against where it began; nothing is checked out.

    Raises:
        WorkspaceError: There is no such request, or no `gh`.
    """
    env = dict(os.environ if environment is None else environment)
    repo = await Repo.open(Path(folder), env)
    found = await fetch_request(repo, request, env)
    base, head = await commits_of(repo, found.base_ref, found.head_ref)
    sides = await common_sides(repo, Merger(repo), base, head)
    return Beside(
        repo=repo,
        old=sides.base,
        new=head,
        name=f"request #{found.number}: {found.title}",
        said=f"its start on {found.into}",
        about=found.body,
        merge=await _merge(repo, found, env),
    )


async def _merge(repo: Repo, found: Fetched, env: Mapping[str, str]) -> MergeReview | None:
    """Return the merge of a request into its branch, where it has conflicts."""
    merge = await BranchMerge.begin(
        repo.worktree or repo.common_dir,
        target=found.base_ref,
        incoming=found.head_ref,
        environment=env,
    )
    return merge if (await merge.conflicts()).files else None


_GIT, _LINK = ".git", "120000"


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A file on the disk, and its name in the tree that is made."""

    name: bytes
    mode: str
    path: Path


def _files(side: Path, name: str) -> Sequence[_OnDisk]:
    """Return the files of one side; a folder's are named from there."""
    if not side.is_dir():
        if str(side) == os.devnull:
            return ()
        return (_OnDisk(os.fsencode(name), _mode(side), side.absolute()),)
    return [
        _OnDisk(os.fsencode(path.relative_to(side)), _mode(path), path.absolute())
        for path in _below(side)
    ]


def _in_tree(name: str) -> str:
    """Return the name of a file as a tree can hold it: one from elsewhere loses its folders."""
    name = os.path.normpath(name)
    parts = name.split("/")
    is_elsewhere = parts[0] in {"", ".."} or _GIT in map(str.casefold, parts)
    return parts[-1] if is_elsewhere else name


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder; `git difftool` links to those of the working tree."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name.casefold() != _GIT]
        paths = (Path(where, name) for name in names if name.casefold() != _GIT)
        # No pipe, no device: nobody knows when reading these ends.
        yield from (path for path in paths if path.is_file() or _is_broken(path))


def _is_broken(path: Path) -> bool:
    """Return True for a link to nothing."""
    return path.is_symlink() and not path.exists()


def _mode(path: Path) -> str:
    if _is_broken(path):
        return _LINK
    return "100755" if path.stat().st_mode & 0o100 else "100644"


def _content(file: _OnDisk) -> bytes:
    return os.fsencode(file.path.readlink()) if file.mode == _LINK else file.path.read_bytes()


async def _tree(repo: Repo, files: Sequence[_OnDisk]) -> str:
    """Write a tree of files on the disk; return its id."""
    rows = []
    for file in files:
        content = await to_thread.run_sync(_content, file)
        blob = await write_blob(repo, content)
        rows.append(b"%s %s\t%s\0" % (file.mode.encode(), blob.encode(), file.name))
    if not rows:
        return repo.empty_tree
    async with private_index(repo) as index:
        here = Where(index=index)
        call = Call(stdin=b"".join(rows))
        await repo.run("update-index", "-z", "--index-info", call=call, where=here)
        kept = set((await repo.read("ls-files", "-z", where=here)).split(b"\0"))
        if refused := [file for file in files if file.name not in kept]:
            name = legible_name(os.fsdecode(refused[0].name))
            raise WorkspaceError(
                f"git accepts no file called {name}, so plait cannot show it",
                hint="Give it another name as the third argument: `plait difftool OLD NEW NAME`.",
            )
        return await repo.line("write-tree", where=here)

"""Write the tree that decisions make of a merge as objects, without putting it anywhere."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.merge3 import MergedTrees
from engine.git.objects import scratch_folder
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.staging import private_index
from engine.git.unsafe import is_unsafe
from engine.merge import FileResult
from engine.review.conflicts import Conflicts
from engine.review.reading import entries_below, entries_of


async def result_tree(
    repo: Repo,
    merged: MergedTrees,
    conflicts: Conflicts,
    results: Iterable[FileResult],
    *,
    where: Where = HERE,
) -> str:
    """Write the tree of a decided merge: git's own result on every clean part.

    Raises:
        WorkspaceError: The result cannot be a tree, or holds a path that no checkout may see.
    """
    decided = tuple(results)
    _refuse_unsafe(merged, decided)
    # Git's tree holds markers and invented names at these paths: remove all of them first.
    gone = {*conflicts.invented, *(one.path for one in merged.conflicts)}
    gone.update(one.path for one in decided)
    kept = [one for one in decided if one.mode is not None]
    await _refuse_clashes((repo, merged.tree, where), [one.path for one in kept], gone)
    blobs = await _blobs(repo, kept, where)
    rows = [b"0 %s\t%s\0" % (repo.zero.encode(), path) for path in sorted(gone)]
    rows += [
        b"%s %s\t%s\0" % ((one.mode or "").encode(), oid.encode(), one.path)
        for one, oid in zip(kept, blobs, strict=True)
    ]
    async with private_index(repo) as index:
        here = Where(index=index, objects=where.objects)
        await repo.run("read-tree", merged.tree, where=here)
        try:
            call = Call(stdin=b"".join(rows))
            await repo.run("update-index", "-z", "--index-info", call=call, where=here)
            return await repo.line("write-tree", where=here)
        except GitFailed as failed:
            raise _no_tree(failed.stderr.strip()) from failed


def _no_tree(why: str) -> WorkspaceError:
    return WorkspaceError(
        f"the result is not a valid tree: {why}",
        hint="A file is where another file needs a folder: delete one, or move one.",
    )


async def _refuse_clashes(
    asked: tuple[Repo, str, Where], kept: Sequence[bytes], gone: Collection[bytes]
) -> None:
    """Refuse a file where a folder is needed; git's index would drop the other without a word.

    A path that the merge has already cannot clash with the rest of the merge.
    """
    repo, tree, where = asked
    there = await entries_of(repo, tree, kept, where)
    new = [path for path in kept if path not in there]
    files = {
        *kept,
        *await entries_of(repo, tree, [up for path in new for up in _above(path)], where),
    }
    files -= {*gone}.difference(kept)
    for path in kept:
        above = next((up for up in _above(path) if up in files), None)
        if above is not None:
            raise _no_tree(
                f"{os.fsdecode(above)} is a file, but {os.fsdecode(path)} needs it as a folder"
            )
    for path in new:
        below = {*await entries_below(repo, tree, path, where)}.difference(gone)
        if below:
            raise _no_tree(
                f"{os.fsdecode(path)} is a folder that contains {os.fsdecode(min(below))}"
            )


def _above(path: bytes) -> Iterator[bytes]:
    """Yield the folders that a path lies in."""
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        yield b"/".join(parts[:depth])


def _refuse_unsafe(merged: MergedTrees, decided: Sequence[FileResult]) -> None:
    removed = {one.path for one in decided if one.mode is None}
    bad = [path for path in merged.unsafe if path not in removed]
    bad += [one.path for one in decided if one.mode and is_unsafe(one.path, one.mode)]
    if bad:
        names = ", ".join(path.decode(errors="replace") for path in bad)
        raise WorkspaceError(f"the result would contain paths that git refuses: {names}")


async def _blobs(repo: Repo, files: Sequence[FileResult], where: Where) -> list[str]:
    """Return the object of each file; write new contents with one process."""
    new = list(dict.fromkeys(one.content for one in files if _is_new(one)))
    async with scratch_folder(repo) as folder:
        names = await to_thread.run_sync(_put, folder, new)
        words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        made = await repo.read(*words, call=Call(stdin=names), where=where) if new else b""
    oids = dict(zip(new, made.decode().split(), strict=True))
    return [oids[one.content] if _is_new(one) else one.blob or "" for one in files]


def _is_new(one: FileResult) -> bool:
    """Return whether the content is given and not stored as an object yet."""
    return one.content is not None and one.blob is None


def _put(folder: Path, contents: Sequence[bytes | None]) -> bytes:
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content or b"")
    return b"".join(f"{folder}/{number}\n".encode() for number in range(len(contents)))

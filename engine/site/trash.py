"""Move what may go into the trash, with a label; bring it back, or delete it after a while."""

import fcntl
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine.beneath import remove_tree
from engine.errors import GitFailed, StoreError, WorkspaceError
from engine.git.checkout import COPIES, copied, put_back
from engine.git.recycling import Reuse, reuse_of, take_out
from engine.git.removal import TREE, RemovalVerdict, Removed, remove, rest_of, restore
from engine.git.runner import Repo
from engine.git.workspace import Spare
from engine.messages.questions import TrashItem
from engine.private import private_folder
from engine.store.codec import from_json, to_json
from engine.store.files import write_atomically
from engine.store.layout import Layout

LABEL = "removed.json"
KEPT_S = 30 * 24 * 3600.0
"""Keep what is in the trash for so many seconds."""
_GOING = ".going-"
_SOON_S = 0.02
_MOST_UNFIT = 4


async def discard(repo: Repo, layout: Layout, verdict: RemovalVerdict) -> None:
    """Move a workspace that may go into a folder of its own in the trash.

    Raises:
        WorkspaceError: It may not go.
    """
    # A folder for each: what is removed twice, or by two at once, must not meet.
    name = str(verdict.workspace.attempt).replace("/", ".").replace("@", ".")
    trash = layout.trash / f"{name}-{secrets.token_hex(3)}"
    removed = await remove(repo, verdict, trash)
    label = partial(write_atomically, trash / LABEL, to_json(removed).encode())
    await to_thread.run_sync(label)


async def lend(repo: Repo, layout: Layout, base: str, spare: Path) -> Spare | None:
    """Move the untouched files of a released tree to `spare`; None if no tree fits a base.

    The item can still be brought back: git makes again what has gone from it.
    """
    unfit = 0
    for folder in await to_thread.run_sync(_lendable, layout.trash, spare.parent):
        async with _claimed(folder) as is_ours:
            if not is_ours:
                continue  # another workspace was quicker, or it is brought back or deleted
            taken = await _lent(repo, folder, base, spare)
        if taken is not None:
            return taken
        unfit += 1
        if unfit == _MOST_UNFIT:
            break
    return None


async def _lent(repo: Repo, folder: Path, base: str, spare: Path) -> Spare | None:
    """Take the tree of an item that is claimed; None if it does not fit, or cannot be read."""
    try:
        removed = await to_thread.run_sync(_labeled, folder)
        if removed is None:
            return None
        reuse = await reuse_of(repo, removed, base)
        if reuse is None:
            return None
        return await to_thread.run_sync(_taken, folder, removed, reuse, spare)
    except (OSError, StoreError, GitFailed):
        return None  # a worker whose tree is made anew is better than none


def _labeled(folder: Path) -> Removed | None:
    """Return the label of an item whose tree is whole; None if an engine died while it took it."""
    removed = from_json(Removed, (folder / LABEL).read_text())
    tree = folder / TREE
    return None if rest_of(tree).exists() else replace(removed, kept_in=str(tree))


def _taken(folder: Path, removed: Removed, reuse: Reuse, spare: Path) -> Spare | None:
    """Take a tree out of its item; say in the label, which is kept as old, how it comes back."""
    label, tree = folder / LABEL, folder / TREE
    before, seen = label.read_bytes(), label.stat()

    def write(content: bytes) -> None:
        write_atomically(label, content)
        os.utime(label, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    write(to_json(replace(removed, head=reuse.head)).encode())
    taken = take_out(reuse, tree, spare)
    if taken is None and not rest_of(tree).exists():
        write(before)
    return taken


def _lendable(trash: Path, target: Path) -> list[Path]:
    """Return the items with a tree on the file system of a folder, the newest first."""
    device = private_folder(target).stat().st_dev
    found: list[tuple[float, str]] = []
    # Most items have lent their tree already, so that one look is enough.
    for item in os.listdir(trash) if trash.is_dir() else ():  # noqa: PTH208 - names are joined
        with suppress(OSError):
            if os.lstat(f"{trash}/{item}/{TREE}").st_dev == device and not item.startswith(_GOING):
                found.append((os.stat(f"{trash}/{item}/{LABEL}").st_mtime, item))  # noqa: PTH116
    return [trash / item for _, item in sorted(found, reverse=True)]


@asynccontextmanager
async def _claimed(folder: Path, *, is_awaited: bool = False) -> AsyncIterator[bool]:
    """Hold an item of the trash for this task alone; yield False if another holds it.

    Whoever takes anything out of an item claims it first. The claim ends with its holder, however
    that ends.
    """
    claim = await to_thread.run_sync(_opened, folder)
    if claim is None:
        yield False
        return
    try:
        while True:
            is_ours = _is_locked(claim, without=is_awaited)
            if is_ours or not is_awaited:
                break
            await anyio.sleep(_SOON_S)  # a blocking lock in a thread could not be cancelled
        yield is_ours
    finally:
        os.close(claim)


def _opened(folder: Path) -> int | None:
    """Open a folder, whose lock is the claim: that writes nothing; None where there is no item."""
    if not any((folder / name).is_file() for name in (LABEL, COPIES)):
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None


def _is_locked(folder: int, *, without: bool) -> bool:
    """Lock a folder unless another holds its lock; return whether it is ours.

    `without` is the answer on a file system without locks: nothing is lent there, and all else may
    go on.
    """
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True


def drop_empty(folder: Path) -> None:
    """Remove a folder and those below it that hold nothing at all."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # something is in it
            Path(path).rmdir()


def trash_items(trash: Path) -> list[TrashItem]:
    """Return the contents of the trash, newest first."""
    items = []
    there = trash.iterdir() if trash.is_dir() else ()
    for folder in (one for one in there if not one.name.startswith(_GOING)):
        label, copies = folder / LABEL, folder / COPIES
        if label.is_file():
            with suppress(FileNotFoundError):  # it is brought back or deleted just now
                removed, at = from_json(Removed, label.read_text()), label.stat().st_mtime
                items.append(TrashItem(id=folder.name, origin=removed.workspace.path, at=at))
        elif copies.is_file():
            with suppress(WorkspaceError):  # what is unreadable is for whoever opens the folder
                worktree, paths = copied(folder)
                origin = f"edits of {', '.join(paths)} in {worktree}"
                items.append(TrashItem(id=folder.name, origin=origin, at=copies.stat().st_mtime))
    return sorted(items, key=lambda item: item.at, reverse=True)


async def bring_back(repo: Repo | None, trash: Path, name: str) -> str:
    """Restore a workspace to its place, or edits to their files; return the paths.

    Raises:
        WorkspaceError: There is none of that name, or something else is in its place now.
    """
    folder = trash / Path(name).name
    async with _claimed(folder, is_awaited=True) as is_ours:
        back = await _brought_back(repo, folder) if is_ours else None
        if back is not None:
            await to_thread.run_sync(remove_tree, folder)
            return back
    raise WorkspaceError(
        f"the trash has nothing called {name!r}", hint="`plait restore` lists its content."
    )


async def _brought_back(repo: Repo | None, folder: Path) -> str | None:
    """Bring the content of an item back; return the paths, None if there is no content."""
    if await anyio.Path(folder / COPIES).is_file():
        return ", ".join(await to_thread.run_sync(put_back, folder))
    if repo is None or not await anyio.Path(folder / LABEL).is_file():
        return None
    try:
        removed = from_json(Removed, await anyio.Path(folder / LABEL).read_text())
    except StoreError as error:
        raise WorkspaceError(f"{folder / LABEL} cannot be read: {error}") from error
    await restore(repo, removed)
    return removed.workspace.path


def purge(trash: Path, now: float) -> None:
    """Delete what has been in the trash for long enough, and what an earlier purge left."""
    for item in trash_items(trash):
        if now - item.at > KEPT_S and (claim := _opened(trash / item.id)) is not None:
            try:
                # Renamed first: half of it must never look like something that could be restored.
                if _is_locked(claim, without=True):
                    (trash / item.id).rename(trash / f"{_GOING}{item.id}")
            finally:
                os.close(claim)
    for folder in trash.glob(f"{_GOING}*"):
        remove_tree(folder)  # the next clean tries again where something stays

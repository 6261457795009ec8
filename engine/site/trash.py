"""Move what may go into the trash, with a label; bring it back, or delete it after a while."""

import os
import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine.beneath import remove_tree
from engine.errors import StoreError, WorkspaceError
from engine.git.checkout import COPIES, copied, put_back
from engine.git.recycling import reuse_of, take_out
from engine.git.removal import TREE, RemovalVerdict, Removed, remove, restore
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
_LENT = "lent"
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
        removed = await to_thread.run_sync(_claimed, folder)
        if removed is None:
            continue  # another workspace was quicker
        reuse = await reuse_of(repo, removed, base)
        if reuse is None:
            await to_thread.run_sync(Path(removed.kept_in).rename, folder / TREE)
            unfit += 1
            if unfit == _MOST_UNFIT:
                break
            continue
        text = to_json(replace(removed, head=reuse.head))
        await to_thread.run_sync(write_atomically, folder / LABEL, text.encode())
        taken = await to_thread.run_sync(take_out, reuse, Path(removed.kept_in), spare)
        if taken is not None:
            return taken
    return None


def _lendable(trash: Path, target: Path) -> list[Path]:
    """Return the items with a tree on the file system of a folder, the newest first."""
    device = private_folder(target).stat().st_dev
    found: list[tuple[float, str]] = []
    # Most items have lent their tree already, so that one look is enough.
    for item in os.listdir(trash) if trash.is_dir() else ():  # noqa: PTH208 - names are joined
        with suppress(OSError):
            if os.lstat(f"{trash}/{item}/{TREE}").st_dev == device:
                found.append((os.stat(f"{trash}/{item}/{LABEL}").st_mtime, item))  # noqa: PTH116
    return [trash / item for _, item in sorted(found, reverse=True)]


def _claimed(folder: Path) -> Removed | None:
    """Take an item for this workspace alone; None if another was quicker, or it is no worktree."""
    try:
        removed = from_json(Removed, (folder / LABEL).read_text())
        (folder / TREE).rename(folder / _LENT)
    except (OSError, StoreError):
        return None
    return replace(removed, kept_in=str(folder / _LENT))


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
            origin, at = from_json(Removed, label.read_text()).workspace.path, label.stat().st_mtime
            items.append(TrashItem(id=folder.name, origin=origin, at=at))
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
    if await anyio.Path(folder / COPIES).is_file():
        back = await to_thread.run_sync(put_back, folder)
        await to_thread.run_sync(remove_tree, folder)
        return ", ".join(back)
    if repo is None or not await anyio.Path(folder / LABEL).is_file():
        raise WorkspaceError(
            f"the trash has nothing called {name!r}", hint="`plait restore` lists its content."
        )
    text = await anyio.Path(folder / LABEL).read_text()
    try:
        removed = from_json(Removed, text)
    except StoreError as error:
        raise WorkspaceError(f"{folder / LABEL} cannot be read: {error}") from error
    if await anyio.Path(folder / _LENT).is_dir():  # an engine died while it took a part of it
        removed = replace(removed, kept_in=str(folder / _LENT))
    await restore(repo, removed)
    await to_thread.run_sync(remove_tree, folder)
    return removed.workspace.path


def purge(trash: Path, now: float) -> None:
    """Delete what has been in the trash for long enough, and what an earlier purge left."""
    for item in trash_items(trash):
        if now - item.at > KEPT_S:
            # Renamed first: half of it must never look like something that could be restored.
            (trash / item.id).rename(trash / f"{_GOING}{item.id}")
    for folder in trash.glob(f"{_GOING}*"):
        remove_tree(folder)  # the next clean tries again where something stays

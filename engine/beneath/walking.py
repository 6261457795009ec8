"""Tells what a tree contains, an entry at a time, and never enters anything but folders."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from engine.beneath.opening import (
    Name,
    PathRefused,
    RefusedError,
    Why,
    allow,
    folder_beneath,
    refusal,
    root_folder,
)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The most that is taken of a tree.

    Attributes:
        size: Bytes on disk; the gaps of sparse files count nothing.
    """

    entries: int = 1_000_000
    size: int = 16 << 30
    depth: int = 4096


class EntryKind(StrEnum):
    """The kinds of entries that differ to us."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class WalkEntry:
    """One entry of a tree, by its path beneath the root."""

    path: bytes
    kind: EntryKind
    size: int
    mode: int


def kind_of(mode: int) -> EntryKind:
    """Tell the kind from the mode."""
    match stat.S_IFMT(mode):
        case stat.S_IFREG:
            return EntryKind.FILE
        case stat.S_IFDIR:
            return EntryKind.FOLDER
        case stat.S_IFLNK:
            return EntryKind.LINK
        case _:
            return EntryKind.OTHER


def list_tree(
    root: Name,
    *,
    bounds: Bounds | None = None,
    is_entered: Callable[[bytes], bool] = lambda _: True,
) -> Iterator[WalkEntry | PathRefused]:
    """List everything beneath a root, each folder before what it contains.

    `is_entered` says of a folder's path if its contents are wanted. Memory holds the folders that
    are still to be entered and nothing else.
    """
    bounds = bounds or Bounds()
    try:
        with root_folder(root) as top:
            yield from _all_beneath(top, bounds, is_entered)
    except RefusedError as error:  # the root is not there, or no folder
        yield error.refused


def _all_beneath(
    top: int, bounds: Bounds, is_entered: Callable[[bytes], bool]
) -> Iterator[WalkEntry | PathRefused]:
    seen = 0
    waiting: list[bytes] = [b""]
    while waiting:
        for one in _inside(top, waiting.pop(), bounds):
            seen += 1
            if seen > bounds.entries:
                yield PathRefused(one.path, Why.TOO_MANY)
                return
            if isinstance(one, WalkEntry) and one.kind is EntryKind.FOLDER and is_entered(one.path):
                waiting.append(one.path)
            yield one


def _inside(top: int, path: bytes, bounds: Bounds) -> Iterator[WalkEntry | PathRefused]:
    parts = path.split(b"/") if path else []
    if len(parts) >= bounds.depth:
        yield PathRefused(path, Why.TOO_DEEP)
        return
    prefix = path + b"/" if path else b""
    try:
        with folder_beneath(top, parts) as folder, os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + os.fsencode(entry.name)
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError as error:
                    yield refusal([name], error)
                else:
                    yield WalkEntry(name, kind_of(found.st_mode), found.st_size, found.st_mode)
    except RefusedError as error:
        yield error.refused
    except OSError as error:
        yield refusal(parts, error)


def open_up(root: Name, *, bounds: Bounds | None = None) -> tuple[bytes, ...]:
    """Let the owner read every file and enter every folder again; return what was changed.

    What belongs to somebody else stays as it is.
    """
    changed: list[bytes] = []
    with suppress(RefusedError), root_folder(root) as top:
        for one in list_tree(root, bounds=bounds):
            # A folder is listed before it is entered, so it is open by then.
            if not isinstance(one, WalkEntry) or one.kind not in {EntryKind.FILE, EntryKind.FOLDER}:
                continue
            bits = stat.S_IRUSR if one.kind is EntryKind.FILE else stat.S_IRWXU
            if one.mode & bits != bits and _allow(top, one.path, bits):
                changed.append(one.path)
    return tuple(changed)


def _allow(top: int, path: bytes, bits: int) -> bool:
    *folders, name = path.split(b"/")
    try:
        with folder_beneath(top, folders) as folder:
            return allow(name, folder, bits)
    except RefusedError:
        return False

"""Removes trees, folders without permissions included, and never what a link leads to."""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from engine.beneath.opening import (
    FOLDER,
    Name,
    PathRefused,
    RefusedError,
    Why,
    allow,
    folder_beneath,
    parts_of,
    refusal,
    root_folder,
)
from engine.beneath.writing import put_aside

_DEEP = 200
_OTHER_END = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3
T = TypeVar("T")
_Parts = tuple[bytes, ...]


def remove_tree(root: Name, name: Name = b"") -> tuple[PathRefused, ...]:
    """Remove what a name stands for, with all that lies beneath it; say what could not go.

    Without a name the root itself goes, if it is a folder and no link. What is not there is fine.
    """
    if not os.fsencode(name):
        place = Path(os.fsdecode(root))
        root, name = place.parent, place.name
    try:
        *folders, last = parts_of(name)
        with root_folder(root) as top, folder_beneath(top, folders) as folder:
            return tuple(_remove(folder, last, b"/".join((*folders, last))))
    except RefusedError as error:
        return () if error.refused.why is Why.GONE else (error.refused,)
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (refusal([os.fsencode(name)], error, is_write=True),)


def remove_file(root: Name, name: Name) -> PathRefused | None:
    """Remove a file or a link, never a folder; one that is not there is fine."""
    return _done(root, name, lambda _, last, folder: os.unlink(last, dir_fd=folder))


def move_aside(root: Name, name: Name) -> bytes | PathRefused | None:
    """Rename what stands under a name within its folder; return its new path, None without one."""
    return _done(root, name, lambda on, last, to: b"/".join((*on, put_aside(last, to))))


def _done(
    root: Name, name: Name, act: Callable[[list[bytes], bytes, int], T]
) -> T | PathRefused | None:
    """Do something to a name in its folder; None where nothing has that name."""
    try:
        *folders, last = parts_of(name)
        with root_folder(root) as top, folder_beneath(top, folders) as folder:
            return act(folders, last, folder)
    except FileNotFoundError:
        return None
    except RefusedError as error:
        return None if error.refused.why is Why.GONE else error.refused
    except OSError as error:
        return refusal([os.fsencode(name)], error, is_write=True)


def release(root: Name, name: Name) -> None:
    """Release who waits for the other end of a FIFO."""
    try:
        *folders, last = parts_of(name)
        with root_folder(root) as top, folder_beneath(top, folders) as folder:
            os.close(os.open(last, _OTHER_END, dir_fd=folder))
    except (RefusedError, OSError):
        return  # nobody waits, or it is none


def _remove(folder: int, name: bytes, path: bytes) -> list[PathRefused]:
    """Remove one entry of an opened folder."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=folder)
            return []
        allow(name, folder, stat.S_IRWXU)
        top = os.open(name, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [refusal([path], error, is_write=True)]
    refused: list[PathRefused] = []
    try:
        for _ in range(_TRIES):  # names that came, or that were missed while others went
            refused = _empty(top, path)
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)
                return []
    finally:
        os.close(top)
    return refused or [PathRefused(path, Why.FAILED, "another process is writing to it")]


def _empty(top: int, path: bytes) -> list[PathRefused]:
    """Empty a folder; say what could not go.

    What lies deep is moved up before it is entered: the cost stays linear however deep the tree is.
    """
    refused: list[PathRefused] = []
    waiting: list[_Parts] = [()]
    entered: list[_Parts] = []
    while waiting:
        parts = waiting.pop()
        try:
            if len(parts) > _DEEP:
                parts = _moved_up(top, parts)
            with folder_beneath(top, parts) as folder:
                waiting += [(*parts, name) for name in _remove_files(folder, path, refused)]
            entered.append(parts)
        except RefusedError as error:
            refused.append(error.refused)
    for parts in reversed(entered[1:]):
        try:
            with folder_beneath(top, parts[:-1]) as folder:
                os.rmdir(parts[-1], dir_fd=folder)
        except RefusedError as error:
            refused.append(error.refused)
        except OSError as error:
            refused.append(refusal([path, *parts], error, is_write=True))
    return refused


def _remove_files(folder: int, path: bytes, refused: list[PathRefused]) -> list[bytes]:
    """Remove all but the folders in a folder; return those."""
    inner: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    allow(name, folder, stat.S_IRWXU)
                    inner.append(name)
                else:
                    os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                refused.append(refusal([path, name], error, is_write=True))
    return inner


def _moved_up(top: int, parts: _Parts) -> _Parts:
    free = b".removing-" + secrets.token_hex(8).encode()
    try:
        with folder_beneath(top, parts[:-1]) as folder:
            os.rename(parts[-1], free, src_dir_fd=folder, dst_dir_fd=top)
    except OSError as error:
        raise RefusedError(refusal(parts, error, is_write=True)) from error
    return (free,)

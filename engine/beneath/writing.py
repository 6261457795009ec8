"""Reads and writes single files beneath a root.

Nothing is written in place: a file that has another name elsewhere would be changed there too.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum

from engine.beneath.opening import (
    Name,
    PathRefused,
    RefusedError,
    Why,
    folder_beneath,
    open_file,
    parts_of,
    refusal,
    root_folder,
)

_OVER = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCKING = frozenset({errno.ENOTDIR, errno.ELOOP})


_Write = Callable[[bytes, int], None]


class Taken(Enum):
    """The treatment of something that stands where a file is to be written."""

    KEEP = "keep"
    REPLACE = "replace"
    ASIDE = "aside"
    """Rename what is in the way, on the way to the file as well, and keep it."""


def read_file(root: Name, name: Name, *, most: int = 64 << 20) -> bytes | PathRefused:
    """Return the contents of a regular file, up to a number of bytes."""
    try:
        *folders, last = _named(name)
        with root_folder(root) as top, folder_beneath(top, folders) as folder:
            try:
                descriptor = open_file(last, folder)
            except OSError as error:
                return _of(folders, last, error)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(most)
    except RefusedError as error:
        return error.refused
    except OSError as error:
        return refusal([os.fsencode(name)], error)


def read_link(root: Name, name: Name) -> bytes | PathRefused:
    """Return where a symbolic link leads, by its wording."""
    try:
        *folders, last = _named(name)
        with root_folder(root) as top, folder_beneath(top, folders) as folder:
            return os.readlink(last, dir_fd=folder)
    except RefusedError as error:
        return error.refused
    except OSError as error:
        return refusal([os.fsencode(name)], error)


def write_file(
    root: Name,
    name: Name,
    data: bytes,
    *,
    mode: int = 0o666,
    folder_mode: int = 0o777,
    taken: Taken = Taken.REPLACE,
) -> PathRefused | None:
    """Write a file whole or not at all; folders on the way are made.

    Never follows a link, and never writes into a file that is there.
    """

    def write(last: bytes, folder: int) -> None:
        with (
            new_file(folder, last, mode) as descriptor,
            os.fdopen(descriptor, "wb", closefd=False) as out,
        ):
            out.write(data)

    return _put(root, name, write, (taken, folder_mode))


def make_link(
    root: Name, name: Name, target: Name, *, taken: Taken = Taken.KEEP
) -> PathRefused | None:
    """Make a symbolic link; folders on the way are made."""
    return _put(
        root, name, lambda last, folder: os.symlink(target, last, dir_fd=folder), (taken, 0o777)
    )


def _put(root: Name, name: Name, write: _Write, how: tuple[Taken, int]) -> PathRefused | None:
    taken, mode = how
    try:
        *folders, last = _named(name)
        with root_folder(root) as top:
            if taken is Taken.ASIDE:
                _clear_way(top, folders, mode)
            with folder_beneath(top, folders, is_made=True, mode=mode) as folder:
                try:
                    _put_in(folder, last, write, taken)
                except OSError as error:
                    return _of(folders, last, error, is_write=True)
    except RefusedError as error:
        return error.refused
    except OSError as error:
        return refusal([os.fsencode(name)], error, is_write=True)
    return None


def _put_in(folder: int, last: bytes, write: _Write, taken: Taken) -> None:
    if taken is Taken.KEEP:
        write(last, folder)
        return
    draft = b"." + last[:200] + b"." + secrets.token_hex(6).encode()
    write(draft, folder)
    try:
        try:
            os.replace(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            if taken is not Taken.ASIDE:
                raise
            put_aside(last, folder)
            os.replace(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise


@contextmanager
def new_file(folder: int, name: bytes, mode: int) -> Iterator[int]:
    """Make a file that must not be there yet; it goes again if the block fails."""
    descriptor = os.open(name, NEW, mode, dir_fd=folder)
    try:
        yield descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


@contextmanager
def file_over(folder: int, name: bytes, mode: int) -> Iterator[int]:
    """Open the plain file of that name to be written anew, or make a new one in its place.

    Writing into a file that is there costs a tenth of removing and making it: a file system may
    search long for a free inode where thousands were freed a moment ago. Only a file that is wholly
    ours is written over; one with a second name, or with attributes, gives way to a new one. Its
    bytes are still there: whoever writes ends with the right size and leaves none of them.
    """
    descriptor = _open_own(folder, name)
    if descriptor is None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        with new_file(folder, name, mode) as made:
            yield made
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_own(folder: int, name: bytes) -> int | None:
    """Open a plain file with one name and no attributes to be written; None if it is not one."""
    try:
        descriptor = os.open(name, _OVER, dir_fd=folder)
    except OSError:
        return None
    found = os.fstat(descriptor)
    is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    if is_plain and found.st_uid == os.geteuid() and not _has_attributes(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _has_attributes(descriptor: int) -> bool:
    try:
        return bool(os.listxattr(descriptor))
    except (OSError, AttributeError):  # the file system, or the system, has none
        return False


def put_aside(name: bytes, folder: int) -> bytes:
    """Rename what stands under a name, within its folder; return the new name."""
    free = name[:200] + b".aside-" + secrets.token_hex(6).encode()
    os.rename(name, free, src_dir_fd=folder, dst_dir_fd=folder)
    return free


def _clear_way(top: int, folders: Sequence[bytes], mode: int) -> None:
    for depth in range(len(folders)):
        with folder_beneath(top, folders[:depth], is_made=True, mode=mode) as folder:
            try:
                found = os.stat(folders[depth], dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return
            if not stat.S_ISDIR(found.st_mode):
                put_aside(folders[depth], folder)
                return


def _named(name: Name) -> tuple[bytes, ...]:
    parts = parts_of(name)
    if not parts:
        raise RefusedError(PathRefused(b"", Why.NO_NAME))
    return parts


def _of(
    folders: Sequence[bytes], last: bytes, error: OSError, *, is_write: bool = False
) -> PathRefused:
    path = b"/".join((*folders, last))
    if error.errno in _BLOCKING and not is_write:  # the last component itself is a link
        return PathRefused(path, Why.NOT_A_FILE)
    return refusal([path], error, is_write=is_write)

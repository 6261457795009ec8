"""Opens what lies beneath a root folder without following a link on the way.

`openat2` opens many components in one call. Where the kernel lacks it, or a filter of system calls
refuses it, each component is opened by itself with O_NOFOLLOW; both hold what is promised, because
a name never contains `..`.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.system import IS_PORTABLE

Name = bytes | str | Path
"""A path relative to a root. The empty one names the root itself."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_HANDLE = _READ if IS_PORTABLE else os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_SYS_OPENAT2 = 437  # the same number on every architecture
_NO_SYMLINKS, _BENEATH = 0x04, 0x08
_LONGEST = 3500
"""Longest path in bytes that one call gets; the kernel accepts 4096."""
_LACKING = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN})


class Why(StrEnum):
    """The reason for a refusal, as the end of a sentence about it."""

    BEHIND_LINK = "a link or a file is where a folder should be"
    LEADS_OUT = "the link points outside the tree"
    NOT_A_FILE = "it is neither a file, a folder nor a link"
    TAKEN = "something with that name exists already"
    UNREADABLE = "it cannot be read"
    GONE = "it is gone"
    TOO_MANY = "there are too many entries"
    TOO_BIG = "it is too big"
    TOO_DEEP = "it is nested too deep"
    NO_NAME = "it is not a path inside the tree"
    FAILED = "it could not be written"


@dataclass(frozen=True, slots=True)
class PathRefused:
    """A path that was left alone, and why."""

    path: bytes
    why: Why
    said: str = ""

    @property
    def reason(self) -> str:
        """The reason, with what the system said about it."""
        return f"{self.why}: {self.said}" if self.said else str(self.why)


class RefusedError(Exception):
    """Carries a refusal up to the function that returns it; never leaves this room."""

    def __init__(self, refused: PathRefused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


class _How(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


_libc = ctypes.CDLL(None, use_errno=True)
_lacks_openat2 = IS_PORTABLE


def parts_of(name: Name) -> tuple[bytes, ...]:
    """Split a relative name.

    Raises:
        RefusedError: The name is absolute, climbs, or contains a zero byte.
    """
    raw = os.fsencode(name)
    parts = tuple(part for part in raw.split(b"/") if part not in {b"", b"."})
    if raw.startswith(b"/") or b".." in parts or b"\0" in raw:
        raise RefusedError(PathRefused(raw, Why.NO_NAME))
    return parts


@contextmanager
def root_folder(root: Name) -> Iterator[int]:
    """Open a root; its own last component is not followed either.

    Raises:
        RefusedError: It is not there, or no folder.
    """
    try:
        descriptor = os.open(root, FOLDER)
    except OSError as error:
        raise RefusedError(refusal([], error)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def folder_beneath(
    root: int, parts: Sequence[bytes], *, is_made: bool = False, mode: int = 0o777
) -> Iterator[int]:
    """Open a folder beneath a root; make the missing ones on the way if asked.

    Raises:
        RefusedError: A component is no folder, or cannot be opened or made.
    """
    try:
        descriptor = _open_folder(root, parts)
    except FileNotFoundError as error:
        if not is_made:
            raise RefusedError(refusal(parts, error)) from error
        descriptor = _make_folders(root, parts, mode)
    except OSError as error:
        raise RefusedError(refusal(parts, error)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def refusal(parts: Sequence[bytes], error: OSError, *, is_write: bool = False) -> PathRefused:
    """Say in our words why the system refused a path."""
    path = b"/".join(parts)
    match error.errno:
        case errno.ELOOP | errno.ENOTDIR | errno.EXDEV:
            return PathRefused(path, Why.BEHIND_LINK)
        case errno.ENOENT | errno.ESTALE:
            return PathRefused(path, Why.GONE)
        case errno.EEXIST:
            return PathRefused(path, Why.TAKEN)
        case errno.ENXIO | errno.ENODEV:
            return PathRefused(path, Why.NOT_A_FILE)
        case _:
            pass
    why = Why.FAILED if is_write else Why.UNREADABLE
    return PathRefused(path, why, (error.strerror or str(error)).lower())


def _make_folders(root: int, parts: Sequence[bytes], mode: int) -> int:
    current = os.dup(root)
    for number, part in enumerate(parts):
        try:
            with suppress(FileExistsError):
                os.mkdir(part, mode, dir_fd=current)
            inner = os.open(part, FOLDER, dir_fd=current)
        except OSError as error:
            raise RefusedError(refusal(parts[: number + 1], error, is_write=True)) from error
        finally:
            os.close(current)
        current = inner
    return current


def _open_folder(root: int, parts: Sequence[bytes]) -> int:
    """Open step by step, in as few calls as the kernel allows."""
    current = os.dup(root)
    for chunk in _chunks(parts):
        try:
            inner = _open_chunk(current, chunk)
        finally:
            os.close(current)
        current = inner
    return current


def _chunks(parts: Sequence[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    length = 0
    for part in parts:
        if chunk and (_lacks_openat2 or length + len(part) >= _LONGEST):
            yield chunk
            chunk, length = [], 0
        chunk.append(part)
        length += len(part) + 1
    if chunk:
        yield chunk


def _open_chunk(root: int, parts: Sequence[bytes]) -> int:
    if len(parts) == 1:
        return os.open(parts[0], FOLDER, dir_fd=root)
    opened = _openat2(root, b"/".join(parts))
    if opened is not None:
        return opened
    current = os.dup(root)
    for part in parts:
        try:
            inner = os.open(part, FOLDER, dir_fd=current)
        finally:
            os.close(current)
        current = inner
    return current


def _openat2(root: int, path: bytes) -> int | None:
    """Open a folder by a path of several components; None where only single steps can tell."""
    global _lacks_openat2  # noqa: PLW0603 - a fact about this machine's kernel
    if _lacks_openat2:
        return None
    how = _How(FOLDER, 0, _NO_SYMLINKS | _BENEATH)
    arguments = (ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(root), ctypes.c_char_p(path))
    found: int = _libc.syscall(*arguments, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    if found >= 0:
        return found
    number = ctypes.get_errno()
    if number in _LACKING:
        _lacks_openat2 = number == errno.ENOSYS
        return None
    raise OSError(number, os.strerror(number))


def open_file(name: bytes, folder: int) -> int:
    """Open a regular file in a folder to be read.

    Raises:
        OSError: It cannot be opened; ENXIO where it is no regular file.
    """
    descriptor = os.open(name, _READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    return descriptor


def move(name: bytes, source: int, target: int) -> None:
    """Rename an entry into another folder, under the same name, with the same mode.

    Raises:
        OSError: It cannot be moved.
    """
    try:
        os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        # A folder that changes its parent is written to: it names its parent.
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if not allow(name, source, stat.S_IWUSR):
            raise
        try:
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
        except OSError:
            _set_mode(name, source, mode)
            raise
        _set_mode(name, target, mode)


def _set_mode(name: bytes, folder: int, mode: int) -> None:
    """Give a folder of ours a mode, through its inode as in `allow`."""
    handle = os.open(name, _HANDLE, dir_fd=folder)
    try:
        if IS_PORTABLE:
            os.fchmod(handle, stat.S_IMODE(mode))
        else:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode))  # noqa: PTH101 - as in `allow`
    finally:
        os.close(handle)


def allow(name: bytes, folder: int, bits: int) -> bool:
    """Add permissions to a file or folder of our own, never through a link; tell if they changed.

    `chmod` by name would follow a link that was put there meanwhile, and a descriptor without
    read permission cannot be had. So the very inode is named through /proc. A file with a second
    name is left alone: that name may be somebody else's.
    """
    try:
        handle = os.open(name, _HANDLE, dir_fd=folder)
    except OSError:
        return False
    try:
        found = os.fstat(handle)
        is_alone = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if found.st_uid != os.geteuid() or not (is_alone or stat.S_ISDIR(found.st_mode)):
            return False
        mode = stat.S_IMODE(found.st_mode)
        if mode & bits == bits:
            return False
        if IS_PORTABLE:
            os.fchmod(handle, mode | bits)
        else:
            os.chmod(f"/proc/self/fd/{handle}", mode | bits)  # noqa: PTH101 - no path, an inode
    except OSError:
        return False
    finally:
        os.close(handle)
    return True

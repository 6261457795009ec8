"""Write files that are whole or absent, and lock a repository for one engine.

Knows bytes, names and the kernel's locks; not what is written.
"""

import fcntl
import json
import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Self, TypedDict

from engine.errors import LockHeld, StoreError


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Put `data` at `path`: a reader sees the old bytes or the new, also after a power cut.

    Raises:
        StoreError: it could not be written; what was there is untouched.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        try:
            _write_durably(draft, data, mode)
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}",
            hint="Check the free disk space and the permissions of the folder.",
        ) from error


def _write_durably(path: Path, data: bytes, mode: int) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(number, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Return when the names in this folder are on disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class EngineLock:
    """The right to be a repository's engine, held until it is released or the process is gone.

    The kernel holds it, not the file: a lock file left behind by a killed engine is no lock. No
    child keeps it: it is closed on exec, and at once in the child of a fork.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _held.add(self)

    @classmethod
    def take(cls, path: Path, *, socket: str) -> Self:
        """Take the lock if nobody holds it; `socket` tells others where this engine listens.

        Raises:
            LockHeld: somebody does; it says who.
            StoreError: the lock file cannot be used.
        """
        try:
            while True:
                lock = cls(path)
                if lock._is_taken_for(socket):
                    return lock
        except OSError as error:
            raise StoreError(f"{path} cannot be locked: {error.strerror}") from error

    def _is_taken_for(self, socket: str) -> bool:
        """Return whether it is ours now; False if the file was exchanged under us, so try again."""
        assert self._number is not None  # noqa: S101 - it was opened a moment ago
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(self._number, self.path):
                self._close()
                return False
            os.ftruncate(self._number, 0)
            os.pwrite(self._number, _holder(socket), 0)
        except BlockingIOError as error:
            holder = _read_holder(self._number)
            self._close()
            raise LockHeld(str(self.path), **holder) from error
        except BaseException:
            self._close()
            raise
        return True

    def release(self) -> None:
        """Release the lock; a second time does nothing."""
        if self._number is not None:
            with suppress(OSError):  # a full or vanished disk must not keep the lock
                os.ftruncate(self._number, 0)
        self._close()

    def _close(self) -> None:
        number, self._number = self._number, None
        if number is not None:
            os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_held: "weakref.WeakSet[EngineLock]" = weakref.WeakSet()


def _drop_in_child() -> None:
    # A lock of flock(2) belongs to the open file, which a forked child shares: were it not closed
    # there, the child would hold the repository for as long as it lives.
    for lock in list(_held):
        lock._close()  # noqa: SLF001 - same module


os.register_at_fork(after_in_child=_drop_in_child)


def _is_at(number: int, path: Path) -> bool:
    """Return whether the opened file still is the one at `path`."""
    ours = os.fstat(number)
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)


def _holder(socket: str) -> bytes:
    return json.dumps({"pid": os.getpid(), "socket": socket}).encode() + b"\n"


def _read_holder(number: int) -> "_Holder":
    """Return who wrote the lock file; nothing is known of one who took it this very moment."""
    try:
        found = json.loads(os.pread(number, 4096, 0))
        return {"pid": int(found["pid"]), "socket": str(found["socket"])}
    except (ValueError, KeyError, TypeError):
        return {"pid": None, "socket": None}


class _Holder(TypedDict):
    pid: int | None
    socket: str | None

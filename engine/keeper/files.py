"""The files that tell about an attempt: keeper.json (who runs it) and exit.json (how it ended).

keeper.json is made exclusively before the agent starts; each later line adds to what the lines
before it say. exit.json is the truth about an end. Its space is reserved at the start, so that an
end can be written down on a full disk. Few files on purpose: making one is what a start costs most
on a busy disk. The lock is one on the attempt's folder, held while its keeper lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from engine.keeper import proc, recording, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEEPER, EXIT, SOCKET = "keeper.json", "exit.json", "control.sock"
_RESERVED = "exit.json.new"
_RESERVED_BYTES = 8192


def open_directory(path: str) -> int:
    """A descriptor of an attempt's folder."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def lock(directory_fd: int) -> bool:
    """Become the one who may run or end this attempt, until the descriptor is closed."""
    try:
        fcntl.flock(directory_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def load(directory_fd: int, name: str) -> dict[str, Any] | None:
    """Return what such a file says; None when it is absent, or not whole after a power cut.

    A last line that was torn is left out.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory_fd)
    except OSError:
        return None
    content: dict[str, Any] = {}
    with os.fdopen(fd, "rb") as file:
        for line in file:
            content.update(wire.decode(line))
    return content or None


def exists(directory_fd: int, name: str) -> bool:
    """Tell whether the folder holds a file of that name."""
    try:
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def describe(pid: int) -> dict[str, int]:
    """A process so that it can be distinguished from a later one of the same number."""
    process = proc.look(pid)
    return {"pid": pid, "start": process.start if process else 0}


class KeeperFile:
    """keeper.json in the hands of its keeper."""

    def __init__(self, directory_fd: int, content: dict[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(KEEPER, flags, 0o600, dir_fd=directory_fd)
        who = {"v": wire.VERSION, "boot": proc.boot_id(), "keeper": describe(os.getpid())}
        self._size = os.write(self._fd, wire.encode({**who, **content}))
        self._last_size = 0

    def close(self) -> None:
        """Nothing more is said."""
        os.close(self._fd)

    def add(self, **more: object) -> None:
        """Say more. It only helps to find strays: a disk that refuses it is no reason to end."""
        with contextlib.suppress(OSError):
            self._size += os.pwrite(self._fd, wire.encode(more), self._size)

    def say_last(self, **more: object) -> None:
        """Say what changes often, in place of what was said last before: the file must not grow."""
        line = wire.encode(more)[:-1].ljust(self._last_size - 1) + b"\n"
        with contextlib.suppress(OSError):
            self._last_size = os.pwrite(self._fd, line, self._size)


class ExitFile:
    """exit.json: reserved at the start, written once, whole or not at all."""

    def __init__(self, directory_fd: int) -> None:
        self._directory_fd = directory_fd
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(_RESERVED, flags, 0o600, dir_fd=directory_fd)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, _RESERVED_BYTES)

    def write(self, content: dict[str, Any]) -> bool:
        """Write how it ended; False when the folder is gone."""
        data = wire.encode(content)
        try:
            os.pwrite(self._fd, data, 0)
            os.ftruncate(self._fd, len(data))
            os.fsync(self._fd)
            _rename(self._directory_fd, _RESERVED, EXIT)
            os.fsync(self._directory_fd)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """It is written, or cannot be."""
        os.close(self._fd)


class Folder:
    """An attempt's folder in the hands of its keeper, who holds its lock."""

    def __init__(self, fd: int, wake_fd: int, content: dict[str, Any]) -> None:
        self.fd, self.wake_fd = fd, wake_fd
        self.exit = ExitFile(fd)
        self.recorder = recording.Recorder(fd)
        self.keeper = KeeperFile(fd, content)
        self.is_tethered = False
        self.tether_fd = -1
        self.is_settled = False

    def close(self) -> None:
        """Release the attempt and its lock."""
        self.exit.close()
        self.recorder.close()
        self.keeper.close()
        os.close(self.fd)


def clear_unborn(directory_fd: int) -> None:
    """Remove what a keeper left that was killed before it could start its agent."""
    for name in (SOCKET, _RESERVED):
        try:
            os.unlink(name, dir_fd=directory_fd)
        except FileNotFoundError:
            continue


def _rename(directory_fd: int, old: str, new: str) -> None:
    os.rename(old, new, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)

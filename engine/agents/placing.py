"""Writes a launch's files below a worker's HOME, which an agent may have filled with traps.

The engine writes there as the user, outside the sandbox, and the agent of an earlier attempt could
write there too: a link that it left must not lead a write to where the agent itself cannot reach.
"""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from engine.agents.contract import LaunchFile
from engine.errors import AgentError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def place(home: str, files: Iterable[LaunchFile]) -> None:
    """Write the files; what is in the way of one, a link above all, is put aside and kept."""
    for file in files:
        *folders, name = _parts(file.path)
        with _folder(home, folders) as folder:
            new = f".{name}.{secrets.token_hex(6)}"
            _write(new, file, folder)
            try:
                os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            except IsADirectoryError:
                _put_aside(name, folder)
                os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise AgentError(f"{path!r} is no path below a HOME")
    return parts


@contextmanager
def _folder(home: str, names: list[str]) -> Iterator[int]:
    """The folder by its descriptor, opened step by step so that no link is ever followed."""
    try:
        folder = os.open(home, _FOLDER)
    except OSError as error:
        raise AgentError(f"the HOME {home} cannot be opened: {error.strerror}") from error
    try:
        for name in names:
            below = _step(name, folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _step(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise AgentError(f"{name!r} below a HOME cannot be opened: {error.strerror}") from error
        _put_aside(name, folder)
    os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _put_aside(name: str, folder: int) -> None:
    os.rename(name, f"{name}.aside-{secrets.token_hex(6)}", src_dir_fd=folder, dst_dir_fd=folder)


def _write(name: str, file: LaunchFile, folder: int) -> None:
    descriptor = os.open(name, _NEW, file.mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as out:
        out.write(file.data)

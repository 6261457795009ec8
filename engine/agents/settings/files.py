"""Read files of the user's HOME that may be anything: a pipe, a link in a circle, a gigabyte.

A file that is there and cannot be read is never taken for one that is not there: it may name the
provider that the client is to ask.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MOST_FILES, MOST_BYTES = 500, 8 << 20
"""The most that is copied for one worker: settings are texts, and every worker has a copy."""
_SECRET_FILES = (
    *(".env", ".env.*", "*.pem", "*.key", "id_*", ".netrc", "auth.json", "*credentials*"),
    *("oauth_creds.json", ".git", "node_modules", "__pycache__"),
)


class UnreadableError(Exception):
    """A file that is there and cannot be read, with the reason in words."""


def data_of(path: Path) -> bytes | None:
    """Return the contents of a file; None where there is none.

    Raises:
        UnreadableError: It is there and is no file that could be a client's settings.
    """
    try:
        # Without O_NONBLOCK a pipe would be waited for until somebody writes into it.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableError(os.strerror(error.errno or 0).lower()) from error
    try:
        return _data_of_open(opened)
    except OSError as error:
        raise UnreadableError(os.strerror(error.errno or 0).lower()) from error
    finally:
        os.close(opened)


def _data_of_open(opened: int) -> bytes:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise UnreadableError("it is not a file")
    data = bytearray()
    while len(data) <= MOST_BYTES and (piece := os.read(opened, MOST_BYTES + 1 - len(data))):
        data += piece
    if len(data) > MOST_BYTES:
        raise UnreadableError(f"it is larger than {MOST_BYTES >> 20} MB")
    return bytes(data)


def data_of_login(path: Path) -> bytes:
    """Return the contents of a login's file; none where there is none, or it cannot be read."""
    try:
        return data_of(path) or b""
    except UnreadableError:
        return b""


def entries_of(folder: Path) -> list[Path]:
    """Return what lies in a folder, but for what holds keys by its name."""
    try:
        return sorted(one for one in folder.iterdir() if not _is_secret_file(one))
    except OSError:
        return []


def files_below(top: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files at and below a place, under their names; no link below it is followed."""
    if not top.is_dir():
        yield name, top
        return
    real = top.resolve()
    for folder, folders, names in os.walk(real):
        folders[:] = sorted(one for one in folders if not _is_secret_name(one))
        for one in sorted(names):
            path = Path(folder, one)
            if not path.is_symlink() and not _is_secret_name(one):
                yield f"{name}/{path.relative_to(real)}", path


def _is_secret_file(path: Path) -> bool:
    """A link is as secret as what it leads to."""
    names = {path.name, Path(os.path.realpath(path)).name}
    return any(map(_is_secret_name, names))


def _is_secret_name(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_FILES)

"""Compare files with expected blobs, byte for byte, without starting git.

A match is certain, whatever line endings or filters are in force. A mismatch is not: filters may
make other bytes equal, so git has to be asked.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

_PIECE = 1 << 20
_FILES = {"100644": 0, "100755": stat.S_IXUSR}
_LINK = "120000"


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file as a tree has it."""

    mode: str
    oid: str


def has_exactly(
    worktree: str, entries: Iterable[tuple[bytes, FileVersion | None]], algorithm: str
) -> bool:
    """Each path holds its version, and nothing is where none is said to be."""
    root = os.fsencode(worktree)
    folders: set[bytes] = set()
    for path, version in entries:
        try:
            if version is None:
                if not _is_free(root, path):
                    return False
            elif not _holds(root, path, version, (algorithm, folders)):
                return False
        except OSError:
            return False
    return True


def _is_free(root: bytes, path: bytes) -> bool:
    """Nothing has this name, and the folder that it would lie in is one, or is missing too."""
    place = root
    for part in path.split(b"/"):
        try:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return False
        except FileNotFoundError:
            return True
        place += b"/" + part
    return not os.path.lexists(place)


def _holds(root: bytes, path: bytes, version: FileVersion, how: tuple[str, set[bytes]]) -> bool:
    algorithm, folders = how
    above = path.rpartition(b"/")[0]
    if above and above not in folders:
        if any(not stat.S_ISDIR(os.lstat(root + b"/" + one).st_mode) for one in _parents(above)):
            return False
        folders.add(above)
    file = root + b"/" + path
    if version.mode == _LINK:
        content = os.fsencode(Path(os.fsdecode(file)).readlink())  # raises where it is none
        return _named(algorithm, len(content), [content]) == version.oid
    return version.mode in _FILES and _is_file(file, version, algorithm)


def _parents(folder: bytes) -> Iterable[bytes]:
    parts = folder.split(b"/")
    return (b"/".join(parts[: n + 1]) for n in range(len(parts)))


def _is_file(file: bytes, version: FileVersion, algorithm: str) -> bool:
    # Follow no link, and do not block on a FIFO in the file's place.
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with closing(os.fdopen(descriptor, "rb", buffering=0)) as stream:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode) or seen.st_mode & stat.S_IXUSR != _FILES[version.mode]:
            return False
        pieces = iter(lambda: stream.read(_PIECE), b"")
        return _named(algorithm, seen.st_size, pieces) == version.oid


def _named(algorithm: str, size: int, pieces: Iterable[bytes | None]) -> str:
    """The id of a blob."""
    named = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for piece in pieces:
        named.update(piece or b"")
    return named.hexdigest()

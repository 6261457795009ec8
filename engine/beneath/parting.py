"""Move files that changed since the checkout out of a tree, and restore them."""

import errno
import os
import stat
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from engine.beneath.opening import (
    FOLDER,
    Name,
    RefusedError,
    allow,
    folder_beneath,
    move,
    root_folder,
)

Sighting = tuple[int, int]
"""The low 32 bits of a file's inode, and its `st_ctime` in nanoseconds: no program sets either."""
Known = Mapping[bytes, Mapping[bytes, Sighting]]
"""The files of a tree by folder and name. Every folder of it is a key, the top as an empty one."""
_INHERITED = ("system.posix_acl_access", "system.posix_acl_default", "user.")


@dataclass(frozen=True, kw_only=True)
class Parting:
    """The rule by which a tree is parted.

    Attributes:
        known: A file stays if it is the same one at the same path. Any other folder goes whole. The
            time alone proves too little: a renamed folder takes untouched files with it.
        before_ns: A folder was touched by nobody if its `st_ctime` is earlier.
        folder_mode: The mode that a folder gets back if somebody touched it.
    """

    known: Known
    before_ns: int
    folder_mode: int


def part(root: Name, rest: Name, rule: Parting) -> int | None:
    """Move everything that was touched from a tree to the same paths below `rest`.

    Return how many files stay. None means that not all of the tree could be looked at; what has
    gone by then is below `rest`.
    """
    try:
        with root_folder(root) as top, root_folder(rest) as other:
            return _Moving(top, other, rule).all()
    except (RefusedError, OSError, RecursionError):
        return None


def join(rest: Name, root: Name, *, skipped: Container[bytes] = ()) -> bool:
    """Move everything below `rest` to the same paths in a tree, over what is there.

    Return whether all of it could be moved.
    """
    try:
        with root_folder(rest) as other, root_folder(root) as top:
            for name in _names_in(other):
                if name not in skipped:
                    _bring(other, top, (name,))
    except (RefusedError, OSError):
        return False
    return True


class _Moving:
    """A walk that holds the folders on its way open, and enters none by more than its name."""

    def __init__(self, top: int, rest: int, rule: Parting) -> None:
        self._top, self._rest, self._rule = top, rest, rule
        self._own = os.fstat(top)

    def all(self) -> int:
        """Part the whole tree."""
        return self._inside(self._top, b"", self._own)

    def _inside(self, folder: int, path: bytes, seen: os.stat_result) -> int:
        """Part a folder; return how many files stay in it and below."""
        if seen.st_ctime_ns >= self._rule.before_ns:
            self._set_back(folder, 0o700 if not path else self._rule.folder_mode)
        prefix = path + b"/" if path else b""
        here = self._rule.known[path]
        inner: list[tuple[bytes, os.stat_result]] = []
        going: list[bytes] = []
        kept = 0
        with os.scandir(folder) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                name = os.fsencode(entry.name)
                if stat.S_ISDIR(found.st_mode) and prefix + name in self._rule.known:
                    inner.append((name, found))
                elif name in here and here[name] == _sighting(found):
                    kept += 1
                else:
                    going.append(name)
        if path and not (inner or going or kept):
            with folder_beneath(self._rest, path.split(b"/"), is_made=True):
                return 0  # an empty folder is kept too
        self._move(going, folder, path)
        return kept + sum(self._entered(folder, prefix, *one) for one in inner)

    def _entered(self, folder: int, prefix: bytes, name: bytes, seen: os.stat_result) -> int:
        allow(name, folder, stat.S_IRWXU)
        inside = os.open(name, FOLDER, dir_fd=folder)
        try:
            kept = self._inside(inside, prefix + name, seen)
        finally:
            os.close(inside)
        if not kept:
            os.rmdir(name, dir_fd=folder)
        return kept

    def _move(self, names: Sequence[bytes], folder: int, path: bytes) -> None:
        if names:
            parts = path.split(b"/") if path else []
            with folder_beneath(self._rest, parts, is_made=True) as target:
                for name in names:
                    move(name, folder, target)

    def _set_back(self, folder: int, mode: int) -> None:
        """Give a touched folder the mode and the lack of attributes that git makes it with."""
        seen = os.fstat(folder)
        if (seen.st_uid, seen.st_gid) != (self._own.st_uid, self._own.st_gid):
            raise PermissionError("a folder belongs to somebody else")
        for name in _attributes(folder):
            if name.startswith(_INHERITED):
                os.removexattr(folder, name)
        os.fchmod(folder, mode)


def _attributes(folder: int) -> list[str]:
    try:
        return os.listxattr(folder)
    except OSError as failed:
        if failed.errno != errno.ENOTSUP:
            raise
        return []  # the file system has none


def _sighting(seen: os.stat_result) -> Sighting:
    """Return what tells this file, as it is now, from any other and from itself at other times."""
    return seen.st_ino & 0xFFFFFFFF, seen.st_ctime_ns


def _bring(other: int, top: int, parts: tuple[bytes, ...]) -> None:
    """Move one entry, or what is in it where a folder of that name is there already."""
    *folders, name = parts
    with (
        folder_beneath(other, folders) as source,
        folder_beneath(top, folders, is_made=True) as target,
    ):
        if not (_is_folder(name, source) and _is_folder(name, target)):
            move(name, source, target)
            return
        allow(name, source, stat.S_IRWXU)
    with folder_beneath(other, parts) as inside:
        names = _names_in(inside)
    for inner in names:
        _bring(other, top, (*parts, inner))


def _names_in(folder: int) -> list[bytes]:
    with os.scandir(folder) as entries:
        return [os.fsencode(entry.name) for entry in entries]


def _is_folder(name: bytes, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False

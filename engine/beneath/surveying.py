"""Finds in a tree what no commit can hold, and when anything of it last changed."""

import os
import stat
from collections.abc import Container
from typing import Protocol

from engine.beneath.opening import (
    Name,
    PathRefused,
    RefusedError,
    Why,
    folder_beneath,
    refusal,
    root_folder,
)
from engine.values import dataclass

LONGEST_PATH = 4095
"""Longest path in bytes that a system call accepts, without its final zero byte."""

_MOST_ODD = 1000


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The findings in a tree.

    Attributes:
        odd: What is neither file, folder nor link, what could not be entered, and what lies so
            deep that no path leads there.
        entries: How many entries there are, as far as they were entered.
    """

    odd: tuple[PathRefused, ...] = ()
    entries: int = 0


class OnBad(Protocol):
    """Called at once for a watched name that is no file, or too long a one."""

    def __call__(self, name: bytes, *, is_file: bool) -> None:
        """Do something about it."""


def survey(
    root: Name,
    *,
    skipped: Container[bytes] = (),
    watched: Container[bytes] = (),
    longest: int = 0,
    on_bad: OnBad | None = None,
) -> Survey:
    """Look through a tree by the kinds that folders tell of their entries.

    `skipped` are paths that are neither looked at nor entered, `watched` names that must be
    files of a length.
    """
    try:
        with root_folder(root) as top:
            return _Surveying(top, skipped, (watched, longest, on_bad)).all()
    except RefusedError as error:
        return Survey(odd=(error.refused,))


@dataclass(frozen=True, kw_only=True)
class LastChange:
    """The last change of anything in a tree, by times that no program can set (`st_ctime`).

    Attributes:
        folder: The device and the inode of the tree's own folder.
        at_ns: When a file, a link or a folder was last written, made, removed or renamed.
    """

    folder: tuple[int, int]
    at_ns: int


def last_change(root: Name) -> LastChange | None:
    """Return the last change of a tree; None where not all of it could be looked at."""
    try:
        with root_folder(root) as top:
            own = os.fstat(top)
            newest, waiting = own.st_ctime_ns, [b""]
            while waiting:
                path = waiting.pop()
                prefix = path + b"/" if path else b""
                parts = path.split(b"/") if path else []
                with folder_beneath(top, parts) as folder, os.scandir(folder) as entries:
                    for entry in entries:
                        seen = entry.stat(follow_symlinks=False)
                        newest = max(newest, seen.st_ctime_ns)
                        if stat.S_ISDIR(seen.st_mode):
                            waiting.append(prefix + os.fsencode(entry.name))
    except (RefusedError, OSError):
        return None
    return LastChange(folder=(own.st_dev, own.st_ino), at_ns=newest)


class _Surveying:
    def __init__(
        self,
        top: int,
        skipped: Container[bytes],
        watching: tuple[Container[bytes], int, OnBad | None],
    ) -> None:
        self._top, self._skipped = top, skipped
        self._watched, self._longest, self._on_bad = watching
        self._odd: list[PathRefused] = []
        self._beyond = 0
        self._entries = 0

    def all(self) -> Survey:
        waiting = [b""]
        while waiting:
            waiting += self._inside(waiting.pop())
        if self._beyond:
            self._odd.append(PathRefused(b"", Why.TOO_MANY, f"{self._beyond} more like these"))
        return Survey(odd=tuple(self._odd), entries=self._entries)

    def _inside(self, path: bytes) -> list[bytes]:
        """Look at the entries of a folder; return the folders among them."""
        prefix = path + b"/" if path else b""
        inner: list[bytes] = []
        try:
            parts = path.split(b"/") if path else []
            with folder_beneath(self._top, parts) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    self._entries += 1
                    name = prefix + os.fsencode(entry.name)
                    if name in self._skipped or self._is_bad(entry, name):
                        continue
                    if len(name) > LONGEST_PATH:
                        self._note(PathRefused(name, Why.TOO_DEEP))
                    elif entry.is_dir(follow_symlinks=False):
                        inner.append(name)
                    elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                        self._note(PathRefused(name, Why.NOT_A_FILE))
        except RefusedError as error:
            self._note(error.refused)
        except OSError as error:
            self._note(refusal([path], error))
        return inner

    def _is_bad(self, entry: os.DirEntry[str], name: bytes) -> bool:
        """Tell of a watched name that is not as it must be."""
        if self._on_bad is None or name.rpartition(b"/")[2] not in self._watched:
            return False
        is_file = entry.is_file(follow_symlinks=False)
        is_fine = entry.is_symlink() or entry.is_dir(follow_symlinks=False)
        if is_fine or (is_file and entry.stat(follow_symlinks=False).st_size <= self._longest):
            return False
        self._on_bad(name, is_file=is_file)
        return True

    def _note(self, refused: PathRefused) -> None:
        if len(self._odd) < _MOST_ODD:
            self._odd.append(refused)
        else:
            self._beyond += 1

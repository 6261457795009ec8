"""Tell how full the file systems are, and if a program failed because one is full."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from engine.values import dataclass

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
WORDS = {number: os.strerror(number) for number in (*FULL, errno.EROFS, errno.EIO)}
"""The words of programs when storage cannot be written, by the kernel's number."""
LITTLE_FOR_GIT = 64 << 20
"""A git that dies without a word where no more than this is free died of that."""


@dataclass(frozen=True)
class Disk:
    """The file system below a folder, at one moment."""

    mount: str
    free: int
    inodes: int
    is_read_only: bool

    @classmethod
    def of(cls, folder: Path) -> "Disk | None":
        """Return the file system of a folder; None where it cannot be asked."""
        try:
            found = os.statvfs(folder)
            mount = _mount_of(folder)
        except OSError:
            return None
        return cls(
            mount=str(mount),
            free=found.f_bavail * found.f_frsize,
            inodes=found.f_favail if found.f_files else 1,
            is_read_only=bool(found.f_flag & os.ST_RDONLY),
        )

    def is_full_for(self, wanted: int) -> bool:
        """Return True if no more than so many bytes, or not one more file, fit."""
        return self.free <= wanted or self.inodes == 0


def _mount_of(folder: Path) -> Path:
    here = folder.resolve()
    device = here.stat().st_dev
    while here.parent != here and here.parent.stat().st_dev == device:
        here = here.parent
    return here


def is_out_of_room(said: str, folders: Iterable[Path]) -> bool:
    """Return True if a git that failed could not write, by its words or its silence.

    Its words may quote names that an agent made up, so only a whole line counts. Where its words
    go to the full disk, it can say nothing.
    """
    if said.strip():
        return any(_is_about_room(line) for line in said.splitlines())
    disks = filter(None, map(Disk.of, folders))
    return any(disk.is_full_for(LITTLE_FOR_GIT) for disk in disks)


def _is_about_room(line: str) -> bool:
    is_gits = line.startswith(("fatal: ", "error: ")) and line.count('"') % 2 == 0
    return is_gits and line.endswith(tuple(f": {words}" for words in WORDS.values()))

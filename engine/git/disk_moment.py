"""A moment on the clock of a file system, to which the times of its files can be compared.

The kernel sets the time of a file's last change (`st_ctime`) by that clock. No program can set it
without setting the clock, and that shows beside a steady one. In memory, as on tmpfs, the kernel
does not see every write to a mapped file: there, times prove nothing, and there are no moments.
"""

import os
import time
from collections.abc import Sequence
from mmap import PAGESIZE, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Self

_TICK_S = 0.0005
_SOON_NS = 50_000_000
_STEP_NS = 20_000_000
"""A clock that came so far apart from the steady one was set, or cannot tell a moment."""
_SURE_NS, _TRIES = 5_000_000, 10
_sees_maps: dict[int, bool] = {}
"""If the kernel notes writes to mapped files, by the number of a file system."""


class DiskMoment(NamedTuple):
    """A moment on the clock of a folder's file system, and on a steady one."""

    folder: tuple[int, int]
    disk_ns: int
    steady_ns: int

    @classmethod
    def now(cls, path: str) -> Self | None:
        """Return this moment for a folder; None where its file system cannot be asked."""
        try:
            own = os.lstat(path)
            seen, steady_ns = _both_clocks(Path(path).parent)
        except OSError:
            return None
        if seen.st_dev != own.st_dev or not sees_mapped_writes(Path(path).parent, seen.st_dev):
            return None
        return cls((own.st_dev, own.st_ino), seen.st_ctime_ns, steady_ns)

    @classmethod
    def next(cls, path: str) -> Self | None:
        """Wait until the clock has ticked: what was written before is earlier, never equal.

        Return None where it does not tick soon: some file systems count whole seconds.
        """
        try:
            has_ticked = cls.now(path) is not None and _ticks(Path(path).parent)
        except OSError:
            return None
        return cls.now(path) if has_ticked else None

    @classmethod
    def noted(cls, values: Sequence[Any]) -> Self:
        """Return a moment that was written as JSON."""
        (device, inode), disk_ns, steady_ns = values
        return cls((device, inode), disk_ns, steady_ns)

    def is_after(self, earlier: "DiskMoment") -> bool:
        """Return whether no clock was set between an earlier moment and this one."""
        disk, steady = self.disk_ns - earlier.disk_ns, self.steady_ns - earlier.steady_ns
        return abs(disk - steady) <= _STEP_NS


def _both_clocks(folder: Path) -> tuple[os.stat_result, int]:
    """Return a file that was just made, and the moment on the steady clock, as close as it can be.

    A busy machine may let us wait between the two: that would look as if a clock had been set.
    """
    left = _TRIES
    while True:
        before, left = time.monotonic_ns(), left - 1
        with TemporaryFile(dir=folder) as made:
            seen = os.fstat(made.fileno())
        if not left or time.monotonic_ns() - before < _SURE_NS:
            return seen, before


def sees_mapped_writes(folder: Path, device: int) -> bool:
    """Return whether a write to a mapped file changes its time, by trying it once."""
    if device not in _sees_maps:
        try:
            _sees_maps[device] = _tried(folder)
        except OSError:
            return False  # a full disk, for example: it may be tried again
    return _sees_maps[device]


def _tried(folder: Path) -> bool:
    """Write to a mapped file that was read first; look if its time moves when the clock has."""
    with TemporaryFile(dir=folder) as made:
        made.truncate(PAGESIZE)
        with mmap(made.fileno(), PAGESIZE) as mapped:
            started, page = os.fstat(made.fileno()).st_ctime_ns, mapped[0]
            if not _ticks(folder):
                return False
            mapped[0] = page + 1
            return os.fstat(made.fileno()).st_ctime_ns > started


def _ticks(folder: Path) -> bool:
    """Wait for the next tick of the clock of a file system; return whether it comes soon."""
    first, deadline = _clock_of(folder), time.monotonic_ns() + _SOON_NS
    while True:
        is_last = time.monotonic_ns() > deadline  # asked first: the clock gets all its time
        if _clock_of(folder) > first:
            return True
        if is_last:
            return False
        time.sleep(_TICK_S)  # nothing tells of a tick; this runs in a thread


def _clock_of(folder: Path) -> int:
    with TemporaryFile(dir=folder) as made:
        return os.fstat(made.fileno()).st_ctime_ns

"""A moment on the clock of a file system, to which the times of its files can be compared.

The kernel sets the time of a file's last change (`st_ctime`) by that clock. No program can set it
without setting the clock, and that shows beside a steady one.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Self

_TICK_S = 0.0005
_SOON_NS = 50_000_000
_STEP_NS = 20_000_000
"""A clock that came so far apart from the steady one was set, or cannot tell a moment."""


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
            with TemporaryFile(dir=Path(path).parent) as made:
                seen = os.fstat(made.fileno())
        except OSError:
            return None
        if seen.st_dev != own.st_dev:
            return None
        return cls((own.st_dev, own.st_ino), seen.st_ctime_ns, time.monotonic_ns())

    @classmethod
    def next(cls, path: str) -> Self | None:
        """Wait until the clock has ticked: what was written before is earlier, never equal.

        Return None where it does not tick soon: some file systems count whole seconds.
        """
        first = moment = cls.now(path)
        while first is not None and moment is not None and moment.disk_ns == first.disk_ns:
            if moment.steady_ns - first.steady_ns > _SOON_NS:
                return None
            time.sleep(_TICK_S)  # nothing tells of a tick; this runs in a thread
            moment = cls.now(path)
        return moment

    @classmethod
    def noted(cls, values: Sequence[Any]) -> Self:
        """Return a moment that was written as JSON."""
        (device, inode), disk_ns, steady_ns = values
        return cls((device, inode), disk_ns, steady_ns)

    def is_after(self, earlier: "DiskMoment") -> bool:
        """Return whether no clock was set between an earlier moment and this one."""
        disk, steady = self.disk_ns - earlier.disk_ns, self.steady_ns - earlier.steady_ns
        return abs(disk - steady) <= _STEP_NS

"""How much an attempt's folders have grown.

Counting a tree of files is dear, so it is done in slices between other work, and only when the free
space of the file system has shrunk since the last count.
"""

from __future__ import annotations

import os
import time

from engine.keeper.sampler import MB, Excess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FASTEST = 5e8  # bytes a second that a disk takes
_SOONEST_S, _LATEST_S = 0.05, 1.0
_CALM_SLICE_S, _HURRIED_SLICE_S = 0.003, 0.010
_CALM_REST = 20  # times the slice: a count costs 5 % of a core
_NOTICED = 1 * MB
_CLOSE = 0.5  # of the limit: from here on a count must not wait
_FIRST_CLOSE = 0.05  # nor the first one


class DiskWatch:
    """Counts what was added since its creation; `step` raises `Excess` when it is too much."""

    def __init__(self, roots: list[str], limit_mb: float) -> None:
        self._roots = roots
        self.limit_mb = limit_mb
        self.growth = 0
        self._total = 0
        self._old = 0
        self._since = time.time()
        self._baseline: int | None = None
        self._free = 0
        self._count: Iterator[tuple[int, float]] | None = self._begin()

    def step(self) -> float:
        """Do a little of the counting; returns after how many seconds to go on."""
        if self._count is None:
            taken = max(0, self._free - _free(self._roots))
            if taken < _NOTICED:
                return self._rest_s()
            self._count = self._begin()
        return self._slice(self._count)

    def _begin(self) -> Iterator[tuple[int, float]]:
        self._free, self._total = _free(self._roots), 0
        return _sizes(self._roots)

    def _slice(self, count: Iterator[tuple[int, float]]) -> float:
        taken = max(0, self._free - _free(self._roots))
        close = _FIRST_CLOSE if self._baseline is None else _CLOSE
        is_hurried = self.growth + taken > self.limit_mb * MB * close
        end = time.monotonic() + (_HURRIED_SLICE_S if is_hurried else _CALM_SLICE_S)
        for size, changed in count:
            self._total += size
            # What is written while the first count goes on is growth already.
            self._old += size if changed < self._since else 0
            if time.monotonic() > end:
                return 0.0 if is_hurried else _CALM_SLICE_S * _CALM_REST
        self._count = None
        self._finish()
        return self._rest_s()

    def _rest_s(self) -> float:
        headroom = max(0.0, self.limit_mb * MB - self.growth)
        return min(max(headroom / _FASTEST, _SOONEST_S), _LATEST_S)

    def _finish(self) -> None:
        if self._baseline is None:
            self._baseline = self._old
        self.growth = max(0, self._total - self._baseline)
        if self.growth > self.limit_mb * MB:
            raise Excess("disk_mb", self.limit_mb, self.growth / MB)


def _free(roots: list[str]) -> int:
    free = 0
    for root in roots:
        try:
            status = os.statvfs(root)
        except OSError:
            continue
        free += status.f_bfree * status.f_frsize
    return free


def _sizes(roots: list[str]) -> Iterator[tuple[int, float]]:
    """Yield the space each entry takes and when its content last changed.

    Hard links count once; links are not followed. A change of the mode alone is no change.
    """
    seen: set[tuple[int, int]] = set()
    waiting = list(roots)
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                    is_folder = entry.is_dir(follow_symlinks=False)
                except OSError:
                    continue
                if is_folder:
                    waiting.append(entry.path)
                elif status.st_nlink > 1:
                    key = (status.st_dev, status.st_ino)
                    if key in seen:
                        continue
                    seen.add(key)
                yield status.st_blocks * 512, min(status.st_ctime, status.st_mtime)

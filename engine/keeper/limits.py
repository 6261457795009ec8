"""The timers that hold an attempt to its limits, around sampler, disk watch and throttle.

Memory and processes are sampled by `engine.keeper.sampler`; time, disk and a share of the processor
are held here.
"""

from __future__ import annotations

import os
import time

from engine.keeper.sampler import MB, Excess, Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from engine.keeper.loop import Loop
    from engine.keeper.pump import Pump
    from engine.keeper.request import Request
    from engine.keeper.tree import Tree

_FIRST_LOOK_S = 0.02
_USAGE_S = 0.5
_REPEAT_S = 10.0
_PERIOD_S = 0.05
_SAVED_S = 0.2
_LONGEST_REST_S = 0.3
_WHY = "throttle"
_FASTEST = 5e8  # bytes a second that a disk takes
_SOONEST_S, _LATEST_S = 0.05, 1.0
_CALM_SLICE_S, _HURRIED_SLICE_S = 0.003, 0.010
_CALM_REST = 20  # times the slice: a count costs 5 % of a core
_NOTICED = 1 * MB
_CLOSE = 0.5  # of the limit: from here on a count must not wait
_FIRST_CLOSE = 0.05  # nor the first one
_HUMAN = "human"
_IDLE = 0.05  # of a core: so much a program takes that only waits


class LimitWatch:
    """Holds one attempt to its limits while it runs."""

    def __init__(self, loop: Loop, tree: Tree, pump: Pump, request: Request) -> None:
        self.clock = Stopwatch()
        self._loop, self._tree, self._pump = loop, tree, pump
        self._limits = request.limits
        self._roots = request.disk_paths
        self._sampler = Sampler(tree, self._limits)
        self._disk: DiskWatch | None = None
        self._throttle: Throttle | None = None
        self._is_on = False
        self._usage_due = self._repeat_due = 0.0
        self._seen_at = self._seen_cpu_s = 0.0
        self._used: dict[str, Any] = {}
        self.on_excess: Callable[[Excess], None] = lambda _: None
        self.on_usage: Callable[[dict[str, Any]], None] = lambda _: None
        pump.on_cap = self._output_met_cap

    @property
    def on_orphans(self) -> Callable[[list[int]], None]:
        """Called with those who have lost their parents, whenever that changes."""
        return self._sampler.on_orphans

    @on_orphans.setter
    def on_orphans(self, callback: Callable[[list[int]], None]) -> None:
        self._sampler.on_orphans = callback

    def begin(self) -> None:
        """The agent runs."""
        self._is_on = True
        self.clock.restart()
        self._seen_at = time.monotonic()
        self._loop.after("look", _FIRST_LOOK_S, self._look)
        self._apply()

    def relax(self) -> None:
        """It is ending: it may do so at full speed, but not take more of what harms others."""
        self._is_on = False
        self._loop.cancel("time")
        self._loop.cancel("cpu")
        if self._throttle is not None:
            self._throttle.release()

    def end(self) -> None:
        """Nothing is looked at any more."""
        self.relax()
        self._loop.cancel("look")
        self._loop.cancel("disk")

    def change(self, limits: dict[str, float | None]) -> None:
        """New limits hold from now on."""
        self._limits.clear()
        self._limits.update(limits)
        self._sampler.limits_changed()
        if self._is_on:
            self._apply()
            self._loop.after("look", 0, self._look)

    def clock_changed(self) -> None:
        """The clock was held or released."""
        allowed = self._limits.get("time_seconds")
        if allowed is None or self.clock.is_held or not self._is_on:
            self._loop.cancel("time")
        else:
            self._loop.after("time", allowed - self.clock.active_s, self._time_is_over)

    def oom(self) -> Excess | None:
        """Return the excess if the kernel has ended a process for want of memory."""
        try:
            self._sampler.check_oom()
        except Excess as excess:
            return excess
        return None

    def usage(self, *, is_final: bool = False) -> dict[str, Any]:
        """Return what was used so far."""
        if is_final:
            self._sampler.finish()
        return {
            **self._sampler.usage(),
            "disk_mb": round(self._disk.growth / MB, 3) if self._disk else None,
            "output_bytes": self._pump.output_bytes,
            "active_s": round(self.clock.active_s, 1),
        }

    def _apply(self) -> None:
        limits = self._limits
        cap_mb = limits.get("output_mb")
        self._pump.cap = int(cap_mb * MB) if cap_mb is not None else None
        self._apply_disk(limits.get("disk_mb"))
        is_throttled = limits.get("cpu_percent") is not None and not self._tree.cgroups.has("cpu")
        if is_throttled and self._throttle is None:
            self._throttle = Throttle(self._tree)
            self._loop.after("cpu", 0, self._share)
        self.clock_changed()

    def _apply_disk(self, allowed: float | None) -> None:
        if allowed is None:
            self._loop.cancel("disk")
        elif self._disk is None:
            self._disk = DiskWatch(self._roots, allowed)
            self._loop.after("disk", 0, self._count)
        else:
            self._disk.limit_mb = allowed
            self._loop.after("disk", 0, self._count)

    def _look(self) -> None:
        try:
            wait_s = self._sampler.look()
        except Excess as excess:
            self.on_excess(excess)
            return
        now = time.monotonic()
        self._count_work(now)
        if now >= self._usage_due:
            self._usage_due = now + _USAGE_S
            used = self.usage()
            # Each word wakes the engine: what has not changed is only repeated for late comers. The
            # clock always goes on: it tells nothing of use.
            known = {**used, "active_s": None}
            if known != self._used or now >= self._repeat_due:
                self._used, self._repeat_due = known, now + _REPEAT_S
                self.on_usage(used)
        self._loop.after("look", wait_s, self._look)

    def _count_work(self, now: float) -> None:
        """Count the time in which it works although it waits for a human.

        A question alone stops the clock: an agent that asks and goes on would have no limit.
        """
        passed_s, cpu_s = now - self._seen_at, self._sampler.cpu_s - self._seen_cpu_s
        self._seen_at, self._seen_cpu_s = now, self._sampler.cpu_s
        if not self.clock.is_held_by(_HUMAN):
            return
        self.clock.count(min(cpu_s - _IDLE * passed_s, passed_s))
        allowed = self._limits.get("time_seconds")
        if self._is_on and allowed is not None and self.clock.active_s >= allowed:
            self._time_is_over()

    def hold_for_human(self, *, is_held: bool) -> None:
        """Hold the clock while a human is awaited, or let it go on."""
        (self.clock.hold if is_held else self.clock.release)(_HUMAN)
        self.clock_changed()

    def _count(self) -> None:
        if self._disk is None:
            return
        try:
            wait_s = self._disk.step()
        except Excess as excess:
            self.on_excess(excess)
            return
        self._loop.after("disk", wait_s, self._count)

    def _share(self) -> None:
        percent = self._limits.get("cpu_percent")
        if self._throttle is None or percent is None:
            if self._throttle is not None:
                self._throttle.release()
            self._throttle = None
            return
        try:
            wait_s = self._throttle.step(self._sampler.read_cpu(), percent)
        except Excess as excess:  # a look at the processor sees a bomb too
            self.on_excess(excess)
            return
        self._loop.after("cpu", wait_s, self._share)

    def _time_is_over(self) -> None:
        allowed = self._limits.get("time_seconds") or 0
        self.on_excess(Excess("time_seconds", allowed, self.clock.active_s))

    def _output_met_cap(self) -> None:
        allowed = self._limits.get("output_mb") or 0
        self.on_excess(Excess("output_mb", allowed, self._pump.output_bytes / MB))


class Stopwatch:
    """Counts how long an attempt has really run: pauses and waiting for a human are left out.

    It counts from its creation, and stands still while anybody holds it, or the machine sleeps.
    What is worked meanwhile is counted by `count`.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._held_s = 0.0
        self._held_since = 0.0
        self._worked_s = 0.0
        self._holders: set[str] = set()

    def restart(self) -> None:
        """Count from now; whoever holds it still does."""
        self._start = self._held_since = time.monotonic()
        self._held_s = self._worked_s = 0.0

    def count(self, worked_s: float) -> None:
        """Add time that counts although somebody holds it; nothing where it is negative."""
        self._worked_s += max(0.0, worked_s)

    def is_held_by(self, who: str) -> bool:
        """Tell whether that holder holds it."""
        return who in self._holders

    @property
    def is_held(self) -> bool:
        """Somebody holds it."""
        return bool(self._holders)

    @property
    def wall_s(self) -> float:
        """Seconds since the start, holds included."""
        return time.monotonic() - self._start

    @property
    def held_s(self) -> float:
        """Seconds in which it stood still."""
        now = time.monotonic()
        return self._held_s + (now - self._held_since if self._holders else 0.0)

    @property
    def active_s(self) -> float:
        """Seconds that count against a limit."""
        return self.wall_s - self.held_s + self._worked_s

    def hold(self, who: str) -> None:
        """Stand still; again by the same holder changes nothing."""
        if not self._holders:
            self._held_since = time.monotonic()
        self._holders.add(who)

    def release(self, who: str) -> None:
        """Go on, unless somebody else still holds it."""
        if who in self._holders:
            held_s = self.held_s
            self._holders.discard(who)
            self._held_s = held_s if not self._holders else self._held_s


class Throttle:
    """Holds a tree to its share of CPU time by letting it rest, where no cgroup can.

    A share of 150 means one and a half cores. What was not used may be used a little later, but not
    saved up for long. `step` is to be called with what it has used so far.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._credit_s = 0.0
        self._last = time.monotonic()
        self._last_cpu_s = 0.0

    def step(self, cpu_s: float, percent: float) -> float:
        """Freeze or thaw it; returns after how many seconds to look again."""
        now, share = time.monotonic(), percent / 100
        self._credit_s += (now - self._last) * share - (cpu_s - self._last_cpu_s)
        self._credit_s = min(self._credit_s, _SAVED_S * share)
        self._last, self._last_cpu_s = now, cpu_s
        if self._credit_s < 0:
            self._tree.freeze(_WHY)
            return min(-self._credit_s / share, _LONGEST_REST_S)
        self.release()
        return _PERIOD_S

    def release(self) -> None:
        """Let it work without looking."""
        self._tree.thaw(_WHY)


class DiskWatch:
    """Counts by how much an attempt's folders have grown; `step` raises `Excess` at too much.

    Counting a tree of files is dear, so it is done in slices between other work. It begins only if
    the free space of the file system has shrunk since the last count.
    """

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

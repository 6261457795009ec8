"""Samples of what an attempt uses, and the limits that are held by sampling.

The next look at memory comes when the fastest hog could have used up the headroom, so that a tight
limit is watched closely and a wide one costs nothing. Resident memory counts shared pages once for
each sharer: it only raises the suspicion, and the proportional share, dearer to read, confirms it.
Between two such looks processes are only counted, which costs less than half.
"""

from __future__ import annotations

import os
import resource
import time

from engine.keeper import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.keeper.tree import Tree

MB = 1 << 20
_FASTEST = 5e9  # bytes a second that one machine can touch
_FASTEST_FORKS = 1e4  # a second
_SOONEST_S, _LATEST_S = 0.020, 0.5
_KERNEL_S = 0.25  # the kernel holds the limit; this is how soon its verdict is noticed
_IDLE_S, _IDLE_LATEST_S = 1.0, 4.0
_CONFIRM_SHARE = 0.1  # of the time may go into confirming
_PINNED_LOOKS = 4  # at the kernel's limit for that many looks: a bomb, not a busy moment


class Excess(Exception):
    """A limit was passed: its kind, what was allowed and what was seen, in the kind's unit."""

    def __init__(self, kind: str, allowed: float, seen: float) -> None:
        super().__init__(kind, allowed, seen)
        self.kind, self.allowed, self.seen = kind, allowed, seen


class Sampler:
    """Looks at a tree; `look` says when it wants to be called again, or raises `Excess`."""

    def __init__(self, tree: Tree, limits: dict[str, float | None]) -> None:
        self._tree = tree
        self.limits = limits
        self.memory = 0
        self.memory_peak = 0
        self.processes = 0
        self.cpu_s = 0.0
        self._interval_s = _IDLE_S
        self._due_at = 0.0  # when more than the number of processes is to be looked at
        self._pinned = 0
        self._confirmed_until = 0.0
        self._resident = 0
        self._shared = 0  # resident memory that was counted more than once, when last confirmed
        self.on_orphans: Callable[[list[int]], None] = lambda _: None
        self._orphans: list[int] = []

    def look(self) -> float:
        """Read what is used now; returns after how many seconds to look again."""
        began = time.monotonic()
        if began < self._due_at:
            self._count()
        else:
            self._due_at = began + self._look_at_use(began)
        return min(self._check_processes(), max(0.0, self._due_at - began))

    def _look_at_use(self, began: float) -> float:
        cpu_before = self.cpu_s
        self._read()
        wait_s = self._check_memory(began)
        self.memory_peak = max(self.memory_peak, self.memory)
        if self.cpu_s > cpu_before + 0.005:  # half a tick: it is at work
            self._interval_s = _IDLE_S
        else:
            self._interval_s = min(self._interval_s * 1.5, _IDLE_LATEST_S)
        return min(wait_s, self._interval_s)

    def limits_changed(self) -> None:
        """The next look is one at everything."""
        self._due_at = 0.0

    def read_cpu(self) -> float:
        """Processor seconds used until now, between two looks too."""
        self._read()
        return self.cpu_s

    def finish(self) -> None:
        """Everybody has ended: take the kernel's own account of it."""
        cgroups, ended = self._tree.cgroups, self._tree
        self.cpu_s = max(cgroups.cpu_s() or 0.0, ended.cpu_s)
        own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if ended.peak_kb > own_peak:  # else it may be our own, counted between fork and exec
            self.memory_peak = max(self.memory_peak, ended.peak_kb * 1024)
        self.memory_peak = max(self.memory_peak, cgroups.memory_peak() or 0)
        self.memory, self.processes = 0, 0

    def usage(self) -> dict[str, float | None]:
        """Return what was used, by the names of the engine's figures."""
        return {
            "cpu_seconds": round(self.cpu_s, 6),
            "memory_mb": round(self.memory / MB, 3),
            "memory_peak_mb": round(self.memory_peak / MB, 3) if self.memory_peak else None,
            "processes": self.processes,
        }

    def check_oom(self) -> None:
        """The kernel takes one process and the others go on maimed: that is an excess too."""
        if self._tree.cgroups.oom_kills():
            allowed = self.limits.get("memory_mb") or 0
            seen = self._tree.cgroups.memory_peak() or self.memory
            raise Excess("memory_mb", allowed, seen / MB)

    def _read(self) -> None:
        cgroups, own = self._tree.cgroups, os.getpid()
        memory, threads, cpu_s, orphans = 0, 0, self._tree.cpu_s, []
        pids = proc.descendants(own)
        self._refuse_bomb(len(pids))
        for process in filter(None, map(proc.look, pids)):
            memory += process.rss
            threads += process.threads
            cpu_s += process.cpu_s
            if process.parent == own and process.pid != self._tree.leader:
                orphans.append(process.pid)
        # A cgroup counts what the walk cannot see: pages of files, and whoever came and went.
        self.memory = cgroups.memory() if cgroups.has("memory") else memory  # type: ignore[assignment]
        self.memory = self.memory or memory
        self.processes = cgroups.processes() or threads
        self.cpu_s = max(self.cpu_s, cgroups.cpu_s() or cpu_s)
        if orphans != self._orphans:
            self._orphans = orphans
            self.on_orphans(orphans)

    def _count(self) -> None:
        counted = self._tree.cgroups.processes()
        if not counted:
            processes, counted = proc.population(os.getpid())
            self._refuse_bomb(processes)
        self.processes = counted

    def _refuse_bomb(self, processes: int) -> None:
        """A bomb grows while we look: what was seen of it is enough."""
        allowed = self.limits.get("pids")
        if allowed is not None and processes > allowed and not self._tree.cgroups.has("pids"):
            raise Excess("pids", allowed, processes)

    def _check_processes(self) -> float:
        allowed = self.limits.get("pids")
        if allowed is None:
            return _IDLE_LATEST_S
        if self._tree.cgroups.has("pids"):
            self._pinned = self._pinned + 1 if self.processes >= allowed else 0
            is_over = self._pinned >= _PINNED_LOOKS
        else:
            is_over = self.processes > allowed
        if is_over:
            raise Excess("pids", allowed, self.processes)
        headroom = max(0.0, allowed - self.processes)
        return min(max(headroom / _FASTEST_FORKS, _SOONEST_S), _LATEST_S)

    def _check_memory(self, began: float) -> float:
        allowed_mb = self.limits.get("memory_mb")
        if allowed_mb is None:
            return _IDLE_LATEST_S
        if self._tree.cgroups.has("memory"):
            self.check_oom()
            return _KERNEL_S
        allowed = allowed_mb * MB
        self._discount()
        if self.memory > allowed and began >= self._confirmed_until:
            self._confirm(began, allowed)
        self.memory = min(self.memory, int(allowed))  # more than that is no more than a suspicion
        headroom = max(0.0, allowed - self.memory)
        return min(max(headroom / _FASTEST, _SOONEST_S), _LATEST_S)

    def _discount(self) -> None:
        """Take off what is known to be shared; whatever is freed may have been just that."""
        freed = max(0, self._resident - self.memory)
        self._resident = self.memory
        self._shared = max(0, self._shared - freed)
        self.memory -= min(self._shared, self.memory)

    def _confirm(self, began: float, allowed: float) -> None:
        self.memory = self._proportional()
        if self.memory > allowed:
            self.memory_peak = max(self.memory_peak, self.memory)
            raise Excess("memory_mb", allowed / MB, self.memory / MB)
        self._shared = max(0, self._resident - self.memory)
        now = time.monotonic()
        filled_s = (allowed - self.memory) / _FASTEST
        self._confirmed_until = now + min((now - began) / _CONFIRM_SHARE, 2 * filled_s)

    def _proportional(self) -> int:
        total = 0
        for pid in proc.descendants(os.getpid()):
            share = proc.proportional(pid)
            if share is None:  # not ours to read: what is resident is the best that is known
                process = proc.look(pid)
                share = process.rss if process else 0
            total += share
        return total

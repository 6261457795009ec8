"""When which limit is looked at: timers around the sampler, the disk watch and the throttle."""

from __future__ import annotations

import time

from engine.keeper.clock import Clock
from engine.keeper.disk import DiskWatch
from engine.keeper.sampler import MB, Excess, Sampler
from engine.keeper.throttle import Throttle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from engine.keeper.loop import Loop
    from engine.keeper.pump import Pump
    from engine.keeper.request import Request
    from engine.keeper.tree import Tree

_FIRST_LOOK_S = 0.02
_USAGE_S = 0.5
_REPEAT_S = 10.0


class Watch:
    """Holds one attempt to its limits while it runs."""

    def __init__(self, loop: Loop, tree: Tree, pump: Pump, request: Request) -> None:
        self.clock = Clock()
        self._loop, self._tree, self._pump = loop, tree, pump
        self._limits = request.limits
        self._roots = request.disk_paths
        self._sampler = Sampler(tree, self._limits)
        self._disk: DiskWatch | None = None
        self._throttle: Throttle | None = None
        self._is_on = False
        self._usage_due = self._repeat_due = 0.0
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
        """Whether the kernel has taken one of them, asked at the end."""
        try:
            self._sampler.check_oom()
        except Excess as excess:
            return excess
        return None

    def usage(self, *, is_final: bool = False) -> dict[str, Any]:
        """What was used so far."""
        sampler = self._sampler
        if is_final:
            sampler.finish()
        return {
            "cpu_seconds": round(sampler.cpu_s, 6),
            "memory_mb": round(sampler.memory / MB, 3),
            "memory_peak_mb": round(sampler.memory_peak / MB, 3) if sampler.memory_peak else None,
            "processes": sampler.processes,
            "disk_mb": round(self._disk.growth / MB, 3) if self._disk else None,
            "output_bytes": self._pump.output_bytes,
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
        if now >= self._usage_due:
            self._usage_due = now + _USAGE_S
            used = self.usage()
            # Each word wakes the engine: what has not changed is only repeated for late comers.
            if used != self._used or now >= self._repeat_due:
                self._used, self._repeat_due = used, now + _REPEAT_S
                self.on_usage(used)
        self._loop.after("look", wait_s, self._look)

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

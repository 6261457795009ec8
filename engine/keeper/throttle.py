"""Holds a tree to its share of processor time by letting it rest, where no cgroup can.

A share of 150 means one and a half cores. What was not used may be used a little later, but not
saved up for long.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.keeper.tree import Tree

PERIOD_S = 0.05
_SAVED_S = 0.2
_LONGEST_REST_S = 0.3
_WHY = "throttle"


class Throttle:
    """Lets a tree work and rest; `step` is to be called with what it has used so far."""

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
        return PERIOD_S

    def release(self) -> None:
        """Let it work without looking."""
        self._tree.thaw(_WHY)

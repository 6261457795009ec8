"""What a worker may use, what it used, and how each limit really holds: data alone.

Enforcing and probing is the work of `engine.sandbox` and `engine.keeper`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How a limit or an isolation holds."""

    ENFORCED = "enforced"
    SAMPLED = "sampled"
    ADVISORY = "advisory"
    NONE = "none"


class Dimension(StrEnum):
    """What can be isolated or limited."""

    FILES = "files"
    GIT = "git"
    NETWORK = "network"
    MEMORY = "memory"
    CPU = "cpu"
    PIDS = "pids"
    TIME = "time"
    DISK = "disk"
    OUTPUT = "output"
    KILL = "kill"
    BUDGET = "budget"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one attempt may use; None means no limit of that kind."""

    memory_mb: int | None = None
    cpu_percent: int | None = None
    time_seconds: float | None = None
    disk_mb: int | None = None
    pids: int | None = None
    output_mb: int | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    files: int | None = None
    refs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What was used so far; None where it is not known, which is not the same as 0."""

    cpu_seconds: float | None = None
    memory_mb: float | None = None
    memory_peak_mb: float | None = None
    processes: int | None = None
    disk_mb: float | None = None
    output_bytes: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None


_ADDED = ("cpu_seconds", "output_bytes", "input_tokens", "output_tokens", "usd")


def summed(usages: Sequence[Usage]) -> Usage:
    """Return what several attempts used together, oldest first.

    What is used up is added; of memory the highest peak counts; what is held (memory, processes,
    disk) is what the newest holds. A figure that only some attempts know is the least it can be.
    """
    if not usages:
        return Usage()
    if len(usages) == 1:
        return usages[0]
    added = {name: _together(sum, usages, name) for name in _ADDED}
    peak = _together(max, usages, "memory_peak_mb")
    return replace(usages[-1], **added, memory_peak_mb=peak)


def _together(how: Callable[[list[Any]], Any], usages: Sequence[Usage], name: str) -> Any:
    known = [value for usage in usages if (value := getattr(usage, name)) is not None]
    return how(known) if known else None


@dataclass(frozen=True, kw_only=True)
class Enforcement:
    """How one dimension holds for one worker, and why no better."""

    dimension: Dimension
    level: Level
    mechanism: str
    value: str
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class LimitHit:
    """A limit that ended an attempt: which one, what was allowed, what was seen."""

    dimension: Dimension
    allowed: float
    seen: float
    unit: str

    def __str__(self) -> str:
        return f"{self.dimension}: {self.seen:g} of {self.allowed:g} {self.unit}"


def over_budget(limits: Limits, usd: float, tokens: int) -> LimitHit | None:
    """What was spent, where that is more than may be."""
    if limits.budget_usd is not None and usd > limits.budget_usd:
        allowed, seen, unit = limits.budget_usd, usd, "USD"
    elif limits.budget_tokens is not None and tokens > limits.budget_tokens:
        allowed, seen, unit = float(limits.budget_tokens), float(tokens), "tokens"
    else:
        return None
    return LimitHit(dimension=Dimension.BUDGET, allowed=allowed, seen=seen, unit=unit)

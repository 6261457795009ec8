"""What a worker may use, what it used, and how each limit really holds: data alone.

Enforcing and probing is the work of `engine.sandbox` and `engine.keeper`.
"""

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one attempt has used so far; None where it is not known, which is not the same as 0."""

    cpu_seconds: float | None = None
    memory_mb: float | None = None
    memory_peak_mb: float | None = None
    processes: int | None = None
    disk_mb: float | None = None
    output_bytes: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None


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

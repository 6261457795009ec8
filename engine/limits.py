"""The limits of a worker, its use, and how each limit really holds: data alone.

`Limits` is also the table of the kinds of limit: beside each field stands what the manifest, the
keeper, the sandbox's report and the console need to know of that kind. Enforcing and probing is the
work of `engine.sandbox` and `engine.keeper`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from enum import StrEnum
from typing import Any, Self, get_args

from engine.phases import StopCause
from engine.values import dataclass


class Level(StrEnum):
    """The strength with which a limit or an isolation holds."""

    ENFORCED = "enforced"
    SAMPLED = "sampled"
    ADVISORY = "advisory"
    NONE = "none"


class Dimension(StrEnum):
    """One thing that can be isolated or limited."""

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
class Held:
    """The way a limit holds, where it is the same on every machine.

    Attributes:
        is_by_engine: The engine holds it, so it holds before the sandbox has reported anything.
    """

    level: Level
    mechanism: str
    reason: str = ""
    is_by_engine: bool = False


@dataclass(frozen=True, kw_only=True)
class LimitKind:
    """One kind of limit.

    Attributes:
        name: The field of `Limits`, which is the key in a manifest.
        about: The line of the manifest's reference.
        unit: The unit of its figures, as a report and an exit.json name it.
        is_whole: A figure is a whole number.
        default: The limit where nobody says one.
        dimension: The row of the sandbox's report; None for what is only cut when it is collected.
        held: How it holds; None where the machine decides, by the controllers it has.
        cause: Why an attempt failed that passed it.
        called: The words for it where a worker failed.
        ends_at_once: An attempt that passes it gets no grace, in which it would take more.
        used: The figure of `Usage` beside it, if that is where its use is counted.
        title: Its name on a worker's page; empty where it is not shown there.
        row: Its place on that page.
    """

    name: str = ""
    about: str
    unit: str = ""
    is_whole: bool = True
    default: float | None = None
    dimension: Dimension | None = None
    held: Held | None = None
    cause: StopCause | None = None
    called: str = ""
    ends_at_once: bool = False
    used: str = ""
    title: str = ""
    row: int = 0


def _of(kind: LimitKind) -> Any:
    """Return the field of a kind of limit."""
    return field(default=None, metadata={"kind": kind})


_REPORTED = Held(
    level=Level.SAMPLED,
    mechanism="usage that the agent reports",
    reason="no budget stops an agent that reports no usage",
    is_by_engine=True,
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Everything one attempt may use; None means no limit of that kind."""

    memory_mb: int | None = _of(
        LimitKind(
            about="Memory of the whole process tree, in MiB.",
            unit="MB",
            default=2048,
            dimension=Dimension.MEMORY,
            cause=StopCause.MEMORY,
            called="memory limit",
            ends_at_once=True,
            used="memory_mb",
            title="mem",
            row=1,
        )
    )
    cpu_percent: int | None = _of(
        LimitKind(
            about="CPU time: 100 is one core.",
            unit="%",
            dimension=Dimension.CPU,
            cause=StopCause.CPU,
            called="cpu limit",
            title="cpu",
            row=2,
        )
    )
    time_seconds: float | None = _of(
        LimitKind(
            about="Wall-clock time. Waiting for a human does not count.",
            unit="s",
            default=3600.0,
            dimension=Dimension.TIME,
            held=Held(level=Level.ENFORCED, mechanism="clock of the keeper"),
            cause=StopCause.TIMEOUT,
            called="time limit",
            used="active_s",
            title="time",
            row=3,
        )
    )
    disk_mb: int | None = _of(
        LimitKind(
            about="Growth of the workspace and its HOME, in MiB, without the checkout itself.",
            unit="MB",
            default=20480,
            dimension=Dimension.DISK,
            held=Held(
                level=Level.SAMPLED,
                mechanism="growth of its folders, largest file",
                reason="folders are measured at intervals; a single file is limited exactly",
            ),
            cause=StopCause.DISK,
            called="disk limit",
            ends_at_once=True,
            used="disk_mb",
            title="disk",
            row=7,
        )
    )
    pids: int | None = _of(
        LimitKind(
            about="Processes and threads together.",
            unit="processes",
            default=4096,
            dimension=Dimension.PIDS,
            cause=StopCause.PIDS,
            called="process limit",
            ends_at_once=True,
            used="processes",
            title="pids",
            row=6,
        )
    )
    output_mb: int | None = _of(
        LimitKind(
            about="Output of one attempt, in MiB.",
            unit="MB",
            default=512,
            dimension=Dimension.OUTPUT,
            held=Held(level=Level.ENFORCED, mechanism="counter of the keeper"),
            cause=StopCause.OUTPUT,
            called="output limit",
        )
    )
    budget_usd: float | None = _of(
        LimitKind(
            about="Cost in US dollars, as reported by the agent.",
            unit="USD",
            dimension=Dimension.BUDGET,
            held=_REPORTED,
            cause=StopCause.BUDGET,
            called="budget",
            used="usd",
            title="cost",
            row=4,
        )
    )
    budget_tokens: int | None = _of(
        LimitKind(
            about="Input and output tokens together, as reported by the agent.",
            unit="tokens",
            dimension=Dimension.BUDGET,
            held=_REPORTED,
            cause=StopCause.BUDGET,
            called="budget",
            used="tokens",
            title="tokens",
            row=5,
        )
    )
    files: int | None = _of(
        LimitKind(
            about="New files that plait takes from the workspace; beyond that, it sets the "
            "largest folders aside.",
            default=200_000,
        )
    )
    refs: int | None = _of(
        LimitKind(
            about="The agent's branches and tags that plait keeps by name; it keeps the rest "
            "together in one ref.",
            default=200,
        )
    )

    def over(self, others: Self) -> Self:
        """Return these limits, with each one that is None taken from `others`."""
        return replace(others, **{name: n for name, n in vars(self).items() if n is not None})


KINDS: Mapping[str, LimitKind] = {
    place.name: replace(
        place.metadata["kind"], name=place.name, is_whole=int in get_args(place.type)
    )
    for place in fields(Limits)
}
"""Every kind of limit by its name, in the order of the manifest's reference."""

_DEFAULTS: dict[str, Any] = {name: kind.default for name, kind in KINDS.items()}
DEFAULT_LIMITS = Limits(**_DEFAULTS)
"""The limits that real builds need, where nobody says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Everything used so far. None means unknown, which is not 0.

    Attributes:
        active_s: Seconds that count against the time limit, without waiting for a human.
    """

    active_s: float | None = None
    cpu_seconds: float | None = None
    memory_mb: float | None = None
    memory_peak_mb: float | None = None
    processes: int | None = None
    disk_mb: float | None = None
    output_bytes: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None

    @property
    def tokens(self) -> int | None:
        """Return input and output tokens together; None if both are unknown."""
        return (self.input_tokens or 0) + (self.output_tokens or 0) or None


_ADDED = ("active_s", "cpu_seconds", "output_bytes", "input_tokens", "output_tokens", "usd")


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
    """The level at which one limit holds for one worker, and why it is not better."""

    dimension: Dimension
    level: Level
    mechanism: str
    value: str
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class LimitHit:
    """A limit that ended an attempt: its name, what was allowed and what was used."""

    dimension: Dimension
    allowed: float
    seen: float
    unit: str

    def __str__(self) -> str:
        return f"{self.dimension}: {self.seen:g} of {self.allowed:g} {self.unit}"


def over_budget(limits: Limits, usd: float, tokens: int) -> LimitHit | None:
    """Return what was spent, where that is more than may be."""
    if limits.budget_usd is not None and usd > limits.budget_usd:
        allowed, seen, kind = limits.budget_usd, usd, KINDS["budget_usd"]
    elif limits.budget_tokens is not None and tokens > limits.budget_tokens:
        allowed, seen = float(limits.budget_tokens), float(tokens)
        kind = KINDS["budget_tokens"]
    else:
        return None
    return LimitHit(dimension=Dimension.BUDGET, allowed=allowed, seen=seen, unit=kind.unit)

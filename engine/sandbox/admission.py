"""Whether one more attempt fits on a machine, by what is free and what was promised: arithmetic.

Limits are promises: attempts below their caps may still grow into them, all at once. Who is over
its cap is another matter. Nothing here measures; the host tells what is free.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.limits import Limits

LEAST_MEMORY_MB = 2048
"""Less than this starves a real build: rather fewer attempts at once."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a machine has free now, for attempts alone: a reserve is taken off already."""

    memory_mb: int
    disk_mb: int


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What one living attempt may use, and what it uses already."""

    limits: Limits
    memory_mb: float = 0.0
    disk_mb: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Whether an attempt may start; the reason is for the person who waits."""

    fits: bool
    reason: str = ""


def admit(room: Room, running: Iterable[Claim], wanted: Limits, tree_mb: int = 0) -> Admission:
    """Whether an attempt with these limits may start beside the running ones.

    The first may always start: waiting would not make more room.

    Args:
        room: What is free now.
        running: The living attempts.
        wanted: The limits of the one that is to start; without a limit it wants the least.
        tree_mb: The size of its checkout.
    """
    claims = tuple(running)
    if not claims:
        return Admission(fits=True)
    promised = sum(max(_memory(each.limits) - each.memory_mb, 0) for each in claims)
    free = room.memory_mb - promised
    if free < _memory(wanted):
        return Admission(
            fits=False,
            reason=f"memory: {_memory(wanted)} MB wanted, {max(free, 0):.0f} MB neither used "
            f"nor promised to {len(claims)} running",
        )
    if room.disk_mb < tree_mb:
        return Admission(
            fits=False, reason=f"disk: the checkout needs {tree_mb} MB, {room.disk_mb} MB are free"
        )
    return Admission(fits=True)


def fair_share(room: Room, slots: int) -> tuple[int, int]:
    """The memory in MB for each attempt, and how many may start at once with it."""
    share = room.memory_mb // max(slots, 1)
    if share >= LEAST_MEMORY_MB:
        return share, slots
    return LEAST_MEMORY_MB, max(room.memory_mb // LEAST_MEMORY_MB, 1)


def _memory(limits: Limits) -> int:
    return LEAST_MEMORY_MB if limits.memory_mb is None else limits.memory_mb

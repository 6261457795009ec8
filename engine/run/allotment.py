"""Decide how many workers run at once: by memory, and by the cap that all runs share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.core.state import RunState
from engine.host.seam import Capacity
from engine.phases import Phase
from engine.plan.model import Clamp, Plan

_RESERVE = 0.1
"""The part of the free memory that stays with the machine."""


def admitted(plan: Plan, capacity: Capacity) -> Plan:
    """Return the plan with no more workers at once than free memory allows."""
    most = max((step.limits.memory_mb or 0 for step in plan.steps), default=0)
    asked = plan.runtime.max_concurrent_workers
    free = int(capacity.memory_available_mb * (1 - _RESERVE))
    given = max(1, min(asked, free // most)) if most else asked
    if given == asked:
        return plan
    clamp = Clamp(
        where="max_concurrent_workers",
        asked=asked,
        given=given,
        reason=f"memory: {free} MB are free, each worker may use {most} MB",
    )
    runtime = replace(plan.runtime, max_concurrent_workers=given)
    return replace(plan, runtime=runtime, clamps=(*plan.clamps, clamp))


@dataclass(frozen=True)
class Share:
    """The slots that a run may hold now."""

    run: str
    cap: int


def allot(states: Sequence[RunState], wanted: Sequence[int], total: int) -> list[Share]:
    """Return each run's share: its held slots, then one more at a time while work is queued.

    Args:
        states: The runs, oldest first.
        wanted: The cap each run would have alone.
        total: How many workers the engine may run at once.
    """
    held = [state.slots_in_use for state in states]
    queued = [state.crew.count((Phase.QUEUED,)) for state in states]
    caps = list(held)
    free = total - sum(held)
    while free > 0:
        able = [n for n in range(len(states)) if caps[n] < min(wanted[n], held[n] + queued[n])]
        if not able:
            break
        least = min(able, key=lambda n: caps[n])
        caps[least] += 1
        free -= 1
    if len(states) == 1:
        return [Share(states[0].run, min(wanted[0], total))]
    return [Share(state.run, cap) for state, cap in zip(states, caps, strict=True)]

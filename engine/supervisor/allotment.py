"""Sharing the engine's slots between its runs: together they never hold more than the cap."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.state import RunState
from engine.phases import Phase


@dataclass(frozen=True)
class Share:
    """How many slots a run may hold now."""

    run: str
    cap: int


def allot(states: Sequence[RunState], wanted: Sequence[int], total: int) -> list[Share]:
    """Each run's share: what it holds, then one more slot at a time to whoever has work queued.

    Args:
        states: The runs, oldest first.
        wanted: The cap each run would have alone.
        total: How many workers the engine may run at once.
    """
    held = [state.slots_in_use for state in states]
    queued = [sum(w.phase is Phase.QUEUED for w in state.workers.values()) for state in states]
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

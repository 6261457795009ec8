"""Run many coding agents at once in one git repository, without a terminal.

Importing this package costs nothing. Each public name loads its room when it is first used.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` costs as much as a short command
if TYPE_CHECKING:
    from engine.agents.call_program import CallContext
    from engine.api import Engine, OpenMerge, Plan, PlanDefaults, Run, open_merge
    from engine.errors import EngineError
    from engine.library import Agent, AgentRunFailed, IsolatedAgentSession, Reply, Turn
    from engine.limits import Limits, Usage
    from engine.messages.commands import Accepted, Conflicted, Refused
    from engine.messages.events import Landed
    from engine.patterns import (
        Failure,
        Pool,
        Success,
        balanced,
        fan_in,
        first,
        gather,
        in_batches,
        map_chunks,
        race,
        retry_failed,
        settled,
        stages,
        with_retry,
        with_timeout,
    )

_HOMES = {
    "engine.agents.call_program": "CallContext",
    "engine.api": "Engine OpenMerge Plan PlanDefaults Run open_merge",
    "engine.messages.commands": "Accepted Conflicted Refused",
    "engine.errors": "EngineError",
    "engine.messages.events": "Landed",
    "engine.library": "Agent AgentRunFailed IsolatedAgentSession Reply Turn",
    "engine.limits": "Limits Usage",
    "engine.patterns": "Failure Pool Success balanced fan_in first gather in_batches map_chunks"
    " race retry_failed settled stages with_retry with_timeout",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Accepted",
    "Agent",
    "AgentRunFailed",
    "CallContext",
    "Conflicted",
    "Engine",
    "EngineError",
    "Failure",
    "IsolatedAgentSession",
    "Landed",
    "Limits",
    "OpenMerge",
    "Plan",
    "PlanDefaults",
    "Pool",
    "Refused",
    "Reply",
    "Run",
    "Success",
    "Turn",
    "Usage",
    "balanced",
    "fan_in",
    "first",
    "gather",
    "in_batches",
    "map_chunks",
    "open_merge",
    "race",
    "retry_failed",
    "settled",
    "stages",
    "with_retry",
    "with_timeout",
]


def __getattr__(name: str) -> object:
    """Bring a public name's room in when the name is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, before any of them was used."""
    return sorted({*globals(), *__all__})

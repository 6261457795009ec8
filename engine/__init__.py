"""The engine: runs many coding agents at once in one git repository, without a terminal.

Importing this package costs nothing; each public name brings its room with it when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Engine, Run
    from engine.limits import Limits
    from engine.patterns import (
        Failure,
        Pool,
        Success,
        balanced,
        first,
        gather,
        in_batches,
        map_chunks,
        race,
        settled,
        stages,
        with_retry,
        with_timeout,
    )

_HOMES = {
    "engine.api": "Engine Run",
    "engine.limits": "Limits",
    "engine.patterns": "Failure Pool Success balanced first gather in_batches map_chunks race"
    " settled stages with_retry with_timeout",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Engine",
    "Failure",
    "Limits",
    "Pool",
    "Run",
    "Success",
    "balanced",
    "first",
    "gather",
    "in_batches",
    "map_chunks",
    "race",
    "settled",
    "stages",
    "with_retry",
    "with_timeout",
]


def __getattr__(name: str) -> Any:
    """Bring a public name's room in when the name is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)

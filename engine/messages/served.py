"""Define what is reported of a program that is served for a human to look at, as plain data."""

from enum import StrEnum

from engine.values import dataclass


class ServedState(StrEnum):
    """The state of a program that is served."""

    PREPARING = "preparing"
    """Its tree is laid out anew and set up."""
    STARTING = "starting"
    """It runs, and is not ready yet, or not any more."""
    READY = "ready"
    ENDED = "ended"
    """It ended by itself, or could not be started."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A worker's program, started for a human to look at.

    Attributes:
        url: Where it is reached, once it is ready.
        attempt: Whose files it runs on.
        is_own_tree: It runs in a tree laid out anew from the change, not in the workspace.
        since: When it came into this state, in wall-clock seconds.
        note: What keeps it from being ready, or how it ended.
        tail: The last lines that it wrote.
    """

    state: ServedState
    port: int = 0
    url: str = ""
    attempt: int = 0
    is_own_tree: bool = False
    since: float = 0.0
    note: str = ""
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServedLog:
    """The output of a served program, and its state; nothing is served where `served` is None."""

    served: Served | None = None
    lines: tuple[str, ...] = ()
    count: int = 0

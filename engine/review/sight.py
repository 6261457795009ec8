"""Compare what a human saw with what is there: an act on a change that nobody saw is refused.

One rule for every act. It is asked where the fact is made, in the same turn, so that nothing can
come between.
"""

from collections.abc import Mapping

from engine.core.state import RunState, Worker
from engine.errors import ChangeMoved
from engine.ids import WorkerId
from engine.messages.commands import RefusalKind, Refused, Seen

HINT = "Look at it again, then decide."


def is_seen(w: Worker, seen: Seen | None) -> bool:
    """Return whether a worker's change is the one that was seen; nothing seen is any change."""
    if seen is None:
        return True
    if seen.attempt not in {None, w.attempt.number}:
        return False
    tree = (w.change.tree or "") if w.change else ""
    return tree.startswith(seen.tree) if seen.tree else not tree


def refused_unseen(w: Worker) -> Refused:
    """Return the refusal of an act on a change that was not seen."""
    return Refused(_said(w), hint=HINT, kind=RefusalKind.CHANGED)


def require_seen(w: Worker, seen: Seen | None) -> None:
    """Refuse to go on with a change that was not seen.

    Raises:
        ChangeMoved: It is another one.
    """
    if not is_seen(w, seen):
        raise ChangeMoved(_said(w), hint=HINT)


def require_all_seen(state: RunState, seen: Mapping[str, Seen] | None) -> None:
    """Refuse to go on where the change of any of these workers is not the one that was seen.

    Raises:
        ChangeMoved: One is another, or there is no such worker.
    """
    for name, one in (seen or {}).items():
        w = state.workers.get(WorkerId.parse(name))
        if w is None:
            raise ChangeMoved(f"{name} is not a worker of this run", hint=HINT)
        require_seen(w, one)


def _said(w: Worker) -> str:
    return f"{w.id} has changed since you looked"

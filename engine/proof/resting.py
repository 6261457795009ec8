"""Track the trees of one run in which nobody works, so that later changes are noticed.

It knows the workers' phases; what changed in a tree is for who looks.
"""

import os
from collections.abc import Mapping
from threading import Lock

from engine.core.state import RunState, Worker
from engine.ids import WorkerId
from engine.phases import Phase

_AT_WORK = 0
Resting = Mapping[str, tuple[WorkerId, int]]
"""Trees by path: whose each is, and since when nobody has been seen at work in it."""


class RestingTrees:
    """The trees in which attempts of one run have worked, as far as they are there.

    Informed of a tree when an attempt in it ends, so that nobody asks about workers that have none.
    """

    def __init__(self, state: RunState) -> None:
        """Start with trees of an engine before this one: at rest since the worker's last move."""
        self._looking = Lock()
        self._since: dict[str, tuple[WorkerId, int]] = {
            w.begun.workspace: (w.id, int(w.phase_since * 1e9) if _is_resting(w) else _AT_WORK)
            for w in state.workers.values()
            if w.begun.workspace is not None
        }

    def add(self, worker: WorkerId, tree: str) -> None:
        """Note that an attempt in this tree has ended."""
        with self._looking:
            self._since[tree] = (worker, _AT_WORK)

    def at(self, state: RunState, now_ns: int) -> Resting:
        """Return the trees that rest now."""
        resting: dict[str, tuple[WorkerId, int]] = {}
        with self._looking:
            for tree, (worker, since_ns) in list(self._since.items()):
                w = state.workers[worker]
                if w.begun.workspace != tree or _is_gone(w, tree):
                    del self._since[tree]  # given back, or there is a newer one
                elif not _is_resting(w):
                    self._since[tree] = (worker, _AT_WORK)
                else:
                    resting[tree] = self._since[tree] = (worker, since_ns or now_ns)
        return resting


def _is_gone(w: Worker, tree: str) -> bool:
    """Return whether a tree of this disk was given back; of another site's nothing tells here."""
    return w.phase.is_settled and not w.begun.site and not os.path.lexists(tree)


def _is_resting(w: Worker) -> bool:
    return not w.phase.holds_slot and w.phase is not Phase.LANDING

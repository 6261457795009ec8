"""Make the workspaces of the workers that begin next, while all slots are taken.

A worker then finds its workspace ready as soon as it has a slot. Nothing of this is a fact: no
journal and no observer knows of it. What is ready is given back if its worker does not begin as it
was foreseen.
"""

from functools import partial

import anyio

from engine.core.effects import PrepareWorkspace
from engine.core.feed import RunFeed
from engine.core.rules import foreseen
from engine.core.state import RunState
from engine.ids import RunId, WorkerId
from engine.patterns.background import Background, contained
from engine.phases import Phase
from engine.values import dataclass
from engine.work.tools import Tools
from engine.work.workshops import GitWorkshop

_MOST = 4
"""So many workspaces at most are ready, over all runs; each takes room on the disk."""
_LATER_S = 0.1
"""So long nothing begins: who has just got a slot starts its agent first."""
_CLOSING_S = 10.0


@dataclass(frozen=True)
class _Ready:
    """A workspace that is ready, or was tried: the run as it was foreseen, and what it wanted."""

    state: RunState
    effect: PrepareWorkspace


class HeadStart:
    """Holds the workspaces that are ready before their workers begin."""

    def __init__(self, tools: Tools, tasks: Background) -> None:
        self._tools = tools
        self._tasks = tasks
        self._lives: dict[RunId, RunFeed] = {}
        self._held: dict[tuple[RunId, WorkerId], _Ready] = {}
        self._filling: anyio.CancelScope | None = None
        self._given: set[anyio.Event] = set()
        self._is_closed = False

    def look(self, live: RunFeed) -> None:
        """Give back what is not needed any more, and make what is needed next."""
        self._lives[live.state.run] = live
        self._check(live.state)
        if self._filling is None and self._next() is not None:
            self._filling = anyio.CancelScope()
            self._tasks.start_soon(self._fill, self._filling, failed=None)

    def forget(self, run: RunId) -> None:
        """Give back all that is held for a run."""
        self._lives.pop(run, None)
        for key in [key for key in self._held if key[0] == run]:
            self._give_back(key)

    async def aclose(self) -> None:
        """Give back everything, and wait until it is gone; the next engine removes the rest."""
        self._is_closed = True
        with anyio.move_on_after(_CLOSING_S, shield=True):
            if self._filling is not None:
                self._filling.cancel()
            for key in list(self._held):
                self._give_back(key)
            for given in list(self._given):
                await given.wait()

    def _check(self, state: RunState) -> None:
        for key, held in list(self._held.items()):
            if key[0] != state.run:
                continue
            if state.workers[key[1]].attempt.number:
                del self._held[key]  # it has begun: whoever prepares it takes what is there
                continue
            seen = foreseen(state, key[1])
            if seen is None or seen[1] != held.effect:
                self._give_back(key)

    def _give_back(self, key: tuple[RunId, WorkerId]) -> None:
        held, given = self._held.pop(key), anyio.Event()
        self._given.add(given)
        self._tasks.start_soon(self._return, held, given, failed=None)

    async def _return(self, held: _Ready, given: anyio.Event) -> None:
        try:
            if (git := self._tools.workshops.with_git(held.state.plan)) is not None:
                await git.give_back(held.state, held.effect)
        finally:
            given.set()
            self._given.discard(given)

    async def _fill(self, scope: anyio.CancelScope) -> None:
        """Make one after the other: more at once would take from those that are at work."""
        try:
            with scope:
                while self._next() is not None:
                    await self._tools.clock.sleep(_LATER_S)
                    if (found := self._next()) is not None:
                        await self._make(*found)
        finally:
            self._filling = None

    async def _make(self, git: GitWorkshop, found: _Ready) -> None:
        key = found.state.run, found.effect.worker
        self._held[key] = found
        make = partial(
            git.prepare_ahead,
            found.state,
            found.effect,
            is_wanted=lambda: self._held.get(key) is found,
        )
        # One that fails stays held, so that it is not tried again and again. Its worker makes its
        # workspace when it begins, and says then what is wrong.
        await contained(make, None)

    def _next(self) -> tuple[GitWorkshop, _Ready] | None:
        """Return who begins next of those without a workspace; None while others are preparing."""
        if self._is_closed or any(
            live.state.crew.count((Phase.PREPARING,)) for live in self._lives.values()
        ):
            return None
        for live in self._lives.values():
            git = self._tools.workshops.with_git(live.state.plan)
            room = min(_MOST, live.state.cap) - len(self._held)
            found = self._first(git, live.state) if git is not None and room > 0 else None
            if git is not None and found is not None:
                return git, found
        return None

    def _first(self, git: GitWorkshop, state: RunState) -> _Ready | None:
        for w in state.crew.standing((Phase.QUEUED,), at_most=2 * _MOST):
            if (state.run, w.id) not in self._held and git.can_prepare_ahead(state, w.id.step):
                seen = foreseen(state, w.id)
                if seen is not None:
                    return _Ready(*seen)
        return None

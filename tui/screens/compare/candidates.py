"""Read the candidates of a step from the engine, and hold two of them against each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.messages.commands import Seen
from engine.messages.results import StepView, WorkerView
from tui.kit.screen import Board, Controller
from tui.kit.session import identity_of
from tui.screens.compare.model import ComparePane
from tui.screens.diff.pane import DiffPane
from tui.words.figures import some

if TYPE_CHECKING:
    from engine.api import CandidateTable


_MIX = -1
"""The way of `diff` that shows what the taken hunks make."""


class Candidates(Controller):
    """Ask for the candidates of the step; what the table shows is what is acted on."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.pane = ComparePane()
        self.pair: DiffPane | None = None
        self.pair_said = ""
        self.reason = ""
        self.of_table: dict[str, Seen] = {}
        self._pair_at = 0
        self._loaded: tuple[object, ...] = ()

    @property
    def step(self) -> StepView | None:
        """Return the step under the cursor where it has candidates; else the first such."""
        run, here = self.session.run, self.session.step_view
        if run is None:
            return None
        with_candidates = [step for step in run.steps if has_candidates(step)]
        if here in with_candidates:
            return here
        return next(iter(with_candidates), None)

    def load_anew(self) -> None:
        """Ask for them whether or not they have moved."""
        self._loaded = ()
        self.load_if_moved()

    def load_if_moved(self) -> None:
        """Ask for the candidates when they are others, or have moved."""
        run, step = self.session.run, self.step
        if run is None or step is None:
            self.pane.show(None)
            return
        changes = tuple((w.worker, w.attempt, w.phase, w.change, w.check) for w in step.workers)
        wanted = (run.run, step.name, changes)
        if wanted == self._loaded:
            return
        if wanted[:2] != self._loaded[:2]:
            if self.pane.table and self.pane.table.step != step.name:
                self.pane.begin_anew()
            self.reason, self.pair = "", None
        self._loaded = wanted
        seen = {worker.worker: identity_of(worker) for worker in step.workers}
        load = partial(self._load, run.run, step.name, seen)  # a table asked for is no older
        self.screen.begin(load, group="candidates", exclusive=True)

    async def _load(self, run: str, step: str, seen: dict[str, Seen]) -> None:
        found = await self.session.bridge.candidates(run, step)
        if self._loaded[:2] == (run, step):
            if isinstance(found, str):
                self.reason = found
            else:
                is_first = self.pane.table is None
                self.pane.show(found)
                self.of_table = seen
                self.look_at(self.session.worker)
                if is_first:
                    self.point()
        self.screen.draw()

    def look_at(self, worker: str) -> None:
        """Put the cursor on a candidate."""
        names = [row.worker for row in self.pane.rows]
        self.pane.column = names.index(worker) if worker in names else self.pane.column

    def point(self) -> None:
        """Do to the candidate under the cursor what is done to a worker."""
        if self.pane.row is not None:
            self.session.worker = self.pane.row.worker

    def do_diff(self) -> None:
        """Show the taken composite, then the candidate here beside each of the others."""
        table, rows = self.pane.table, self.pane.rows
        if table is None or not rows:
            return
        ways = [*([_MIX] if self.pane.taken else []), *self.pane.others]
        if not ways:
            self.refuse("diff", "there is no other candidate")
            return
        self._pair_at = (self._pair_at + 1) % len(ways) if self.pair else 0
        load = partial(self._load_pair, table, rows[self.pane.column].worker, ways[self._pair_at])
        self.screen.begin(load, group="pair", exclusive=True)

    async def _load_pair(self, table: CandidateTable, one: str, at: int) -> None:
        """Ask for the composite, or for a candidate beside another, and show it."""
        if at == _MIX:
            keys = self.pane.keys
            said = f"the composite of {some(len(keys), 'hunk')}, compared with their base"
            found = await self.session.bridge.composite(table.run, table.step, keys)
        else:
            other = self.pane.rows[at].worker
            said = f"{one} → {other}"
            found = await self.session.bridge.compare(table.run, one, other)
        if isinstance(found, str):
            self.refuse("diff", found)
            return
        self.pair, self.pair_said = DiffPane(seen=self.session.seen), said
        self.pair.shape.opens_moves = True  # there is no key here that opens one of them
        self.pair.show(found)
        self.screen.draw()


def has_candidates(step: StepView) -> bool:
    """Say if several workers did the same, of whom one is chosen."""
    return step.merge == "choose" and len(_own(step.workers)) > 1


def _own(workers: Sequence[WorkerView]) -> list[WorkerView]:
    return [worker for worker in workers if not worker.worker.endswith("/woven")]

"""The keys of Compare that go somewhere: which step, which hunk, which two beside each other."""

from collections.abc import Sequence
from functools import partial

from engine.messages.commands import Seen
from engine.messages.results import StepView, WorkerView
from tui.controllers import ON_WORKERS
from tui.kit.screen import Board
from tui.kit.session import Session, identity_of
from tui.screens.compare.model import ComparePane
from tui.screens.diff.pane import DiffPane


class CompareMoves(Board):
    """The candidates of a step as they come from the engine, and where the eye is among them."""

    held = ON_WORKERS
    kind = "compare"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pane = ComparePane()
        self.pair: DiffPane | None = None
        self.pair_said = ""
        self.pair_at = 0
        self.top: int | None = None
        self.reason = ""
        self._loaded: tuple[object, ...] = ()
        self.of_table: dict[str, Seen] = {}

    # Loading.

    def on_screen_resume(self) -> None:
        self._loaded = ()
        self.load_if_moved()
        super().on_screen_resume()

    @property
    def step(self) -> StepView | None:
        """The step of the worker under the cursor, where it has candidates; else the first such."""
        run, here = self.session.run, self.session.step_view
        if run is None:
            return None
        with_candidates = [step for step in run.steps if has_candidates(step)]
        if here in with_candidates:
            return here
        return next(iter(with_candidates), None)

    def load_if_moved(self) -> None:
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
                self.pane = ComparePane()
            self.reason, self.pair = "", None
        self._loaded = wanted
        load = partial(self._load, run.run, step.name, self._identities(step))
        self.begin(load, group="candidates", exclusive=True)

    def _identities(self, step: StepView) -> dict[str, Seen]:
        """What names the change of every candidate in this view; a table asked for is no older."""
        return {worker.worker: identity_of(worker) for worker in step.workers}

    async def _load(self, run: str, step: str, seen: dict[str, Seen]) -> None:
        found = await self.session.bridge.candidates(run, step)
        if self._loaded[:2] == (run, step):
            if isinstance(found, str):
                self.reason = found
            else:
                is_first = self.pane.table is None
                self.pane.show(found)
                self.of_table = seen
                self._look_at(self.session.worker)
                if is_first:
                    self._point()
        self.draw()

    def seen(self, worker: WorkerView) -> Seen:
        """Name the change that the table shows: what came since is not on screen."""
        return self.of_table.get(worker.worker) or identity_of(worker)

    def _look_at(self, worker: str) -> None:
        names = [row.worker for row in self.pane.rows]
        self.pane.column = names.index(worker) if worker in names else self.pane.column

    def _point(self) -> None:
        """What is done to a worker is done to the candidate under the cursor."""
        if self.pane.row is not None:
            self.session.worker = self.pane.row.worker

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self._look_at(worker)

    # Moving.

    def _by(self, by: int) -> None:
        if self.pair is not None:
            self.pair.move(by)
        elif self.top is not None:
            self.top = max(self.top + by, 0)
        else:
            self.pane.move(by)

    def do_down(self) -> None:
        self._by(1)

    def do_up(self) -> None:
        self._by(-1)

    def do_page_down(self) -> None:
        self._by(self.size.height - 10)

    def do_page_up(self) -> None:
        self._by(10 - self.size.height)

    def do_first(self) -> None:
        self._by(-len(self.pane.spots))

    def do_last(self) -> None:
        self._by(len(self.pane.spots))

    def do_left(self) -> None:
        self.pane.sideways(-1)
        self._point()

    def do_right(self) -> None:
        self.pane.sideways(1)
        self._point()

    def do_unit_down(self) -> None:
        self.pane.to_file(1)

    def do_unit_up(self) -> None:
        self.pane.to_file(-1)

    def do_next(self) -> None:
        if not self.pane.to_difference(1):
            self.say_refused(self.key_of("next"), "no hunk further down differs")

    def do_previous(self) -> None:
        if not self.pane.to_difference(-1):
            self.say_refused(self.key_of("previous"), "no hunk further up differs")

    def do_open(self) -> None:
        self.top = 0 if self.top is None else None

    def do_leave(self) -> None:
        if self.pair is not None:
            self.pair = None
        elif self.top is not None:
            self.top = None
        else:
            self.hand_on("leave")

    # Looking.

    def do_diff(self) -> None:
        """The candidate under the cursor beside another, directly; again: beside the next one."""
        table, rows = self.pane.table, self.pane.rows
        if table is None or not rows:
            return
        if not self.pane.others:
            self.say_refused(self.key_of("diff"), "there is no other candidate")
            return
        self.pair_at = (self.pair_at + 1) % len(self.pane.others) if self.pair else 0
        one, other = rows[self.pane.column].worker, rows[self.pane.others[self.pair_at]].worker
        self.begin(partial(self._load_pair, table.run, one, other), group="pair", exclusive=True)

    async def _load_pair(self, run: str, one: str, other: str) -> None:
        found = await self.session.bridge.compare(run, one, other)
        if isinstance(found, str):
            self.say_refused(self.key_of("diff"), found)
            return
        self.pair = DiffPane(seen=self.session.seen)
        self.pair_said = f"{one} → {other}"
        self.pair.show(found)
        self.draw()

    def do_copy(self) -> None:
        hunk = self.pane.hunk
        self.copy("\n".join(line.removesuffix("\n") for line in hunk.new) if hunk else "")


def has_candidates(step: StepView) -> bool:
    """Several workers did the same, of whom one is chosen."""
    return step.merge == "choose" and len(_own(step.workers)) > 1


def _own(workers: Sequence[WorkerView]) -> list[WorkerView]:
    return [worker for worker in workers if not worker.worker.endswith("/woven")]

"""Leave hunks of a change behind when it lands: the engine keeps which, this screen asks."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from engine.messages.diffs import file_key
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.ink import Ink, Role, Span
from tui.kit.screen import Board, Controller
from tui.kit.session import Undoable
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.reading import Reading
from tui.words.figures import some

_WHY_NOT = {
    Phase.RUNNING: "it is still working; you can leave out hunks once it waits for review",
    Phase.LANDED: "its whole change has landed; undo the landing first",
    Phase.LANDING: "it is about to land",
    Phase.CONFLICTED: "resolve its conflicts in Review first",
}


class _Asked(NamedTuple):
    """Keep in mind what was asked of the engine while it showed something else."""

    about: str
    shown: tuple[str, ...]
    wanted: tuple[str, ...]


class Dropping(Controller):
    """Leave hunks and files out and take them back; one key undoes each."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._asked: _Asked | None = None
        self._under_way = 0

    @property
    def pane(self) -> DiffPane:
        """Return what is on screen."""
        return self.screen.does(Reading).pane

    def why_not(self, idea: str) -> str:
        if idea not in {"no", "no_wide"}:
            return ""
        worker = self.session.worker_view
        if worker is None:
            return "there is no worker"
        if worker.phase is not Phase.REVIEWING:
            words = (
                f"it is {worker.phase}: you can leave out hunks only while a change waits "
                "for review"
            )
            return _WHY_NOT.get(worker.phase, words)
        if self.screen.does(Reading).against:
            back = self.screen.key_of("diff")
            return f"you leave out hunks in the diff against its base; {back} shows that"
        return "" if self.pane.diff else "there is no diff"

    def label_of(self, idea: str, label: str) -> str:
        """Return the footer's word: a hunk or file that was dropped can be kept again."""
        if idea not in {"no", "no_wide"}:
            return label
        worker = self.session.worker_view
        out = self._left_out(worker) if worker else ()
        keys = self._keys(is_file=idea == "no_wide")
        verb = "keep" if keys and set(keys) <= set(out) else "drop"
        return f"{verb} the {'file' if idea == 'no_wide' else 'hunk'}"

    def do_no(self) -> None:
        """Leave the hunk under the cursor out, or take it back."""
        self._toggle(self._keys(is_file=False), "the hunk", "no")

    def do_no_wide(self) -> None:
        """The same for the whole file."""
        self._toggle(self._keys(is_file=True), "the file", "no_wide")

    def _keys(self, *, is_file: bool) -> tuple[str, ...]:
        """Return what is under the cursor; a file without hunks has a key of its own."""
        diff = self.pane.diff
        if diff is None or not diff.files:
            return ()
        of_file = diff.keys[self.pane.file] or (file_key(diff.files[self.pane.file]),)
        if is_file or not diff.keys[self.pane.file]:
            return of_file
        return (self.pane.key,) if self.pane.key else ()

    def _left_out(self, worker: WorkerView) -> tuple[str, ...]:
        """Return what is left out: as the engine shows it, or as it was asked and will show it."""
        asked = self._asked
        if asked is None or asked.about != self.session.about:
            return worker.left_out
        if self._under_way or worker.left_out == asked.shown:
            return asked.wanted
        self._asked = None
        return worker.left_out

    def _toggle(self, keys: tuple[str, ...], what: str, idea: str) -> None:
        worker = self.session.worker_view
        if worker is None or not keys:
            hint = f"{self.screen.key_of('no_wide')} drops the whole file"
            self.refuse(idea, "there is no hunk under the cursor", hint)
            return
        before = self._left_out(worker)
        is_back = set(keys) <= set(before)
        after = tuple(key for key in before if key not in keys)
        after = after if is_back else (*after, *keys)
        said = f"{what} {'kept' if is_back else 'left out'}"
        change = Undoable(
            said,
            self._setter_of(worker, before),
            self._setter_of(worker, after),
            can_undo=partial(self.session.has_change, self.run_id, worker),
        )
        act = partial(self._set, self.run_id, worker.worker, after, done=(said, change))
        self.screen.begin(act, holds=True)

    def _setter_of(self, worker: WorkerView, keys: tuple[str, ...]) -> Callable[[], None]:
        act = partial(self._set, self.run_id, worker.worker, keys)
        return lambda: self.screen.begin(act, holds=True)

    async def _set(
        self,
        run: str,
        worker: str,
        keys: tuple[str, ...],
        *,
        done: tuple[str, Undoable] | None = None,
    ) -> None:
        """Ask for exactly these; what was refused is not remembered as done."""
        here = self.session.worker_view
        shown = here.left_out if here and self.session.about == f"{run}/{worker}" else ()
        before, self._asked = self._asked, _Asked(f"{run}/{worker}", shown, keys)
        self._under_way += 1
        try:
            seen = self.session.seen_of(run, worker)
            found = await self.session.bridge.leave_out(run, worker, keys, seen)
        finally:
            self._under_way -= 1
        self.session.look()
        if isinstance(found, str):
            self._asked = before
            self.refuse("no", found)
            return
        if done is not None:
            self.session.remember(done[1])
            out = (
                f"{some(len(keys), 'hunk')} will not land" if keys else "the whole change will land"
            )
            check, land = self.screen.key_of("check"), self.screen.key_of("land")
            is_stale = here and here.check
            stale = f"; {check} or {land} checks the rest" if is_stale else ""
            mark = Span("✓ ", Ink(Role.DONE))
            self.screen.say_both(done[0], f"{out}{stale}", mark)

"""Take hunks of any candidate, and weave them into a composite that is checked."""

from collections.abc import Callable
from functools import partial

from engine.messages.commands import Seen
from tui.controllers import Landing
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.screens.compare.candidates import Candidates
from tui.screens.compare.model import ComparePane


class Weaving(Controller):
    """Take hunks, leave them, and make one change of those that are taken."""

    @property
    def pane(self) -> ComparePane:
        """Return what is on screen."""
        return self.screen.does(Candidates).pane

    def why_not(self, idea: str) -> str:
        if idea == "no":
            spot = self.pane.spot
            return "" if spot and spot.number in self.pane.taken else "no hunk is taken here"
        if idea == "check":
            return self._why_not_check()
        if idea == "merge" and not self.composite:
            check = self.screen.key_of("check")
            return f"the composite is not made yet; {check} makes it"
        return ""

    @property
    def composite(self) -> str:
        """The worker that is made of exactly the taken hunks; empty where there is none."""
        woven = self.pane.woven
        return (woven.worker or "") if woven and self.pane.is_checked else ""

    def _why_not_check(self) -> str:
        if not self.pane.taken:
            return "no hunk is taken"
        if any(not row.is_comparable for row in self.pane.rows if row.hunks):
            return "the candidates have different bases"
        return ""

    def do_mark(self) -> None:
        """Take the hunk of the candidate under the cursor, and go on to its next one."""
        self._change("the hunk", self.pane.take)
        self.pane.to_own()

    def toggle(self) -> None:
        """Take the hunk of the candidate under the cursor, or leave it; the cursor stays."""
        spot, hunk = self.pane.spot, self.pane.hunk
        if spot and hunk and self.pane.is_taken(spot, hunk):
            self.do_no()
        else:
            self._change("the hunk", self.pane.take)

    def do_no(self) -> None:
        self._change("the hunk left out", self.pane.leave)

    def _change(self, said: str, act: Callable[[], bool]) -> None:
        before = dict(self.pane.taken)
        if not act():
            return
        after = dict(self.pane.taken)
        step = self.pane.table.step if self.pane.table else ""
        undo, redo = partial(self._set_taken, step, before), partial(self._set_taken, step, after)
        is_there = partial(self._is_of, step)
        self.session.remember(Undoable(said, undo, redo, can_undo=is_there))

    def _is_of(self, step: str) -> bool:
        return self.pane.table is not None and self.pane.table.step == step

    def _set_taken(self, step: str, taken: dict[int, tuple[str, ...]]) -> None:
        """Take exactly these, where the candidates are still those of that step."""
        if self._is_of(step):
            self.pane.taken = dict(taken)

    def do_merge_all(self) -> None:
        """Take all that the candidate under the cursor did; what only others did stays as it is."""
        self._change(f"all of {self.here().worker} taken", self.pane.take_all)

    def do_check(self) -> None:
        """Weave exactly the taken hunks, and run the check on what they make."""
        table = self.pane.table
        if table is not None:
            self.screen.say("combining and checking your hunks")
            names = {row.worker for row in self.pane.rows}
            seen = {
                name: one
                for name, one in self.screen.does(Candidates).of_table.items()
                if name in names
            }
            weave = partial(self._weave, table.run, table.step, seen)
            self.screen.begin(weave, group="weave", exclusive=True)

    async def _weave(self, run: str, step: str, seen: dict[str, Seen]) -> None:
        keys = self.pane.keys
        found = await self.session.bridge.weave(run, step, keys, seen)
        self.session.look()
        if isinstance(found, str):
            self.refuse("check", found)
            return
        self.pane.woven, self.pane.woven_of = found, keys
        if found.worker is None:
            self.refuse("check", found.reason or "these hunks cannot be combined")
        else:
            passed = found.check is None or found.check.passed
            mark = Span("✓ ", Ink(Role.DONE)) if passed else Span("✗ ", Ink(Role.FAILED))
            self.screen.say(mark, Span(f"{found.worker} waits for review", TEXT))

    def do_merge(self) -> None:
        """Review the composite as any other change: by its diff."""
        self.session.worker = self.composite
        self.screen.go("diff")

    def do_land(self) -> None:
        """Land the composite where there is one, else the candidate under the cursor."""
        self.session.worker = self.composite or self.session.worker
        self.screen.does(Landing).do_land()

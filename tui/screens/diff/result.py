"""Land the resolved result that the diff shows, exactly as it shows it."""

from functools import partial

from engine.messages.commands import FinishResolving
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import Landing
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.screens.diff.reading import Reading
from tui.words.outcomes import landing_of, made_again


class Result(Controller):
    """Land the resolved result that is on screen."""

    def why_not(self, idea: str) -> str:
        worker, diff = self.session.worker_view, self.screen.does(Reading).pane.diff
        if idea != "land" or worker is None or worker.phase is not Phase.CONFLICTED:
            return ""
        if diff is not None and diff.result:
            return ""
        if diff is not None and self.screen.does(Reading).against == "target":
            return f"conflicts are still open; {self.screen.key_of('merge')} resolves them"
        return f"look at the result first: {self.screen.key_of('diff')} shows what would land"

    def do_land(self) -> None:
        """Land it; of a resolved conflict exactly the tree that is on screen."""
        worker, diff = self.here(), self.screen.does(Reading).pane.diff
        if worker.phase is not Phase.CONFLICTED or diff is None:
            self.screen.does(Landing).do_land()
            return
        finish = partial(self._begin, worker, diff.result)
        check = worker.check
        if check is None or check.passed or check.tree != diff.result:
            finish(is_despite_check=False)
            return
        title = "the check failed on this result: type land"
        note = "to land it despite that; the commit will say so"
        by_word = partial(self._by_word, worker, diff.result)
        self.screen.write(Writing(title, note, by_word, key=f"land {worker.worker}"))

    def _by_word(self, worker: WorkerView, tree: str, text: str) -> None:
        if text.strip().casefold() != "land":
            self.refuse("land", "you did not type `land`")
            return
        self._begin(worker, tree, is_despite_check=True)

    def _begin(self, worker: WorkerView, tree: str, *, is_despite_check: bool) -> None:
        action = FinishResolving(is_despite_check=is_despite_check, seen=tree)
        self.screen.begin(partial(self._finish, self.run_id, worker.worker, action), holds=True)

    async def _finish(self, run: str, worker: str, action: FinishResolving) -> None:
        before = await self.session.bridge.conflicts(run, worker)
        found = await self.session.bridge.resolve(run, worker, action)
        self.session.look()
        if isinstance(found, str) or isinstance(before, str):
            self.refuse("land", found if isinstance(found, str) else str(before))
        elif not found.is_finished:
            again = made_again(before, found, self.screen.key_of("land"))
            self.screen.say(Span("✗ ", Ink(Role.FAILED, bold=True)), Span(again, TEXT))
        else:
            self.screen.say(
                Span("… ", Ink(Role.RUNNING)), Span("landing exactly this result", TEXT)
            )
            self.screen.pursue(landing_of(run, worker))

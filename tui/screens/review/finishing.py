"""Go on with a result: land it, check it, or give it up."""

from functools import partial

from engine.messages.commands import FinishResolving
from tui.controllers import Deciding
from tui.ink import BOLD, TEXT, Span, words
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane


class Finishing(Controller):
    """End a review."""

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    def do_land(self) -> None:
        """Land the result; a check that was not run on it is run by the landing itself."""
        view = self.pane.shown
        if view is None:
            return
        is_red = view.check is not None and not view.check.passed
        if view.is_of_base or view.doing or not is_red:
            self._finish()
            return
        title = "the check failed on this result: type land"
        note = "to land it despite that; the commit will say so"
        by_word = partial(self._finish_by_word, view.tree)
        self.screen.write(Writing(title, note, by_word, key=f"land {view.worker}"))

    def _finish_by_word(self, tree: str | None, text: str) -> None:
        if text.strip().casefold() != "land":
            self.refuse("land", "you did not type `land`")
            return
        self._finish(tree, is_despite_check=True)

    def _finish(self, tree: str | None = None, *, is_despite_check: bool = False) -> None:
        """Go on with exactly the tree that was on screen."""
        view = self.pane.shown
        is_of_base = view is not None and view.is_of_base
        said = "the worker continues from it" if is_of_base else "landing exactly this result"
        seen = tree or (view.tree if view is not None and not view.doing else None)
        self.screen.does(Conflicts).decide(
            (FinishResolving(is_despite_check=is_despite_check, seen=seen),), said
        )

    def do_yes(self) -> None:
        self._finish()

    def do_check(self) -> None:
        self.screen.say("running the check on exactly this result")
        self.screen.begin(self.screen.does(Conflicts).check, group="check", exclusive=True)

    def do_no_wide(self) -> None:
        worker = self.here()
        said = words(
            Span("Reject the change of ", TEXT),
            Span(worker.worker, BOLD),
            Span("? It stays on its ref.", TEXT),
        )
        self.screen.does(Deciding).ask_to_reject("no_wide", worker, said)

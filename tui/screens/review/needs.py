"""Know what every key of Review needs, and say why it does nothing now."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.messages.commands import Regenerate
from engine.phases import Phase
from tui.kit.screen import Controller
from tui.screens.review.blocked import Blocked
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import PLACES, SIDES, Offer
from tui.screens.review.page import step_command
from tui.words.figures import some


class Needs(Controller):
    """Say of each idea of this screen why it cannot be done now."""

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    def why_not(self, idea: str) -> str:
        need = NEEDS[idea]
        is_watched = self.session.is_read_only or self.session.view.is_read_only
        if need.is_change and is_watched:
            return "this console only watches"
        if self.screen.does(Blocked).way_of(idea):
            return ""
        if need.of_conflict and self.pane.matter is None:
            return need.without
        return need.rule(self, idea)

    def take(self, idea: str) -> str:
        """Return why a side's key takes nothing here."""
        if self.pane.merged is not None:
            edit, onward = self.screen.key_of("edit_all"), self.screen.key_of("next")
            return f"git merged this file; {edit} edits it, {onward} goes to the next conflict"
        offer = self.pane.offer_of(idea)
        return offer.reason if offer else "this conflict does not have that choice"

    def mark(self, _: str) -> str:
        """Return why nothing can be taken from under the cursor."""
        if self.pane.picking:
            return ""
        if self.pane.merged is not None:
            return self.take("")
        offer = self.pane.offer
        if offer:
            return self._with_next(offer)
        if not any(self.pane.offer_of(idea) for idea in PLACES):
            return "No proposal. Take a side."
        first, last = self.screen.key_of(PLACES[0]), self.screen.key_of(PLACES[-1])
        return f"No confident proposal. Pick one with {first} to {last}, or take a side."

    def regenerate(self, idea: str) -> str:
        """Return why a file cannot be made anew."""
        offer = self.pane.offer_of(idea)
        if offer:
            return self._with_next(offer)
        return "no command regenerates this file; review.regenerate in the manifest names one"

    def _with_next(self, offer: Offer) -> str:
        """Return why an offer cannot be taken; with the key that leads to what comes first."""
        onward = isinstance(offer.action, Regenerate) and self.screen.key_of("next")
        return offer.reason and f"{offer.reason}{f'; {onward} goes there' if onward else ''}"

    def approve(self, idea: str) -> str:
        """Return why it is not approved: that is landing here, or letting the worker go on."""
        view = self.pane.shown
        if view is None or not view.is_of_base:
            return f"{self.screen.key_of('land')} lands the result, which also approves it"
        return self.land(idea)

    def land(self, _: str) -> str:
        """Return why it cannot go on yet."""
        view = self.pane.shown
        if view is None or view.is_resolved:
            return view.problem if view else "there is no conflict"
        still = some(self.pane.open_count, "conflict")
        return f"{still} still open; {self.screen.key_of('next')} goes there"

    def check(self, idea: str) -> str:
        """Return why the result cannot be checked yet."""
        has_check = step_command(self.session.step_view)
        return self.land(idea) if has_check else "this step has no check"

    def edit_all(self, _: str) -> str:
        """Return why the file cannot be edited."""
        merged = self.pane.merged
        return "the merge deletes it" if merged and merged.kind == "D" else ""

    def hunk(self, _: str) -> str:
        """Return why nothing can be done to the lines of this conflict."""
        return "" if self.pane.hunk else "this conflict has no hunks: choose a whole version"

    def sides(self, idea: str) -> str:
        """Return why the sides cannot be held against each other; once all is decided, none is."""
        view = self.pane.shown
        return "" if view and view.is_resolved and not view.doing else self.hunk(idea)

    def ask(self, idea: str) -> str:
        """Return why no agent can be asked about it."""
        view, hunk = self.pane.shown, self.pane.hunk
        if view is not None and view.doing and view.assist is None:
            return "the manifest names no agent: `review: {assist: {agent: NAME}}` names one"
        asked = hunk.asked if hunk else ""
        return f"{asked} has been asked already" if asked else self.hunk(idea)

    def comment(self, _: str) -> str:
        """Return why a conflict has no comments, and the key to use instead."""
        key = self.screen.key_of("retry_with")
        return f"a conflict cannot have comments; {key} retries the worker with your feedback"

    def forget(self, _: str) -> str:
        """Return why no remembered answer can be forgotten."""
        offer = self.pane.offer
        return (
            "" if offer and offer.remembered else "there is no remembered answer under the cursor"
        )

    def order(self, _: str) -> str:
        """Return why the files have no risk."""
        view = self.pane.shown
        return "your own merge belongs to no worker" if view and view.doing else ""

    def undo(self, _: str) -> str:
        """Return why nothing can be taken back."""
        view = self.pane.shown
        has_any = self.pane.picked or (view and view.can_undo)
        return "" if has_any else "you have resolved nothing yet"

    def redo(self, _: str) -> str:
        """Return why nothing can be decided again."""
        view = self.pane.shown
        return "" if view and view.can_redo else "there is nothing to redo"

    def give_up(self, _: str) -> str:
        """Return why the change cannot be given up."""
        worker, view = self.session.worker_view, self.pane.shown
        if view is not None and view.doing:
            return "plait cannot abort your own merge; use git, such as `git merge --abort`"
        return "" if worker and worker.phase is Phase.CONFLICTED else "it no longer has conflicts"


Rule = Callable[[Needs, str], str]


def _because(reason: str) -> Rule:
    """Return the rule that always has the same reason, or none."""
    return lambda _needs, _idea: reason


class _Need(NamedTuple):
    """Yield what an idea needs, in the order in which it is asked for."""

    rule: Rule = _because("")
    is_change: bool = False
    """It is refused where the console only watches."""
    of_conflict: bool = True
    """It is about a conflict that is on screen."""
    without: str = "there is no conflict"
    """The reason where there is none; empty where it does something else then."""


TAKING = frozenset((*(idea for idea, _ in SIDES), *PLACES, "regenerate"))
"""The ideas that take something that is offered: a side, a proposal by its place, a file anew."""
NEEDS: Mapping[str, _Need] = {
    **dict.fromkeys(TAKING, _Need(Needs.take, is_change=True)),
    "regenerate": _Need(Needs.regenerate, is_change=True),
    "mark": _Need(Needs.mark, is_change=True),
    "merge_all": _Need(is_change=True),
    "edit": _Need(Needs.hunk, is_change=True),
    "edit_all": _Need(Needs.edit_all, is_change=True),
    "select": _Need(Needs.hunk, is_change=True),
    "steer": _Need(Needs.ask, is_change=True),
    "undo": _Need(Needs.undo, is_change=True, without=""),
    "redo": _Need(Needs.redo, is_change=True, without=""),
    "forget": _Need(Needs.forget, is_change=True),
    "show_order": _Need(Needs.order),
    "pause": _Need(_because("none of your edits blocks it"), is_change=True, of_conflict=False),
    "diff": _Need(Needs.sides),
    "check": _Need(Needs.check),
    "land": _Need(Needs.land),
    "yes": _Need(Needs.approve, of_conflict=False),
    "no_wide": _Need(Needs.give_up),
    **dict.fromkeys(("open", "next", "previous", "left", "right", "copy", "copy_name"), _Need()),
    "comment": _Need(Needs.comment, of_conflict=False),
}
"""The needs of each idea. An idea that is not here needs what it needs on any screen."""

"""Review: the conflicts of a worker, decided one after another; every decision is kept at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.messages.commands import FinishResolving
from engine.phases import Phase
from tui.controllers import Deciding
from tui.ink import BOLD, LINE, TEXT, Page, Row, Span, Zone, blank, fit, words
from tui.kit.textbox import Writing
from tui.screens.review.blocked import ReviewBlocked
from tui.screens.review.blocked_page import blocked_page, blocked_sentence, blocked_subject
from tui.screens.review.card import Look, card
from tui.screens.review.columns import COLUMNS_FROM, columns, fits
from tui.screens.review.left import LEFT, Beside, left_pane
from tui.screens.review.moves import keys_of
from tui.screens.review.page import (
    no_conflicts,
    onward,
    review_subject,
    sentence,
    step_command,
    whole_page,
)
from tui.screens.review.pieces import merged_page
from tui.screens.review.rows import edge_map
from tui.words.scene import Scene
from tui.words.sentences import nothing_here

_LEFT_FROM = 100
_TAKING = frozenset(
    {
        *("take_target", "take_incoming", "take_both", "take_both_reversed", "take_base"),
        *("merge", "no"),
    }
)
_NEEDS_CONFLICT = _TAKING | {
    *("mark", "open", "next", "previous", "left", "right", "merge_all", "edit", "edit_all"),
    *("select", "copy", "copy_name", "check", "land", "undo", "redo", "forget", "no_wide", "diff"),
    "steer",
}
_CHANGES = _TAKING | {
    *("mark", "merge_all", "edit", "edit_all", "select", "undo", "redo", "forget", "steer"),
    "pause",
}
_NO_COMMENTS = "a conflict takes no comments; R sends the worker back with your words"
_NEVER = {
    "comment": _NO_COMMENTS,
    "send": _NO_COMMENTS,
    "show_space": "blanks always count in a merge",
}


class ReviewScreen(ReviewBlocked):
    """A worker's conflicts, as a card or in three columns."""

    kind = "review"

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, run = self.session.worker_view, self.session.run
        if worker and run and self.is_blocked:
            return blocked_subject(worker, run.target or "", cells)
        return review_subject(self.pane, cells) or super().subject(scene, cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        self.load_if_moved()
        run, step = scene.run, self.session.step_view
        if self.pane.shown is None or run is None:
            worker = self.session.worker_view
            if worker and self.is_blocked:
                return Page(tuple(blocked_page(worker, keys_of(self), cells)))
            waits = (
                no_conflicts(worker, run.target if run else None)
                if worker
                else "there is no worker yet"
            )
            said = self.reason or ("asking for the conflicts" if self.is_loading else waits)
            return Page(tuple(nothing_here(said, scene)))
        self.pane.prompts = {w.worker: w.prompt.partition("\n")[0] for w in run.workers}
        has_left = cells >= _LEFT_FROM and not self.is_zoomed
        width = cells - (LEFT + 5 if has_left else 2) - 2
        rows = self._rows(scene, width, height)
        edge = edge_map(self.pane, height)
        body = [
            (*fit(rows[y] if y < len(rows) else (), width), blank(1), edge[y], blank(1))
            for y in range(height)
        ]
        if not has_left:
            return Page(tuple((blank(1), *row) for row in body))
        listed, places = left_pane(
            self.pane, Beside(run, step_command(step), self.queue, scene.now)
        )
        at = places[self.pane.matter.file] if self.pane.matter and places else 0
        top = max(at + 3 - height, 0)
        bar = (blank(1), Span("│", LINE), blank(1))
        drawn = [
            (blank(1), *fit(listed[top + y] if top + y < len(listed) else (), LEFT), *bar, *row)
            for y, row in enumerate(body)
        ]
        zones = [Zone(0, y - top, LEFT, 1, f"file:{n}") for n, y in enumerate(places) if y >= top]
        return Page(tuple(drawn), tuple(zones))

    def _rows(self, scene: Scene, width: int, height: int) -> list[Row]:
        if self.pane.merged is not None:
            self.want_file()
            rows = merged_page(self.pane, width, context=self.context)
            self.merged_top = max(min(self.merged_top, len(rows) - height), 0)
            return rows[self.merged_top : self.merged_top + height]
        if self.top is not None and scene.run is not None:
            self.want_file()
            rows = whole_page(self.pane, scene.run, width, now=scene.now, context=self.context)
            self.top = max(min(self.top, len(rows) - height), 0)
            return rows[self.top : self.top + height]
        look = Look(keys_of(self), self.context, self.scroll, self.is_side_to_side)
        is_wide = self.mode == "columns" or (
            self.mode == "auto" and self.app.size.width >= COLUMNS_FROM
        )
        draw = columns if is_wide and fits(self.pane, width, height) else card
        return draw(self.pane, look, width, height)

    def sentence(self, scene: Scene) -> Row:
        worker = self.session.worker_view
        if worker and self.is_blocked:
            return blocked_sentence(worker)
        del scene
        return sentence(self.pane, keys_of(self))

    def hints(self) -> Sequence[str]:
        if self.is_blocked:
            return ("take_both", "take_target", "pause", "take_incoming", "go_diff", "go_fleet")
        if self.pane.shown is None:
            return ("go_fleet", "diff")
        if self.pane.picking:
            return ("down", "mark", "select")
        if self.pane.merged is not None:
            return ("down", "unit_down", "next", "edit_all", "more", "land", "check")
        if self.pane.shown.is_resolved:
            return ("land", "check", "undo", "down", "open", "edit_all", "no_wide", "back")
        ideas = [idea for idea in _ORDER if idea not in _TAKING or self.pane.offer_of(idea)]
        return ("down", *ideas, "back")

    def why_not(self, idea: str) -> str:
        if idea in _NEVER:
            return _NEVER[idea]
        if idea in _CHANGES and (self.session.is_read_only or self.session.view.is_read_only):
            return "this console only watches"
        if self.way_of(idea):
            return ""
        if idea == "pause":
            return "no edits of yours keep it from landing"
        if self.pane.matter is None and idea in _NEEDS_CONFLICT:
            return "" if idea in {"undo", "redo"} else "there is no conflict"
        if idea in _TAKING:
            return self.why_not_take(idea)
        if idea in _RULES:
            return _RULES[idea](self)
        return "" if idea in _NEEDS_CONFLICT else super().why_not(idea)

    def why_not_take(self, idea: str) -> str:
        """Why a side's key takes nothing here."""
        if self.pane.merged is not None:
            return (
                f"git merged it; {self.key_of('edit_all')} edits it, {self.key_of('next')} goes on"
            )
        offer = self.pane.offer_of(idea)
        return offer.reason if offer else "this conflict offers no such choice"

    def why_not_mark(self) -> str:
        """Why nothing can be taken from under the cursor."""
        if self.pane.picking:
            return ""
        if self.pane.merged is not None:
            return self.why_not_take("")
        offer = self.pane.offer
        if offer is None:
            return "no proposal is sure; j k choose one, or a side's key"
        return offer.reason

    def why_not_yes(self) -> str:
        """Approving is landing here, or letting the worker go on."""
        view = self.pane.shown
        if view is None or not view.is_of_base:
            return f"{self.key_of('land')} lands the result; that approves it"
        return self.why_not_land()

    def why_not_land(self) -> str:
        """Why it cannot go on yet."""
        view = self.pane.shown
        if view is None or view.is_resolved:
            return view.problem if view else "there is no conflict"
        return f"{self.pane.open_count} still open"

    def label_of(self, idea: str) -> str:
        """`no` gives up nothing here: it takes neither side, or deletes."""
        action, way = self.action(idea), self.way_of(idea)
        if way:
            return way.label
        if self.pane.shown and self.pane.shown.doing and idea == "land":
            return "write it"
        if idea == "back":
            return "leave" if self.session.is_alone else ""
        return action.label if action else ""

    def pointed(self, target: str, times: int) -> None:
        del times
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_path(int(rest))

    # Going on.

    def do_land(self) -> None:
        """Land the result; a check that was not run on it is run by the landing itself."""
        view = self.pane.shown
        if view is None:
            return
        is_red = view.check is not None and not view.check.passed
        if view.is_of_base or view.doing or not is_red:
            self.finish()
            return
        title = "the check failed on this result: type land"
        note = "to land it despite that; the commit will say so"
        by_word = partial(self._finish_by_word, view.tree)
        self.write(Writing(title, note, by_word, key=f"land {view.worker}"))

    def _finish_by_word(self, tree: str | None, text: str) -> None:
        if text.strip().casefold() != "land":
            self.say_refused(self.key_of("land"), "the word was not typed")
            return
        self.finish(tree, is_despite_check=True)

    def finish(self, tree: str | None = None, *, is_despite_check: bool = False) -> None:
        """Go on with exactly the tree that was on screen."""
        view = self.pane.shown
        is_of_base = view is not None and view.is_of_base
        said = "the worker goes on from it" if is_of_base else "landing exactly this"
        seen = tree or (view.tree if view is not None and not view.doing else None)
        self.decide((FinishResolving(is_despite_check=is_despite_check, seen=seen),), said)

    def do_yes(self) -> None:
        self.finish()

    def do_check(self) -> None:
        self.say("the check runs on exactly this result")
        self.begin(self.check, group="check", exclusive=True)

    def do_no_wide(self) -> None:
        worker = self.here()
        said = words(
            Span("Give up the change of ", TEXT),
            Span(worker.worker, BOLD),
            Span("? It stays on its ref.", TEXT),
        )
        self.does(Deciding).ask_to_reject("no_wide", worker, said)

    def onward(self) -> Row:
        return onward(self.pane.shown, keys_of(self)) if self.pane.shown else ()

    def do_back(self) -> None:
        self.top = None
        self.hand_on("back")


def _why_not_edit_all(screen: ReviewScreen) -> str:
    merged = screen.pane.merged
    return "the merge deletes it" if merged and merged.kind == "D" else ""


def _why_not_edit(screen: ReviewScreen) -> str:
    return "" if screen.pane.hunk else "this conflict is decided as a whole"


def _why_not_ask(screen: ReviewScreen) -> str:
    view, hunk = screen.pane.shown, screen.pane.hunk
    if view is not None and view.doing:
        return "no agent is at hand in a merge of your own"
    if hunk is None:
        return "this conflict is decided as a whole"
    return f"{hunk.asked} is being asked about it already" if hunk.asked else ""


def _why_not_forget(screen: ReviewScreen) -> str:
    offer = screen.pane.offer
    return "" if offer and offer.remembered else "no remembered answer is under the cursor"


def _why_not_undo(screen: ReviewScreen) -> str:
    view = screen.pane.shown
    return "" if view and view.can_undo else "nothing was decided yet"


def _why_not_redo(screen: ReviewScreen) -> str:
    view = screen.pane.shown
    return "" if view and view.can_redo else "nothing was taken back"


def _why_not_give_up(screen: ReviewScreen) -> str:
    worker, view = screen.session.worker_view, screen.pane.shown
    if view is not None and view.doing:
        return "git's own abort gives up a merge of yours"
    return "" if worker and worker.phase is Phase.CONFLICTED else "it has no conflict any more"


def _why_not_check(screen: ReviewScreen) -> str:
    if not step_command(screen.session.step_view):
        return "this step has no check"
    return screen.why_not_land()


_RULES: Mapping[str, Callable[[ReviewScreen], str]] = {
    "mark": ReviewScreen.why_not_mark,
    "yes": ReviewScreen.why_not_yes,
    "land": ReviewScreen.why_not_land,
    "edit": _why_not_edit,
    "edit_all": _why_not_edit_all,
    "select": _why_not_edit,
    "steer": _why_not_ask,
    "diff": _why_not_edit,
    "forget": _why_not_forget,
    "undo": _why_not_undo,
    "redo": _why_not_redo,
    "no_wide": _why_not_give_up,
    "check": _why_not_check,
}
_ORDER = (
    *("mark", "take_target", "take_incoming", "take_both", "no", "merge", "next", "edit"),
    *("select", "undo", "merge_all", "open", "land", "check", "take_base", "steer"),
)

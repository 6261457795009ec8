"""Review: the conflicts of a worker, decided one after another; every decision is kept at once."""

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult

from tui.controllers import ON_WORKERS, CheckOutput
from tui.ink import Row, Span, blank
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session
from tui.screens.review.blocked import Blocked
from tui.screens.review.blocked_page import blocked_page, blocked_sentence, blocked_subject
from tui.screens.review.card import Look, card
from tui.screens.review.columns import COLUMNS_FROM, columns, fits
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.finishing import Finishing
from tui.screens.review.left import Beside, left_pane
from tui.screens.review.moves import Moving
from tui.screens.review.needs import NEEDS, TAKING, Needs
from tui.screens.review.page import (
    keys_of,
    no_conflicts,
    review_subject,
    sentence,
    step_command,
    whole_page,
)
from tui.screens.review.pieces import merged_page
from tui.screens.review.rows import edge_map
from tui.screens.review.taking import Taking
from tui.screens.review.texts import OwnTexts
from tui.words.scene import Scene
from tui.words.sentences import nothing_here

_ORDER = (
    *(
        "mark",
        "regenerate",
        "take_first",
        "take_target",
        "take_incoming",
        "take_both",
        "no",
        "merge",
        "next",
    ),
    *("edit", "select", "undo", "merge_all", "open", "land", "check", "take_base", "steer"),
)


class ReviewScreen(Board):
    """A worker's conflicts, as a card or in three columns."""

    CSS_PATH = Path(__file__).with_name("review.tcss")
    held = (Moving, Blocked, Taking, OwnTexts, Finishing, Conflicts, CheckOutput, *ON_WORKERS)
    kind = "review"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.moving, self.blocked = self.does(Moving), self.does(Blocked)
        self.conflicts = self.does(Conflicts)
        self.pane = self.conflicts.pane
        self.needs = Needs(self)

    def on_screen_resume(self) -> None:
        self.conflicts.arrive()

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, run = self.session.worker_view, self.session.run
        if worker and run and self.blocked.is_blocked:
            return blocked_subject(worker, run.target or "", cells)
        return review_subject(self.pane, cells) or super().subject(scene, cells)

    def compose_panes(self) -> ComposeResult:
        with Panes(id="review"):
            yield self.widths.beside(Rows(id="left"), 1)
            yield Rows(id="conflict", edge=self._map_of_conflicts, is_map_of_rows=False)

    def draw_panes(self, scene: Scene) -> None:
        self.conflicts.load_if_moved()
        run, matter, view = scene.run, self.pane.matter, self.query_one("#conflict", Rows)
        self.set_class(self.pane.shown is None, "-bare")
        self.set_class(self.moving.is_zoomed, "-zoomed")
        if not view.cells:
            return
        if self.pane.shown is None or run is None:
            view.show(self._instead(scene, view.cells), of="")
            return
        self.pane.prompts = {w.worker: w.prompt.partition("\n")[0] for w in run.workers}
        of = (matter, self.moving.is_whole, self.pane.shown.worker)
        view.show(self._rows(scene, view.cells - 1, view.size.height), of=of)
        left = self.query_one("#left", Rows)
        if left.size:
            check = step_command(self.session.step_view)
            known = Beside(run, check, self.conflicts.queue, scene.now, left.cells)
            rows, places = left_pane(self.pane, known)
            at = places[matter.file] if matter and places else 0
            left.show(rows, range(at, at + 3))

    def _map_of_conflicts(self, height: int) -> Sequence[Span]:
        """Return where each conflict stands in the whole; of a page, what is on screen."""
        view = self.query_one("#conflict", Rows)
        if view.count > view.size.height:
            return view.edge_of_rows(height)
        return edge_map(self.pane, height) if self.pane.shown else [blank(1)] * height

    def _instead(self, scene: Scene, cells: int) -> Sequence[Row]:
        """Return what is said where no conflict is to be decided."""
        worker = self.session.worker_view
        if worker and self.blocked.is_blocked:
            return blocked_page(worker, keys_of(self.session.keymap), cells)
        target = scene.run.target if scene.run else None
        waits = no_conflicts(worker, target) if worker else "there is no worker yet"
        asking = "loading the conflicts" if self.conflicts.is_loading else waits
        return nothing_here(self.conflicts.reason or asking, scene)

    def _rows(self, scene: Scene, width: int, height: int) -> list[Row]:
        moving = self.moving
        if moving.is_page and scene.run is not None:
            self.conflicts.want_file()
            if self.pane.merged is not None:
                return merged_page(self.pane, width, context=moving.context)
            return whole_page(self.pane, scene.run, width, now=scene.now, context=moving.context)
        keys = keys_of(self.session.keymap)
        widths = self.session.widths
        look = Look(keys, moving.context, moving.scroll, moving.is_side_to_side, widths)
        is_roomy = moving.mode == "auto" and self.size.width >= COLUMNS_FROM
        is_wide = moving.mode == "columns" or is_roomy
        draw = columns if is_wide and fits(self.pane, width, height) else card
        return draw(self.pane, look, width, height)

    def sentence(self, scene: Scene) -> Row:
        worker = self.session.worker_view
        if worker and self.blocked.is_blocked:
            return blocked_sentence(worker)
        del scene
        return sentence(self.pane, keys_of(self.session.keymap))

    def hints(self) -> Sequence[str]:
        if self.blocked.is_blocked:
            return ("take_both", "take_target", "pause", "take_incoming", "go_diff", "go_fleet")
        if self.pane.shown is None:
            return ("go_fleet", "diff")
        if self.pane.picking:
            return ("down", "mark", "select")
        if self.pane.merged is not None:
            anew = ("regenerate",) if self.pane.offer_of("regenerate") else ()
            return ("down", "unit_down", "next", *anew, "edit_all", "more", "land", "check")
        if self.pane.shown.is_resolved:
            return (
                "diff",
                "land",
                "check",
                "show_check",
                "undo",
                "down",
                "open",
                "edit_all",
                "no_wide",
                "back",
            )
        ideas = [idea for idea in _ORDER if idea not in TAKING or self.pane.offer_of(idea)]
        return ("down", *ideas, "back")

    def why_not(self, idea: str) -> str:
        return self.needs.why_not(idea) if idea in NEEDS else super().why_not(idea)

    def label_of(self, idea: str) -> str:
        """`no` gives up nothing here: it takes neither side, or deletes."""
        action, way = self.action(idea), self.blocked.way_of(idea)
        if way:
            return way.label
        if self.pane.shown and self.pane.shown.doing and idea == "land":
            return "write it"
        if idea == "diff" and self.pane.shows_result:
            return "result"
        if idea == "back":
            return "leave" if self.session.is_alone else ""
        return action.label if action else ""

    def pointed(self, target: str, times: int) -> None:
        """Go to what was clicked. Two clicks take a proposal, one on a key does what it does.

        The second half of a double click does nothing more: it would decide the next conflict.
        """
        kind, _, rest = target.partition(":")
        pane = self.pane
        goes = {"file": pane.to_path, "matter": pane.to, "conflict": pane.to_hunk}
        if go := {**goes, "line": pane.pick}.get(kind):
            go(int(rest))
        elif kind == "key":
            if times == 1:
                self.action_idea(rest)
        elif pane.picking:
            ends = f"{self.key_of('leave')} ends it"
            self.say_refused("the proposal", "you are marking lines", ends)
        else:
            pane.cursor = int(rest)
            if times > 1:
                self.perform("mark")

"""Review: the conflicts of a worker, decided one after another; every decision is kept at once."""

from collections.abc import Sequence

from tui.controllers import ON_WORKERS
from tui.ink import LINE, Page, Row, Span, Zone, blank, fit
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.screens.review.blocked import Blocked
from tui.screens.review.blocked_page import blocked_page, blocked_sentence, blocked_subject
from tui.screens.review.card import Look, card
from tui.screens.review.columns import COLUMNS_FROM, columns, fits
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.finishing import Finishing
from tui.screens.review.left import LEFT, Beside, left_pane
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

_LEFT_FROM = 100
_ORDER = (
    *("mark", "take_target", "take_incoming", "take_both", "no", "merge", "next", "edit"),
    *("select", "undo", "merge_all", "open", "land", "check", "take_base", "steer"),
)


class ReviewScreen(Board):
    """A worker's conflicts, as a card or in three columns."""

    held = (Moving, Blocked, Taking, OwnTexts, Finishing, Conflicts, *ON_WORKERS)
    kind = "review"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.moving, self.blocked = self.does(Moving), self.does(Blocked)
        self.conflicts = self.does(Conflicts)
        self.pane = self.conflicts.pane
        self.needs = Needs(self)

    def on_screen_resume(self) -> None:
        self.conflicts.arrive()
        super().on_screen_resume()

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, run = self.session.worker_view, self.session.run
        if worker and run and self.blocked.is_blocked:
            return blocked_subject(worker, run.target or "", cells)
        return review_subject(self.pane, cells) or super().subject(scene, cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        self.conflicts.load_if_moved()
        run, step = scene.run, self.session.step_view
        if self.pane.shown is None or run is None:
            worker = self.session.worker_view
            if worker and self.blocked.is_blocked:
                return Page(tuple(blocked_page(worker, keys_of(self.session.keymap), cells)))
            waits = (
                no_conflicts(worker, run.target if run else None)
                if worker
                else "there is no worker yet"
            )
            said = self.conflicts.reason or (
                "asking for the conflicts" if self.conflicts.is_loading else waits
            )
            return Page(tuple(nothing_here(said, scene)))
        self.pane.prompts = {w.worker: w.prompt.partition("\n")[0] for w in run.workers}
        has_left = cells >= _LEFT_FROM and not self.moving.is_zoomed
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
            self.pane, Beside(run, step_command(step), self.conflicts.queue, scene.now)
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
            self.conflicts.want_file()
            rows = merged_page(self.pane, width, context=self.moving.context)
            self.moving.merged_top = max(min(self.moving.merged_top, len(rows) - height), 0)
            return rows[self.moving.merged_top : self.moving.merged_top + height]
        if self.moving.top is not None and scene.run is not None:
            self.conflicts.want_file()
            rows = whole_page(
                self.pane, scene.run, width, now=scene.now, context=self.moving.context
            )
            self.moving.top = max(min(self.moving.top, len(rows) - height), 0)
            return rows[self.moving.top : self.moving.top + height]
        look = Look(
            keys_of(self.session.keymap),
            self.moving.context,
            self.moving.scroll,
            self.moving.is_side_to_side,
        )
        is_wide = self.moving.mode == "columns" or (
            self.moving.mode == "auto" and self.app.size.width >= COLUMNS_FROM
        )
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
            return ("down", "unit_down", "next", "edit_all", "more", "land", "check")
        if self.pane.shown.is_resolved:
            return ("land", "check", "undo", "down", "open", "edit_all", "no_wide", "back")
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
        if idea == "back":
            return "leave" if self.session.is_alone else ""
        return action.label if action else ""

    def pointed(self, target: str, times: int) -> None:
        del times
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_path(int(rest))

"""Fleet: all workers of a run, those that need a human first."""

from collections.abc import Sequence

from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS
from tui.ink import TEXT, Page, Row, Span, words
from tui.kit.cards import HEIGHT, question_fits
from tui.kit.opening import REACHING
from tui.kit.rail import CELLS as RAIL_CELLS
from tui.kit.rail import rail
from tui.kit.screen import Board
from tui.kit.session import Session, Undoable
from tui.screens.fleet.page import (
    RAIL_FROM,
    FleetPage,
    Form,
    Wish,
    draw_fleet,
    form_of,
    move,
    visible,
)
from tui.screens.fleet.welcome import welcome
from tui.screens.worker.page import panes
from tui.words.scene import Scene
from tui.words.sentences import sentence_of
from tui.words.standing import Band, band_of, bands_of, in_order, step_of

_MOST_DETAIL = 2
_LEAST_DETAIL = -4


class FleetScreen(Board):
    """The screen that everything begins and ends with."""

    held = ON_WORKERS
    kind = "fleet"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.page: FleetPage | None = None
        self.top = 0
        self.detail = 0
        self.is_plan_order = False
        self.is_zoomed = False

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        here = self.session.worker_view.worker if self.session.worker_view else ""
        if scene.run is None or not scene.run.workers:
            self.page = None
            is_empty = self.session.bridge.view is not None
            return Page(tuple(welcome(scene, cells, height)) if is_empty else ())
        has_rail = cells >= RAIL_FROM and not self.is_zoomed
        width = cells - RAIL_CELLS - 4 if has_rail else cells
        self.page = draw_fleet(
            scene,
            (width, height),
            here,
            Wish(
                detail=self.detail,
                is_plan_order=self.is_plan_order,
                held=self.page.held if self.page and self.is_fingered else None,
            ),
        )
        self.top, page = visible(self.page, here, self.top, (width, height))
        if not has_rail:
            return page
        rows = panes(page.rows, rail(scene, height), cells, height, side_cells=RAIL_CELLS)
        return Page(tuple(rows), page.zones)

    def sentence(self, scene: Scene) -> Row:
        if self.session.bridge.view is None:
            return words(REACHING)
        if not scene.view.runs:
            return words(
                "Nothing has been written to ", Span(scene.view.repository, TEXT), " so far."
            )
        worker, step = self.session.worker_view, self.session.step_view
        return sentence_of(worker, step, scene.now) if worker and step else ()

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        if self.page and self.page.form is Form.EMERGENCY:
            return ("yes", "no", "open", "down")
        if here and here.questions:
            return ("down", "open", "yes", "yes_wide", "no", "steer", "pause", "mark", "pick")
        if here and here.phase is Phase.REVIEWING:
            return ("down", "open", "diff", "yes", "land", "retry_with", "no", "mark", "pick")
        return ("down", "open", "diff", "no", "retry", "steer", "pause", "mark", "less", "palette")

    def shows_whole_question(self, worker: WorkerView) -> bool:
        page = self.page
        place = (page.close_up or page.place(worker.worker)) if page else None
        if place is None or place.worker != worker.worker or place.height < HEIGHT:
            return False
        return question_fits(worker, place.width - 4, place.height - 6)

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "worker":
            self.point_at(name)
            if times > 1:
                self.do_open()

    # Moving.

    def _move(self, direction: str) -> None:
        here = self.session.worker_view.worker if self.session.worker_view else ""
        if self.page is None:
            return
        there = move(self.page.places, here, direction)
        if there == here and direction == "down":
            there = next(iter(self._folded()), there)
        self.point_at(there)

    def _folded(self) -> list[str]:
        """The workers that stand behind `► 12 more`: going down opens them."""
        run, shown = self.session.run, set(self._places())
        return [w.worker for w in in_order(run) if w.worker not in shown] if run else []

    def do_down(self) -> None:
        self._move("down")

    def do_up(self) -> None:
        self._move("up")

    def do_left(self) -> None:
        self._move("left")

    def do_right(self) -> None:
        self._move("right")

    def _places(self) -> list[str]:
        return [place.worker for place in self.page.places] if self.page else []

    def do_first(self) -> None:
        self.point_at(next(iter(self._places()), ""))

    def do_last(self) -> None:
        self.point_at(next(reversed(self._places()), ""))

    def _jump(self, by: int) -> None:
        names, here = self._places(), self.session.worker_view
        if names and here and here.worker in names:
            index = names.index(here.worker) + by
            self.point_at(names[max(min(index, len(names) - 1), 0)])

    def do_half_down(self) -> None:
        self._jump(max(self.size.height // 4, 1))

    def do_half_up(self) -> None:
        self._jump(-max(self.size.height // 4, 1))

    def do_page_down(self) -> None:
        self._jump(max(self.size.height // 2, 1))

    def do_page_up(self) -> None:
        self._jump(-max(self.size.height // 2, 1))

    def do_next(self) -> None:
        self._to_need(1)

    def do_previous(self) -> None:
        self._to_need(-1)

    def _to_need(self, by: int) -> None:
        run, here = self.session.run, self.session.worker_view
        needs = [worker.worker for worker in bands_of(run)[Band.NEEDS_YOU]] if run else []
        if not needs:
            self.say_refused(self.key_of("next"), "no worker needs you")
        elif here and here.worker in needs:
            self.point_at(needs[(needs.index(here.worker) + by) % len(needs)])
        else:
            self.point_at(needs[0 if by > 0 else -1])

    def do_unit_down(self) -> None:
        self._to_step(1)

    def do_unit_up(self) -> None:
        self._to_step(-1)

    def _to_step(self, by: int) -> None:
        """The first worker of the next step that has any."""
        run, here = self.session.run, self.session.worker_view
        if run is None or here is None:
            self._move("down")
            return
        steps = [step for step in run.steps if step.workers]
        index = [step.name for step in steps].index(here.step)
        self.point_at(steps[(index + by) % len(steps)].workers[0].worker)

    # Seeing.

    def do_more(self) -> None:
        self._size_by(1)

    def do_less(self) -> None:
        self._size_by(-1)

    def _size_by(self, by: int) -> None:
        """One size further; where a table stands by itself, tiles of the middle size are passed."""
        run = self.session.run
        table = run is not None and form_of(run, self.size.width, self.size.height, 0) is Form.TABLE
        before = _LEAST_DETAIL if table and not self.detail else self.detail
        self.detail = max(min(before + by, _MOST_DETAIL), _LEAST_DETAIL)
        if table and not self.detail:
            self.detail = by

    def do_zoom(self) -> None:
        self.go("worker")

    def do_open(self) -> None:
        here = self.session.worker_view
        if here is None:
            self._move("down")
            return
        self.go("inbox" if here.questions and not here.phase.is_settled else "worker")

    def do_show_order(self) -> None:
        self.is_plan_order = not self.is_plan_order
        self.say("plan order, in the table" if self.is_plan_order else "who needs you comes first")

    # Marking.

    def do_mark(self) -> None:
        here = self.session.worker_view
        if here is None:
            return
        marks, name = self.session.marks, here.worker
        marks.symmetric_difference_update({name})

        def toggle() -> None:
            marks.symmetric_difference_update({name})

        self.session.remember(Undoable(f"the mark on {name}", toggle, toggle))
        self._move("right")
        if self.session.worker == name:
            self._move("down")

    def do_select(self) -> None:
        """Mark every worker of the band of the one under the cursor."""
        run, here = self.session.run, self.session.worker_view
        if run is None or here is None:
            return
        band = band_of(here, step_of(run, here))
        same = {w.worker for w in in_order(run) if band_of(w, step_of(run, w)) is band}
        before = set(self.session.marks)
        self.session.marks |= same

        def back() -> None:
            self.session.marks = before

        self.session.remember(Undoable("the marks", back, lambda: self.session.marks.update(same)))

    def do_back(self) -> None:
        self.hand_on("quit")

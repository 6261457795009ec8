"""Plan: the shape of the run, and where its time went."""

from collections.abc import Sequence

from engine.messages.results import StepView
from tui.controllers import ON_WORKERS
from tui.ink import TEXT, Page, Row, Span, Zone, fit, slice_row, words
from tui.kit.lists import cursor_row
from tui.kit.meters import heading
from tui.kit.rail import step_note
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.screens.plan.graph import Graph, draw_graph
from tui.screens.plan.timeline import timeline
from tui.screens.runs.page import no_run
from tui.words.looks import glyph, look_of
from tui.words.scene import Scene
from tui.words.standing import Band, band_of

_STEP_ROWS = 4


class PlanScreen(Board):
    """The steps as a graph, where their time went, and the step under the cursor."""

    held = ON_WORKERS
    kind = "plan"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.graph: Graph | None = None
        self.step = ""
        self.left_edge = 0
        self.top = 0

    def _current(self) -> StepView | None:
        run = self.session.run
        if run is None or not run.steps:
            return None
        worker = self.session.worker_view
        wanted = self.step or (worker.step if worker else "")
        return next((step for step in run.steps if step.name == wanted), run.steps[0])

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        here, run = self._current(), scene.run
        if run is None or here is None:
            return Page(((), *no_run("There is no plan yet: no run was started.")))
        self.graph = draw_graph(run, here.name, cells, scene.now)
        below = height - len(self.graph.rows) - _STEP_ROWS - 2
        if self.graph.width > cells + 40 or below < 5:  # noqa: PLR2004 - less shows nothing of the time
            rows = self._as_list(run.steps, here, cells)
            zones: tuple[Zone, ...] = ()
            below = height - len(rows) - _STEP_ROWS - 2
        else:
            rows, zones = self._scrolled(self.graph, here, cells)
        told = _step_rows(here, cells - 2)
        room = max(min(below, len(run.workers) + 3), 0)
        time = timeline(run, scene.now, cells - 2, room) if room > 2 else []  # noqa: PLR2004 - head and scale
        lead = Span(" ")
        body = [*rows, (), *((lead, *row) for row in time), (), *((lead, *row) for row in told)]
        return Page(tuple(body), zones)

    def _scrolled(
        self, graph: Graph, here: StepView, cells: int
    ) -> tuple[list[Row], tuple[Zone, ...]]:
        """The part of a wide graph around the step under the cursor."""
        box = next(box for box in graph.boxes if box.step == here.name)
        if box.x + box.width > self.left_edge + cells or box.x < self.left_edge:
            self.left_edge = max(min(box.x - 2, graph.width - cells), 0)
        self.left_edge = max(min(self.left_edge, graph.width - cells), 0)
        rows = [slice_row(row, self.left_edge, self.left_edge + cells) for row in graph.rows]
        zones = tuple(zone._replace(x=zone.x - self.left_edge) for zone in graph.zones)
        return rows, zones

    def _as_list(self, steps: Sequence[StepView], here: StepView, cells: int) -> list[Row]:
        """The steps as rows, where there is no room for boxes."""
        rows: list[Row] = [(Span(" "), *heading("STEPS", cells - 2, figure=str(len(steps))))]
        for step in steps:
            marks = [s for w in step.workers[:8] for s in (glyph(look_of(w)), Span(" "))]
            row = (*fit((Span(step.name, TEXT),), 20), *fit(marks, 18), *words(step_note(step)))
            rows.append(cursor_row(row, cells, is_focused=step is here))
        return rows

    def sentence(self, scene: Scene) -> Row:
        here = self._current()
        if here is None or scene.run is None:
            return ()
        after = [step.name for step in scene.run.steps if here.name in step.dependencies]
        follows = (
            f" {', '.join(after)} {'waits' if len(after) == 1 else 'wait'} for it." if after else ""
        )
        needs = sum(band_of(worker, here) is Band.NEEDS_YOU for worker in here.workers)
        held = f" needs you for {needs} of its workers." if needs else f" is {here.outcome}."
        return words(Span(here.name, TEXT), Span(held, TEXT), follows)

    def hints(self) -> Sequence[str]:
        return ("down", "open", "next", "new", "pause_run", "no_wide", "pick")

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "step":
            self.step = name
            if times > 1:
                self.do_open()

    def _neighbour(self, dx: int, dy: int) -> None:
        here = self._current()
        if self.graph is None or here is None:
            return
        box = next(box for box in self.graph.boxes if box.step == here.name)
        others = [
            other
            for other in self.graph.boxes
            if (other.x - box.x) * dx > 0
            or (dy and other.x == box.x and (other.y - box.y) * dy > 0)
        ]
        if others:
            nearest = min(others, key=lambda o: (abs(o.x - box.x), abs(o.y - box.y)))
            self.step = nearest.step
        elif dy:
            self._by(dy)

    def _by(self, by: int) -> None:
        run, here = self.session.run, self._current()
        if run and here:
            names = [step.name for step in run.steps]
            self.step = names[(names.index(here.name) + by) % len(names)]

    def do_down(self) -> None:
        self._neighbour(0, 1)

    def do_up(self) -> None:
        self._neighbour(0, -1)

    def do_left(self) -> None:
        self._neighbour(-1, 0)

    def do_right(self) -> None:
        self._neighbour(1, 0)

    def do_first(self) -> None:
        self._to_end(0)

    def do_last(self) -> None:
        self._to_end(-1)

    def _to_end(self, index: int) -> None:
        if run := self.session.run:
            self.step = run.steps[index].name if run.steps else ""

    def do_next(self) -> None:
        self._to_need(1)

    def do_previous(self) -> None:
        self._to_need(-1)

    def _to_need(self, by: int) -> None:
        run, here = self.session.run, self._current()
        steps = list(run.steps) if run else []
        if here is None:
            return
        start = steps.index(here)
        for offset in range(1, len(steps) + 1):
            step = steps[(start + by * offset) % len(steps)]
            if any(band_of(worker, step) is Band.NEEDS_YOU for worker in step.workers):
                self.step = step.name
                return
        self.say_refused(self.key_of("next"), "no step needs you")

    def do_open(self) -> None:
        here = self._current()
        if here and here.workers:
            self.session.worker = here.workers[0].worker
            self.go("fleet")

    def do_new(self) -> None:
        here = self._current()
        if here and here.workers:
            self.session.worker = here.workers[0].worker
            self.hand_on("new")


def _step_rows(step: StepView, cells: int) -> list[Row]:
    settings = [("policy", step.policy), ("merge", step.merge)]
    settings += [("check", step.check)] if step.check else [("check", "none")]
    if step.command:
        settings.append(("runs", step.command))
    agents = sorted({worker.agent for worker in step.workers if worker.agent})
    if agents:
        settings.append(("agent", ", ".join(agents)))
    line = [
        part for name, value in settings for part in (Span(f"{name} "), Span(f"{value}   ", TEXT))
    ]
    prompt = next((worker.prompt.split("\n")[0] for worker in step.workers if worker.prompt), "")
    said = words("prompt ", Span(f"“{prompt}”", TEXT)) if prompt else words("no prompt yet")
    return [heading(f"STEP {step.name}", cells), fit(said, cells), fit(line, cells)]

"""Plan: the shape of the run, and where its time went."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import HorizontalScroll, Vertical
from textual.geometry import Region

from engine.messages.results import Outcome, RunView, StepView
from tui.controllers import ON_WORKERS
from tui.ink import TEXT, Row, Span, clickable, fit, words
from tui.kit.filterline import FilterLine
from tui.kit.inked import Inked
from tui.kit.lists import cursor_row
from tui.kit.meters import heading
from tui.kit.panes import Panes
from tui.kit.rail import step_note
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session
from tui.screens.plan.graph import Graph, draw_graph
from tui.screens.plan.timeline import Timeline
from tui.screens.runs.page import no_run
from tui.words.ends import idea_of, no_further
from tui.words.figures import some
from tui.words.filtering import filters_step
from tui.words.looks import glyph, look_of
from tui.words.scene import Scene
from tui.words.standing import Band, band_of

_AROUND = 6
"""Rows around graph and timeline: what is told of the step, and blanks."""
_LEAST_TIME, _TIME_HEAD = 3, 2
_MOST_WIDER = 40
"""Cells by which a graph may be wider than the screen; beyond it the steps are a list."""

_CAME_OUT = {
    Outcome.SUCCESS: "succeeded",
    Outcome.UNCHANGED: "changed nothing",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.SKIPPED: "was skipped",
}


class PlanScreen(Board):
    """The steps as a graph, where their time went, and the step under the cursor."""

    CSS_PATH = Path(__file__).with_name("plan.tcss")
    held = ON_WORKERS
    kind = "plan"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.graph: Graph | None = None
        self.step = ""
        self._seen: object = None

    def compose_panes(self) -> ComposeResult:
        with Panes(classes="body"):
            yield Inked(id="nothing")
            with HorizontalScroll(id="graph", can_focus=False):
                yield Inked(id="boxes")
            yield Rows(id="steps")
            with Vertical(id="time"):
                yield Inked(id="scale")
                yield Rows(id="bars")
            yield Inked(id="step")
            yield FilterLine(self.session, self.draw)

    @property
    def _line(self) -> FilterLine:
        return self.query_one(FilterLine)

    def _run(self) -> RunView | None:
        """Return the run with the steps that the filter leaves."""
        run, text = self.session.run, self._line.filter
        if run is None or not text:
            return run
        return replace(run, steps=tuple(s for s in run.steps if filters_step(text, s)))

    def do_search(self) -> None:
        self._line.begin()

    def do_leave(self) -> None:
        if not self._line.let_go():
            self.hand_on("leave")

    def _current(self) -> StepView | None:
        run = self._run()
        if run is None or not run.steps:
            return None
        worker = self.session.worker_view
        wanted = self.step or (worker.step if worker else "")
        return next((step for step in run.steps if step.name == wanted), run.steps[0])

    def draw_panes(self, scene: Scene) -> None:
        here, run, nothing = self._current(), self._run(), self.query_one("#nothing", Inked)
        filtered = self._filter_rows(run)
        cells, height = self.query_one(Panes).size
        has_plan = run is not None and here is not None
        nothing.display = not has_plan or bool(filtered)
        for pane in ("#graph", "#steps", "#time", "#step"):
            self.query_one(pane).display = has_plan
        if run is None or here is None:
            nothing.show(filtered or [(), *no_run("There is no plan yet: no run has started.")])
            return
        nothing.show(filtered)
        self.graph = draw_graph(scene.run or run, here.name, cells, scene.now)
        room = height - len(self.graph.rows) - _AROUND
        is_wide = self.graph.width > cells + _MOST_WIDER
        is_list = bool(filtered) or is_wide or room < _LEAST_TIME + _TIME_HEAD
        self.query_one("#graph").display = not is_list
        self.query_one("#steps").display = is_list
        if is_list:
            self._draw_list(run.steps, here)
            room = height - len(run.steps) - 1 - _AROUND
        else:
            self._draw_graph(self.graph, here)
        self._draw_time(Timeline(run, scene.now, cells - 2), room)
        self.query_one("#step", Inked).show(_step_rows(here, cells - 2))

    def _filter_rows(self, run: RunView | None) -> list[Row]:
        whole = self.session.run
        if run is None or whole is None:
            return []
        return self._line.rows(len(run.steps), len(whole.steps), self.key_of("leave"))

    def _draw_time(self, timeline: Timeline, room: int) -> None:
        """Draw where the time went, in the rows that are left for it."""
        bars = self.query_one("#bars", Rows)
        self.query_one("#time").display = room >= _LEAST_TIME
        bars.styles.max_height = max(room - _TIME_HEAD, 1)
        self.query_one("#scale", Inked).show(timeline.head())
        count = len(timeline.workers)
        bars.fill(count, timeline.row, more=lambda left: words(f" ► {left} more"))

    def _draw_graph(self, graph: Graph, here: StepView) -> None:
        """Draw the graph, of a wide one the part around the step under the cursor."""
        boxes = self.query_one("#boxes", Inked)
        boxes.styles.width = graph.width
        boxes.show(graph.rows)
        seen = (here.name, graph.width, self.size, self.fingered_at)
        if seen != self._seen:
            self._seen = seen
            box = next(box for box in graph.boxes if box.step == here.name)
            region = Region(box.x - 2, 0, box.width + 4, 1)
            pane = self.query_one("#graph", HorizontalScroll)
            self.call_after_refresh(pane.scroll_to_region, region, animate=False)

    def _draw_list(self, steps: Sequence[StepView], here: StepView) -> None:
        """Draw the steps as rows, where there is no room for boxes."""
        pane = self.query_one("#steps", Rows)

        def row(y: int) -> Row:
            cells = pane.size.width
            if not y:
                return (Span(" "), *heading("STEPS", cells - 2, figure=str(len(steps))))
            step = steps[y - 1]
            marks = [s for w in step.workers[:8] for s in (glyph(look_of(w)), Span(" "))]
            said = (*fit((Span(step.name, TEXT),), 20), *fit(marks, 18), *words(step_note(step)))
            return clickable(cursor_row(said, cells, is_focused=step is here), f"step:{step.name}")

        at = steps.index(here) + 1
        pane.fill(len(steps) + 1, row, range(at, at + 1))

    def sentence(self, scene: Scene) -> Row:
        here = self._current()
        if here is None or scene.run is None:
            return ()
        after = [
            step.name
            for step in scene.run.steps
            if here.name in step.dependencies
            and all(band_of(worker, step) is Band.WAITING for worker in step.workers)
        ]
        waits = "waits" if len(after) == 1 else "wait"
        follows = f" {' and '.join(after)} {waits} for it." if after else ""
        return words(Span(here.name, TEXT), Span(f" {_standing(here)}.", TEXT), follows)

    def hints(self) -> Sequence[str]:
        return ("down", "open", "next", "new", "pause_run", "no_wide", "pick")

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "step":
            self.step = name
            if times > 1:
                self.do_open()
        elif kind == "worker":
            self.session.worker, self.step = name, ""
            if times > 1:
                self.go("worker")

    def _neighbor(self, dx: int, dy: int) -> None:
        here = self._current()
        if self.graph is None or here is None:
            return
        if self._line.filter:  # the steps are a list
            self._by(dy)
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
        run, here = self._run(), self._current()
        if run and here:
            names = [step.name for step in run.steps]
            self.step = names[(names.index(here.name) + by) % len(names)]

    def by_row(self, by: int) -> None:
        self._neighbor(0, by)

    def by_side(self, by: int) -> None:
        self._neighbor(by, 0)

    def by_end(self, by: int) -> None:
        if (run := self._run()) and run.steps:
            self.step = run.steps[0 if by < 0 else -1].name

    def by_next(self, by: int) -> None:
        run, here = self._run(), self._current()
        steps = list(run.steps) if run else []
        if here is None:
            return
        needs = [
            at
            for at, step in enumerate(steps)
            if any(band_of(worker, step) is Band.NEEDS_YOU for worker in step.workers)
        ]
        at = steps.index(here)
        ahead = sorted(
            (one for one in needs if one != at), key=lambda n: (n - at) * by % len(steps)
        )
        if ahead:
            self.step = steps[ahead[0]].name
        else:
            several = "steps that need you"
            reason = no_further("step that needs you", by, needs, at, plural=several)
            self.refuse(idea_of("next", by), reason)

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


def _standing(step: StepView) -> str:
    """Return what a step does now, or how it came out."""
    bands = Counter(band_of(worker, step) for worker in step.workers)
    if needs := bands[Band.NEEDS_YOU]:
        return f"needs you for {needs} of its {some(len(step.workers), 'worker')}"
    if step.outcome != Outcome.PENDING:
        return _CAME_OUT[step.outcome]
    if working := bands[Band.WORKING]:
        return f"is at work with {some(working, 'worker')}"
    names = " and ".join(step.dependencies)
    return f"waits for {names}" if names else "waits for its turn"


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

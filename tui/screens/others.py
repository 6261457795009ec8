"""Plan and Runs: the shape of the run in time, and the runs there are."""

from collections.abc import Sequence
from functools import partial

from engine.messages.results import StepView
from tui.present.graph import Graph, draw_graph
from tui.present.ink import BOLD, KEY, TEXT, Page, Row, Span, Zone, fit, slice_row, words
from tui.present.lists import cursor_row
from tui.present.looks import glyph, look_of
from tui.present.meters import heading
from tui.present.pickers import Choice, Picker
from tui.present.rail import step_note
from tui.present.runs import PastRun, ordered, past_row, run_rows
from tui.present.scene import Scene
from tui.present.standing import Band, band_of
from tui.present.timeline import timeline
from tui.screens.acting import ActingScreen
from tui.screens.common import CommonScreen
from tui.screens.session import Session

_STEP_ROWS = 4


def _no_run(said: str) -> list[Row]:
    """What is true of a repository without runs, and what begins one."""
    begins = words("  ", Span('plait run "Fix the bug"', KEY), " in a terminal begins one.")
    return [words(Span(f"  {said}", BOLD)), begins]


class PlanScreen(ActingScreen):
    """The steps as a graph, where their time went, and the step under the cursor."""

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
            return Page(((), *_no_run("There is no plan yet: no run was started.")))
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
        self.say_refused(self._key("next"), "no step needs you")

    def do_open(self) -> None:
        here = self._current()
        if here and here.workers:
            self.session.worker = here.workers[0].worker
            self.go("fleet")

    def do_new(self) -> None:
        here = self._current()
        if here and here.workers:
            self.session.worker = here.workers[0].worker
            super().do_new()


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


class RunsScreen(CommonScreen):
    """All runs that the engine knows."""

    kind = "runs"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.cursor = ""
        self.marked: set[str] = set()
        self.past: list[PastRun] = []

    def on_screen_resume(self) -> None:
        self.begin(self._ask_history, group="history", exclusive=True)
        super().on_screen_resume()

    async def _ask_history(self) -> None:
        self.past = await self.session.bridge.history()
        self.draw()

    def _past_only(self) -> list[PastRun]:
        """The runs of the history that the engine has not open."""
        opened = {run.run for run in self.session.view.runs}
        return [past for past in self.past if past.run not in opened]

    def _ids(self) -> list[str]:
        shown = [run.run for run in ordered(self.session.scene())]
        return shown + [past.run for past in self._past_only()]

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        ids = self._ids()
        if not ids:
            return Page(((), *_no_run("There is no run yet.")))
        self.cursor = self.cursor if self.cursor in ids else ids[0]
        rows = run_rows(scene, self.cursor, frozenset(self.marked), cells)
        rows += [
            past_row(past, scene, cells, is_focused=past.run == self.cursor)
            for past in self._past_only()
        ]
        top = max(ids.index(self.cursor) + 2 - height, 0)
        shown = [rows[0], *rows[1 + top : top + height]]
        zones = tuple(Zone(0, 1 + y, cells, 1, f"run:{name}") for y, name in enumerate(ids[top:]))
        return Page(tuple(shown), zones[: height - 1])

    def has_what(self) -> bool:
        return bool(self._ids())

    def hints(self) -> Sequence[str]:
        return ("down", "open", "mark", "go_fleet")

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "run":
            self.cursor = name
            if times > 1:
                self.do_open()

    def _move(self, by: int) -> None:
        ids = self._ids()
        if ids:
            index = ids.index(self.cursor) + by if self.cursor in ids else 0
            self.cursor = ids[max(min(index, len(ids) - 1), 0)]

    def do_down(self) -> None:
        self._move(1)

    def do_up(self) -> None:
        self._move(-1)

    def do_first(self) -> None:
        self._move(-len(self._ids()))

    def do_last(self) -> None:
        self._move(len(self._ids()))

    def do_page_down(self) -> None:
        self._move(max(self.size.height - 6, 1))

    def do_page_up(self) -> None:
        self._move(-max(self.size.height - 6, 1))

    def do_half_down(self) -> None:
        self._move(max(self.size.height // 2 - 3, 1))

    def do_half_up(self) -> None:
        self._move(-max(self.size.height // 2 - 3, 1))

    def do_mark(self) -> None:
        self.marked.symmetric_difference_update({self.cursor})
        self._move(1)

    def do_open(self) -> None:
        past = next((past for past in self._past_only() if past.run == self.cursor), None)
        if past is not None:
            self.begin(partial(self._open_past, past), holds=True)
        else:
            self._look_at(self.cursor)

    async def _open_past(self, past: PastRun) -> None:
        """A run that the engine has not open is read from its journal; any command takes it up."""
        found = await self.session.bridge.past_view(past.run)
        if isinstance(found, str):
            self.say_refused(self._key("open"), found, past.problem)
            return
        self.session.past_run = found
        self._look_at(past.run)

    def do_search(self) -> None:
        """A run by its name."""
        names = {run.run: run.name for run in self.session.view.runs}
        names |= {past.run: past.name for past in self._past_only()}
        choices = [Choice(run, f"{run}  {name}") for run, name in names.items()]
        self.choose(Picker("Runs", choices, hint="type a name"), self._to_run)

    def _to_run(self, run: str) -> None:
        self.cursor = run

    def _look_at(self, run: str) -> None:
        self.session.open_run(run)
        self.go("fleet")

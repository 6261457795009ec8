"""Stats: what attempts came to, by agent, model, step, person, repository or week."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from textual.app import ComposeResult

from engine.messages.statistics import Axis, CountAttempts, Figures, Reach
from tui.controllers import ON_EVERY_SCREEN
from tui.ink import Row, Span, clickable, words
from tui.kit.inked import Head, Inked
from tui.kit.meters import heading
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session
from tui.screens.stats.page import (
    REACHES,
    SPANS,
    Columns,
    choices,
    columns_for,
    delay_of,
    delay_rows,
    figures_row,
    nothing_rows,
    refused_rows,
    shown_name,
    table_head,
)
from tui.screens.stats.plots import plots
from tui.words.scene import Scene

_FRESH_S = 5.0
"""While runs go on, figures this old are asked for again."""
_WEEK_S = 7 * 86_400
_LABELS = {"unit_down": "whose", "right": "by"}


class StatsScreen(Board):
    """A table of figures, and the weeks of the row under the cursor as plots."""

    held = ON_EVERY_SCREEN
    kind = "stats"
    CSS_PATH = Path(__file__).with_name("stats.tcss")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.reach = Reach.HERE
        self.axis = Axis.AGENT
        self.span = 0
        self.cursor: str | None = None
        self.figures: Sequence[Figures] | str | None = None
        self.weeks: Sequence[Figures] = ()
        self._asked_at = 0.0
        self._asked_of: object = None

    def compose_panes(self) -> ComposeResult:
        with Panes(classes="body"):
            yield Head(id="head")
            yield Rows(id="table")
            yield Inked(id="plots")

    def on_screen_resume(self) -> None:
        self._ask_anew()

    # Asking.

    def _ask_anew(self) -> None:
        self._asked_at, self._asked_of = monotonic(), self._state_of_runs()
        self.begin(self._ask, group="figures", exclusive=True)

    def _since(self) -> float | None:
        return self.session.clock() - self.span * _WEEK_S if self.span else None

    def _state_of_runs(self) -> object:
        return [(run.run, run.seq) for run in self.session.view.runs]

    async def _ask(self) -> None:
        """Ask for the table, then for the weeks of what is under the cursor."""
        await self.session.bridge.until(lambda view: view)  # a console may open before its engine
        since = self._since()
        asked = CountAttempts(reach=self.reach, by=self.axis, since=since)
        found = await self.session.bridge.figures(asked)
        if not isinstance(found, str) and self.axis is Axis.WEEK:
            found = tuple(sorted(found, key=lambda one: one.name, reverse=True))
        self.figures = found
        names = self._names()
        self.cursor = self.cursor if self.cursor in names else next(iter(names), None)
        await self._ask_weeks(since)

    async def _ask_weeks(self, since: float | None) -> None:
        """Ask for the weeks of the row under the cursor; a week stands among all the others."""
        self.weeks, name = (), self.cursor
        if name is not None:
            of = None if self.axis is Axis.WEEK else self.axis
            asked = CountAttempts(
                reach=self.reach, by=Axis.WEEK, since=since, of=of, name=name if of else ""
            )
            found = await self.session.bridge.figures(asked)
            self.weeks = () if isinstance(found, str) else found
        self.draw()

    def _names(self) -> list[str]:
        found = self.figures
        return [] if found is None or isinstance(found, str) else [one.name for one in found]

    # Drawing.

    def draw_panes(self, scene: Scene) -> None:
        if monotonic() - self._asked_at > _FRESH_S and self._asked_of != self._state_of_runs():
            self._ask_anew()
        cells, height = self.query_one(Panes).size
        head = self._head(scene, cells)
        self.query_one("#head", Inked).show(head)
        names = self._names()
        at = names.index(self.cursor) if self.cursor in names else 0
        table = self.query_one("#table", Rows)
        table.display = bool(names)
        table.fill(len(names), partial(self._row, cells), range(at, min(at + 1, len(names))))
        self._draw_plots(scene, cells - 2, height - len(head) - min(len(names), height // 3))

    def _head(self, scene: Scene, cells: int) -> list[Row]:
        keys = {idea: self.key_of(idea) for idea in ("unit_down", "right", "more")}
        rows = choices(self.reach, self.axis, self.span, keys)
        if delay := delay_of(scene.view.runs):
            rows += delay_rows(delay, scene.now, cells)
        if self.figures is None:
            return [*rows, (), words("  counting")]
        if isinstance(self.figures, str):
            return [*rows, *refused_rows(self.figures, cells)]
        if not self.figures:
            return [*rows, *nothing_rows(self.reach, self.span, keys)]
        return [*rows, (), table_head(self.axis, self._columns(cells)._replace(whole=cells))]

    def _columns(self, cells: int) -> Columns:
        """Return the columns of the table, beside its scrollbar."""
        return columns_for(cells - 1, self.session.widths)

    def _row(self, cells: int, y: int) -> Row:
        one = self.figures[y] if self.figures and not isinstance(self.figures, str) else None
        if not isinstance(one, Figures):
            return ()
        drawn = figures_row(one, self._columns(cells), is_focused=one.name == self.cursor)
        return clickable(drawn, f"row:{y}")

    def _draw_plots(self, scene: Scene, cells: int, room: int) -> None:
        pane = self.query_one("#plots", Inked)
        here = (self.cursor or "") if self.axis is Axis.WEEK else ""
        drawn = plots(self.weeks, scene.now, cells, room - 3, here=here)
        pane.display = bool(drawn)
        if drawn:
            whose = "all" if self.axis is Axis.WEEK else shown_name(self.cursor or "")
            pane.show([heading(whose, cells, note="week by week"), (), *drawn])

    def sentence(self, scene: Scene) -> Row:
        del scene
        said = f"{REACHES[self.reach]}, by {self.axis}, {SPANS[self.span]}"
        return words(Span(said))

    def has_what(self) -> bool:
        return True

    def hints(self) -> Sequence[str]:
        return ("down", "unit_down", "more", "less", "go_runs", "go_fleet")

    def label_of(self, idea: str) -> str:
        return _LABELS.get(idea) or super().label_of(idea)

    # Keys.

    def pointed(self, target: str, times: int) -> None:
        del times
        kind, _, name = target.partition(":")
        if kind == "row":
            self._go_to(int(name))
        elif kind == "reach":
            self.reach = Reach(name)
            self._ask_anew()
        elif kind == "by":
            self._count_by(Axis(name))
        elif kind == "weeks":
            self.span = int(name)
            self._ask_anew()

    def _go_to(self, index: int) -> None:
        names = self._names()
        if names:
            self.cursor = names[max(min(index, len(names) - 1), 0)]
            self.begin(partial(self._ask_weeks, self._since()), group="figures", exclusive=True)

    def _count_by(self, axis: Axis) -> None:
        self.axis, self.cursor = axis, None
        self._ask_anew()

    def by_row(self, by: int) -> None:
        names = self._names()
        self._go_to((names.index(self.cursor) if self.cursor in names else 0) + by)

    def by_end(self, by: int) -> None:
        self.by_row(by * len(self._names()))

    def by_page(self, by: int) -> None:
        self.by_row(by * max(self.query_one("#table").size.height - 1, 1))

    def by_half(self, by: int) -> None:
        self.by_row(by * max(self.query_one("#table").size.height // 2, 1))

    def by_side(self, by: int) -> None:
        """Count by the next property."""
        axes = list(Axis)
        self._count_by(axes[(axes.index(self.axis) + by) % len(axes)])

    by_tab = by_side

    def by_unit(self, by: int) -> None:
        """Count more, or fewer: this repository, all of one's own, the team."""
        reaches = list(Reach)
        self.reach = reaches[(reaches.index(self.reach) + by) % len(reaches)]
        self._ask_anew()

    def _longer(self, by: int) -> None:
        spans = list(SPANS)
        self.span = spans[max(min(spans.index(self.span) + by, len(spans) - 1), 0)]
        self._ask_anew()

    def why_not(self, idea: str) -> str:
        if idea == "more" and not self.span:
            return "this is already all time"
        if idea == "less" and self.span == next(iter(SPANS)):
            return "this is already the shortest time"
        return super().why_not(idea)

    def do_more(self) -> None:
        self._longer(1)

    def do_less(self) -> None:
        self._longer(-1)

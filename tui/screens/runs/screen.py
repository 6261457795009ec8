"""Runs: all runs of this repository."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from textual.app import ComposeResult

from engine.messages.results import RunView
from tui.bridge import PastRun
from tui.controllers import ON_EVERY_SCREEN
from tui.ink import Row, clickable
from tui.kit.filterline import FilterLine
from tui.kit.inked import Head, Inked
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session
from tui.screens.runs.page import no_run, ordered, past_row, run_head, run_row
from tui.words.filtering import filters_run
from tui.words.scene import Scene


class RunsScreen(Board):
    """All runs that the engine knows."""

    held = ON_EVERY_SCREEN
    kind = "runs"
    CSS_PATH = Path(__file__).with_name("runs.tcss")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.cursor = ""
        self.past: list[PastRun] = []

    def compose_panes(self) -> ComposeResult:
        with Panes(classes="body"):
            yield Head(id="head")
            yield Rows()
            yield FilterLine(self.session, self.draw)

    def on_screen_resume(self) -> None:
        self.begin(self._ask_history, group="history", exclusive=True)

    async def _ask_history(self) -> None:
        self.past = await self.session.bridge.history()
        self.draw()

    def _past_only(self) -> list[PastRun]:
        """The runs of the history that the engine has not open."""
        opened = {run.run for run in self.session.view.runs}
        kept = [past for past in self.past if past.run not in opened]
        text = self._line.filter
        return [past for past in kept if filters_run(text, _said(past))]

    def _opened(self, scene: Scene) -> list[RunView]:
        """The runs that the engine has open."""
        text = self._line.filter
        runs = ordered(scene)
        return [
            run for run in runs if filters_run(text, f"{run.run} {run.name} {run.outcome}", run)
        ]

    @property
    def _line(self) -> FilterLine:
        return self.query_one(FilterLine)

    def _ids(self) -> list[str]:
        shown = [run.run for run in self._opened(self.session.scene())]
        return shown + [past.run for past in self._past_only()]

    def draw_panes(self, scene: Scene) -> None:
        ids, cells = self._ids(), self.query_one(Panes).size.width
        self.cursor = self.cursor if self.cursor in ids else next(iter(ids), "")
        whole = len({run.run for run in scene.view.runs} | {past.run for past in self.past})
        filtered = self._line.rows(len(ids), whole, self.key_of("leave"))
        head = [run_head(scene, cells)] if whole else [(), *no_run("There is no run yet.")]
        self.query_one("#head", Inked).show([*filtered, *head])
        opened, past = self._opened(scene), self._past_only()

        def row(y: int) -> Row:
            is_focused = ids[y] == self.cursor
            if y >= len(opened):
                drawn = past_row(past[y - len(opened)], scene, cells, is_focused=is_focused)
            else:
                drawn = run_row(opened[y], scene, cells, is_focused=is_focused)
            return clickable(drawn, f"run:{ids[y]}")

        at = ids.index(self.cursor) if ids else 0
        here = range(at, min(at + 1, len(ids)))
        self.query_one(Rows).fill(len(ids), row, here)

    def has_what(self) -> bool:
        return bool(self._ids())

    def hints(self) -> Sequence[str]:
        return ("down", "open", "go_stats", "go_fleet")

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "run":
            self.cursor = name
            if times > 1:
                self.do_open()

    def by_row(self, by: int) -> None:
        ids = self._ids()
        if ids:
            index = ids.index(self.cursor) + by if self.cursor in ids else 0
            self.cursor = ids[max(min(index, len(ids) - 1), 0)]

    def by_end(self, by: int) -> None:
        self.by_row(by * len(self._ids()))

    def by_page(self, by: int) -> None:
        self.by_row(by * max(self.size.height - 6, 1))

    def by_half(self, by: int) -> None:
        self.by_row(by * max(self.size.height // 2 - 3, 1))

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
            self.say_refused(self.key_of("open"), found, past.problem)
            return
        self.session.past_run = found
        self._look_at(past.run)

    def do_search(self) -> None:
        self._line.begin()

    def do_leave(self) -> None:
        if not self._line.let_go():
            self.hand_on("leave")

    def _look_at(self, run: str) -> None:
        self.session.open_run(run)
        self.go("fleet")


def _said(past: PastRun) -> str:
    return f"{past.run} {past.name} {past.verdict} {past.standing}"

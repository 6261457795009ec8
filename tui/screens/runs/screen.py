"""Runs: all runs of this repository."""

from collections.abc import Sequence
from functools import partial

from tui.bridge import PastRun
from tui.controllers import ON_EVERY_SCREEN
from tui.ink import Page, Zone
from tui.kit.dialogs import Choice
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.screens.runs.page import no_run, ordered, past_row, run_rows
from tui.words.scene import Scene


class RunsScreen(Board):
    """All runs that the engine knows."""

    held = ON_EVERY_SCREEN
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
            return Page(((), *no_run("There is no run yet.")))
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
            self.say_refused(self.key_of("open"), found, past.problem)
            return
        self.session.past_run = found
        self._look_at(past.run)

    def do_search(self) -> None:
        """A run by its name."""
        names = {run.run: run.name for run in self.session.view.runs}
        names |= {past.run: past.name for past in self._past_only()}
        choices = [Choice(run, f"{run}  {name}") for run, name in names.items()]
        self.choose("Runs", choices, self._to_run, hint="type a name")

    def _to_run(self, run: str) -> None:
        self.cursor = run

    def _look_at(self, run: str) -> None:
        self.session.open_run(run)
        self.go("fleet")

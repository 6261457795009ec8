"""Worker: one worker's log, and beside it everything that is known of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import ContentSwitcher, Input

from engine.messages.results import WorkerView
from tui.bridge import LogGrew, LogName
from tui.controllers import ON_WORKERS, Workers
from tui.ink import KEY, TEXT, Ink, Role, Row, Span, clickable, words
from tui.kit.bindings import as_textual
from tui.kit.cards import card, card_height, question_fits
from tui.kit.inked import Inked
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session
from tui.kit.textbox import SearchLine
from tui.screens.worker.files import Files
from tui.screens.worker.log_view import LogView
from tui.screens.worker.page import prompt_rows, side, speak_row, tab_row, worker_subject
from tui.screens.worker.reading import Reading
from tui.screens.worker.shells import SHELL, Shells
from tui.screens.worker.tab import Shown
from tui.screens.worker.tabs import LOG, TABS, TITLES
from tui.screens.worker.takeover import SCREEN, TakeOver
from tui.terminals.view import TerminalView
from tui.words.asking import asked_of
from tui.words.figures import number_in, some
from tui.words.scene import Scene

_PROMPT_FROM, _SPEAK_FROM = 18, 16
"""So many rows of the screen leave one for the prompt above the log, and one to speak below it."""


class WorkerScreen(Board):
    """The log follows its end; any move holds it."""

    CSS_PATH = Path(__file__).with_name("worker.tcss")
    held = (Reading, Files, Shells, TakeOver, *TABS, *ON_WORKERS)
    kind = "worker"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.reading = self.does(Reading)
        self.terminals: dict[str, Shells | TakeOver] = {
            SHELL: self.does(Shells),
            SCREEN: self.does(TakeOver),
        }
        self.reading.titles = self._titles
        self._watched: LogName = ("", "", None)

    def _titles(self) -> Mapping[str, str]:
        """Return the tabs: a terminal has one once there is something on it."""
        return {
            name: title
            for name, title in TITLES.items()
            if name == self.reading.tab
            or name not in self.terminals
            or self.terminals[name].is_there
        }

    def compose_panes(self) -> ComposeResult:
        """Compose the tabs over the pane of one of them, and the side."""
        with Horizontal(id="worker", classes="body"):
            with Panes(id="main"):
                yield Inked(id="tabs")  # first: a click must not move the tabs away
                yield Inked(id="asked")
                yield Inked(id="prompt-line")
                with ContentSwitcher(initial=self.reading.tab, id="tab"):
                    with Vertical(id=LOG):
                        yield LogView(self.reading.log)
                        onward, back = self.key_of("next"), self.key_of("previous")
                        hits = f"{onward} and {back} go to the next and previous hit"
                        yield SearchLine(hits, self.session.ahead)
                    for tab in TABS:
                        yield Rows(id=tab.name)
                    for name in self.terminals:
                        yield TerminalView(id=name, leaving=self._leaving())
                yield Inked(id="speak")
            yield self.widths.beside(Rows(id="side"), -1)

    def _leaving(self) -> Sequence[str]:
        """Return the keys that leave a terminal, in Textual's names."""
        return [as_textual(key) for key in self.session.keymap.of(f"{self.kind}.detach")]

    # Which log.

    def on_screen_resume(self) -> None:
        self._watch()
        wanted, self.session.wanted_there = self.session.wanted_there, ""
        if wanted:
            self.perform(wanted)

    def gone(self) -> None:
        for terminal in self.terminals.values():
            terminal.leave()
        self.session.bridge.unwatch()
        self._watched = ("", "", None)

    def _watch(self) -> None:
        """Follow the log of the worker under the cursor: its newest attempt, or the one chosen."""
        here, run = self.session.worker_view, self.session.run
        if here is None or run is None:
            return
        wanted = (run.run, here.worker, self.reading.attempt or here.attempt or None)
        if wanted != self._watched:
            self._watched = wanted
            self.reading.log.clear(here.attempt_since or here.phase_since)
            self.session.bridge.watch(*wanted)

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self.reading.attempt = None
        self._watch()

    def take_log(self, grew: LogGrew) -> None:
        """Take more lines; those of a log that is not watched any more are not for this page."""
        if grew.of != self._watched:
            return
        if grew.is_new:
            began = next((line.at for line in grew.chunk.lines), 0.0)
            self.reading.log.clear(began, earlier=grew.chunk.first)
        self.reading.log.take(grew.chunk.lines)

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return super().subject(scene, cells)
        return worker_subject(worker, step, scene, cells)

    def draw_panes(self, scene: Scene) -> None:
        worker, tabs = self.session.worker_view, self.query_one("#tabs", Inked)
        self._watch()
        self._draw_asked(scene)
        switcher = self.query_one(ContentSwitcher)
        switcher.current = self.reading.tab
        tabs.show([tab_row(self._titles(), self.reading.tab, tabs.size.width, self._log_state())])
        if self.reading.tab == LOG or worker is None:
            self._draw_log()
        elif terminal := self.terminals.get(self.reading.tab):
            terminal.draw()
        else:
            attempt = self.reading.attempt or worker.attempt
            pane = self.query_one(f"#{self.reading.tab}", Rows)
            tab = next(self.does(tab) for tab in TABS if tab.name == self.reading.tab)
            cells = switcher.size.width - pane.styles.scrollbar_size_vertical
            rows = tab.draw(Shown(worker, scene, attempt, cells))
            pane.show(rows, of=worker.worker)
        beside = self.query_one("#side", Rows)
        if worker and beside.display:
            files = self.does(Files)
            files.look(worker)
            listed = files.rows(beside.size.width, max(self.size.height // 3, 3))
            known = side(worker, scene, beside.size.width, listed)
            beside.show(known, of=worker.worker)

    def _draw_asked(self, scene: Scene) -> None:
        """Show what it asks above its log, in full where half the screen is enough for that.

        Not while keys are for a terminal: the keys on the card would do nothing.
        """
        worker, step = self.session.worker_view, self.session.step_view
        cells = self.query_one("#main").size.width
        rows: list[Row] = []
        if worker and step and asked_of(worker) and cells and not self.entered:
            size = cells, card_height(worker, cells, self.size.height // 2)
            rows = card(worker, step, scene, size, is_focused=True)
        self._show_if("#asked", rows)
        most = 0 if rows or self.size.height < _PROMPT_FROM else self.size.height // _PROMPT_FROM
        has_log = self.reading.tab == LOG
        self._show_if(
            "#prompt-line", prompt_rows(worker, cells, most) if worker and has_log else []
        )
        speak = speak_row(worker, scene, cells) if worker and not self.entered else ()
        self._show_if("#speak", [speak] if speak and self.size.height >= _SPEAK_FROM else [])

    def _show_if(self, selector: str, rows: list[Row]) -> None:
        """Show rows where there are any, and give their place to the log where there are none."""
        shown = self.query_one(selector, Inked)
        shown.display = bool(rows)
        shown.show(rows)

    def shows_whole_question(self, worker: WorkerView) -> bool:
        cells, rows = self.query_one("#main").size.width, len(self.query_one("#asked", Inked).rows)
        is_here = worker.worker == self.session.worker
        return is_here and bool(rows) and question_fits(worker, cells - 4, rows - 6)

    def _draw_log(self) -> None:
        view = self.query_one(LogView)
        view.instead = self._instead_of_log()
        view.update()

    def _instead_of_log(self) -> list[Row]:
        """Return the words in place of a log without lines."""
        log = self.reading.log
        if self.session.worker_view is None:
            return [(), words("  There is no worker yet. ", Span("1", KEY), " goes back to Fleet.")]
        if not log.lines and self.session.worker_view.has_screen:
            key = Span(self.key_of("take_over"), KEY)
            return [(), words(" Its agent has a terminal of its own: ", key, " shows it.")]
        if not log.lines:
            return [(), words(" No output yet.")]
        hidden = f" {some(len(log.lines), 'line')}, but none of a kind shown now. "
        return [(), words(hidden, Span(self.key_of("more"), KEY), " shows more.")]

    def _log_state(self) -> Sequence[Row]:
        """Return the state of the log in words: in full, and shorter where there is less room."""
        if terminal := self.terminals.get(self.reading.tab):
            return terminal.state()
        if self.reading.tab != LOG:
            return ()
        log = self.reading.log
        only = " only" if log.is_filtered else ""
        found = Span(f"/{log.query}: {log.hits}{only}   " if log.query else "", Ink(Role.WAITING))
        kinds = words("show ", Span(f"{log.shown_kinds}  ", TEXT))
        mark = "FOLLOW" if log.is_following else "HOLD"
        state = Span(f"{mark} ", Ink(Role.ACCENT, bold=True, does="do:follow"))
        return (found, *clickable(kinds, "do:show_kinds"), state), (found, state), (state,)

    def sentence(self, scene: Scene) -> Row:
        return self.does(Workers).sentence(self.session.worker_view, scene.now)

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        if self.entered:
            return ("detach",)
        if here and here.questions:
            return ("yes", "yes_wide", "no", "edit", "steer", "follow", "search", "diff", "more")
        if here is None:
            return ("go_fleet",)
        if self.selections:
            return ("copy", "leave", "steer", "diff", "zoom")
        if self.reading.tab != LOG:
            return ("down", "steer", "diff", "no", "retry", "land", "zoom")
        more = ("steer", "follow", "search", "next", "more", "diff", "no", "retry", "land", "zoom")
        return ("down", *more)

    def key_of(self, idea: str) -> str:
        """Return the key of an idea; in a terminal, the key of the help is for its program."""
        return "" if idea == "help" and self.entered else super().key_of(idea)

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.reading.log.link.partition(":")
        return path, number_in(line) or 0

    # The mouse, and the line that is searched with.

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "tab":
            self.reading.show(name)
        elif kind == "attempt":
            self.reading.attempt = int(name)
            if times > 1:
                self.perform("open")
        elif kind == "link":
            self.reading.follow_link()
        elif kind == "file":
            self.session.diff_place = name
            self.perform("diff")
        elif self.action(kind) and times == 1:  # a key on the card of what it asks
            self.action_idea(kind)

    def on_terminal_view_left(self, _: TerminalView.Left) -> None:
        self.perform("detach")
        self.draw()

    @property
    def entered(self) -> Shells | TakeOver | None:
        """The terminal that keys are for."""
        return next((one for one in self.terminals.values() if one.is_entered), None)

    def why_not(self, idea: str) -> str:
        if idea == "detach" and not self.entered:
            return "you are not typing into a terminal"
        return super().why_not(idea)

    def do_detach(self) -> None:
        if self.entered:
            self.entered.do_detach()

    def on_terminal_view_entered(self, _: TerminalView.Entered) -> None:
        if terminal := self.terminals.get(self.reading.tab):
            terminal.enter()
        self.draw()

    def on_log_view_held(self, _: LogView.Held) -> None:
        self.draw()

    def on_input_changed(self, changed: Input.Changed) -> None:
        self.reading.seek(changed.value)
        self.draw()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        self.reading.take_search(submitted.value)
        self.draw()

    def on_search_line_closed(self, _: SearchLine.Closed) -> None:
        self.reading.drop_search()
        self.draw()

"""Worker: one worker's log, and beside it everything that is known of it."""

from collections.abc import Sequence

from engine.messages.results import WorkerView
from tui.bridge import LogGrew, LogName
from tui.controllers import ON_WORKERS
from tui.ink import KEY, TEXT, Ink, Page, Role, Row, Span, Zone, fit, words
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.kit.textbox import Writing
from tui.screens.worker.logs import LogPane
from tui.screens.worker.page import (
    SIDE,
    SIDE_FROM,
    TABS,
    attempts_tab,
    limits_tab,
    panes,
    prompt_tab,
    side,
    tab_row,
    worker_subject,
)
from tui.words.figures import some
from tui.words.happened import events_tab
from tui.words.scene import Scene
from tui.words.sentences import sentence_of

_LOG, _EVENTS, _PROMPT, _LIMITS, _ATTEMPTS = range(len(TABS))


class WorkerScreen(Board):
    """The log follows its end; any move holds it."""

    held = ON_WORKERS
    kind = "worker"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pane_of_log = LogPane()
        self.tab = _LOG
        self.top = 0
        self.attempt: int | None = None
        self.is_zoomed = False
        self._watched: LogName = ("", "", None)

    # Which log.

    def on_screen_resume(self) -> None:
        self._watch()
        super().on_screen_resume()

    def on_screen_suspend(self) -> None:
        self.session.bridge.unwatch()
        self._watched = ("", "", None)

    def _watch(self) -> None:
        """Follow the log of the worker under the cursor: its newest attempt, or the one chosen."""
        here, run = self.session.worker_view, self.session.run
        if here is None or run is None:
            return
        wanted = (run.run, here.worker, self.attempt or here.attempt or None)
        if wanted != self._watched:
            self._watched = wanted
            self.pane_of_log.clear(here.attempt_since or here.phase_since)
            self.session.bridge.watch(*wanted)

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self.attempt = None
        self.top = 0
        self._watch()

    def take_log(self, grew: LogGrew) -> None:
        """More lines; those of a log that is not watched any more are not for this page."""
        if grew.of != self._watched:
            return
        if grew.is_new:
            began = next((line.at for line in grew.chunk.lines), 0.0)
            self.pane_of_log.clear(began, earlier=grew.chunk.first)
        self.pane_of_log.take(grew.chunk.lines)

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return super().subject(scene, cells)
        return worker_subject(worker, step, scene, cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        worker = self.session.worker_view
        if worker is None:
            return Page(
                ((), words("  There is no worker yet. ", Span("1", KEY), " goes back to Fleet."))
            )
        self._watch()
        has_side = cells >= SIDE_FROM and not self.is_zoomed
        width = cells - SIDE - 4 if has_side else cells
        left = [
            tab_row(self.tab, width, self._pane_state()),
            *self._tab(worker, scene, width, height - 1),
        ]
        zones = [Zone(1, 0, width // 2, 1, "tabs")]
        if not has_side:
            return Page(tuple(fit(row, cells) for row in left), tuple(zones))
        rows = panes(left, side(worker, scene, SIDE), cells, height, side_cells=SIDE)
        return Page(tuple(rows), tuple(zones))

    def _pane_state(self) -> tuple[Row, ...]:
        """What the log says of itself: in full, and shorter where there is less room."""
        if self.tab != _LOG:
            return ()
        pane = self.pane_of_log
        found = f"/{pane.query}: {pane.hits}   " if pane.query else ""
        mark = "FOLLOW" if pane.is_following else "HOLD"
        hits = Span(found, Ink(Role.WAITING))
        state = Span(f"{mark} ", Ink(Role.ACCENT, bold=True))
        shown = words(hits, "show ", Span(f"{pane.shown_kinds}  ", TEXT), state)
        return shown, (hits, state), (state,)

    def _tab(self, worker: WorkerView, scene: Scene, cells: int, height: int) -> list[Row]:
        if self.tab == _LOG:
            return self._log_rows(cells, height)
        if self.tab == _EVENTS:
            rows = events_tab(scene.told, worker.worker, scene.now, cells)
        elif self.tab == _PROMPT:
            rows = prompt_tab(worker, cells)
        elif self.tab == _LIMITS:
            rows = limits_tab(worker, cells)
        else:
            rows = attempts_tab(worker, scene, self.attempt or worker.attempt, cells)
        self.top = max(min(self.top, len(rows) - height), 0)
        return rows[self.top : self.top + height]

    def _log_rows(self, cells: int, height: int) -> list[Row]:
        pane = self.pane_of_log
        if not pane.lines:
            return [(), words(" Nothing was written yet.")]
        if not pane.items:
            return [
                (),
                words(
                    f" {some(len(pane.lines), 'line')}, none of a kind that is shown. ",
                    Span(self.key_of("more"), KEY),
                    " shows more.",
                ),
            ]
        return pane.draw(cells, height)

    def sentence(self, scene: Scene) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        return sentence_of(worker, step, scene.now) if worker and step else ()

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        if here and here.questions:
            return ("yes", "yes_wide", "no", "steer", "follow", "search", "diff", "more")
        if here is None:
            return ("go_fleet",)
        if self.tab != _LOG:
            return ("down", "steer", "diff", "no", "retry", "land", "zoom")
        more = ("steer", "follow", "search", "next", "more", "diff", "no", "retry", "land", "zoom")
        return ("down", *more)

    def shows_whole_question(self, worker: WorkerView) -> bool:
        del worker
        return False

    def pointed(self, target: str, times: int) -> None:
        del times
        if target == "tabs":
            self.do_right()

    # Moving.

    def _move(self, by: int) -> None:
        here = self.session.worker_view
        if self.tab == _LOG:
            self.pane_of_log.move(by)
        elif self.tab == _ATTEMPTS and here and here.attempt:
            now = self.attempt or here.attempt
            self.attempt = max(min(now + by, here.attempt), 1)
        else:
            self.top = max(self.top + by, 0)

    def do_down(self) -> None:
        self._move(1)

    def do_up(self) -> None:
        self._move(-1)

    def do_half_down(self) -> None:
        self._move(self.size.height // 3)

    def do_half_up(self) -> None:
        self._move(-(self.size.height // 3))

    def do_page_down(self) -> None:
        self._move(self.size.height - 8)

    def do_page_up(self) -> None:
        self._move(-(self.size.height - 8))

    def do_first(self) -> None:
        self.top = 0
        self.pane_of_log.first()

    def do_last(self) -> None:
        self.pane_of_log.follow()

    def _turn(self, by: int) -> None:
        self.tab = (self.tab + by) % len(TABS)
        self.top = 0

    def do_left(self) -> None:
        self._turn(-1)

    def do_right(self) -> None:
        self._turn(1)

    def do_next_tab(self) -> None:
        self._turn(1)

    def do_previous_tab(self) -> None:
        self._turn(-1)

    def do_next(self) -> None:
        self._find(1)

    def do_previous(self) -> None:
        self._find(-1)

    def _find(self, by: int) -> None:
        if not self.pane_of_log.to_next(by):
            what = f"/{self.pane_of_log.query}" if self.pane_of_log.query else "an error"
            self.say_refused(
                self.key_of("next" if by > 0 else "previous"), f"{what} is not further on"
            )

    def do_unit_down(self) -> None:
        self.pane_of_log.to_tool(1)

    def do_unit_up(self) -> None:
        self.pane_of_log.to_tool(-1)

    # Seeing.

    def do_follow(self) -> None:
        pane = self.pane_of_log
        if pane.is_following:
            pane.hold()
        else:
            pane.follow()

    def do_more(self) -> None:
        self.pane_of_log.show(self.pane_of_log.detail + 1)

    def do_less(self) -> None:
        self.pane_of_log.show(self.pane_of_log.detail - 1)

    def do_show_kinds(self) -> None:
        self.pane_of_log.show((self.pane_of_log.detail + 1) % 3)

    def do_show_times(self) -> None:
        self.pane_of_log.has_times = not self.pane_of_log.has_times

    def do_show_long(self) -> None:
        self.pane_of_log.is_wrapped = not self.pane_of_log.is_wrapped

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_search(self) -> None:
        note = "n and N go through the hits; esc ends the search"
        self.write(Writing("search", note, self._search, key="search"))

    def _search(self, text: str) -> None:
        self.tab = _LOG
        self.pane_of_log.query = text
        if not self.pane_of_log.to_next(-1) and not self.pane_of_log.to_next(1):
            self.say_refused("search", f"nothing here has {text!r}")

    def do_leave(self) -> None:
        if self.pane_of_log.query:
            self.pane_of_log.query = ""
        elif not self.pane_of_log.is_following:
            self.pane_of_log.follow()
        else:
            self.hand_on("leave")

    def do_open(self) -> None:
        if self.tab == _ATTEMPTS:
            self.tab = _LOG
            self._watch()
        elif self.pane_of_log.link:
            self.session.diff_place = self.pane_of_log.link
            self.hand_on("diff")
        elif not self.pane_of_log.toggle_fold():
            self.say_refused(self.key_of("open"), "there is no link or fold under the cursor")

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.pane_of_log.link.partition(":")
        return path, int(line) if line.isdigit() else 0

    def do_copy(self) -> None:
        item = self.pane_of_log.here
        self.copy(item.line.text if item else "")

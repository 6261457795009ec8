"""One visual fact per picture: the look of the console, held still."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import Grid
from textual.pilot import Pilot

from engine.limits import Level
from engine.messages.results import EngineView
from engine.messages.statistics import Axis, CountAttempts, Figures
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console
from tests.support.starting import Here
from tests.support.world import NOW, FakePort, csvlite, log_lines, many
from tui.app import Options, PlaitApp
from tui.ink import Ink, Role, Row, Span, fit, grounded, words
from tui.kit.inked import Inked, Painter
from tui.kit.meters import meter
from tui.kit.palette import Palette
from tui.screens.diff.screen import DiffScreen
from tui.screens.stats.plots import week_of
from tui.screens.worker.screen import WorkerScreen
from tui.theming import BUILT_IN, built_in
from tui.words.looks import LEGEND, chip, glyph

Compare = Callable[..., bool]
_RUNNING = "implement/worker_1"
_LARGE, _SMALL, _WIDE = (120, 36), (80, 24), (200, 50)


@pytest.fixture(autouse=True)
def _one_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clock times are pictures too: everywhere the same."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _app(view: EngineView | None = None, worker: str = "", **options: bool) -> PlaitApp:
    diff = diff_of_reader()
    port = FakePort(
        csvlite() if view is None else view,
        logs={_RUNNING: log_lines(60)},
        diffs={_RUNNING: diff, "port/worker_1": diff},
    )
    flags = {"is_plain": False, **options}
    app = PlaitApp(port, options=Options(clock=lambda: NOW, has_truecolor=True, **flags))
    app.session.can_animate = False
    app.session.worker = worker
    return app


def _startable(view: EngineView | None = None) -> PlaitApp:
    app = _app(view)
    app.session.starter = Here(Path("/nowhere"))
    return app


def _figures(name: str, attempts: int) -> Figures:
    return Figures(
        name=name,
        runs=attempts // 2,
        attempts=attempts,
        success=attempts - 2,
        first_checks=attempts - 3,
        first_passed=attempts // 2,
        conflicts=attempts // 5,
        proposed=4 * attempts,
        kept=3 * attempts,
        left_out=2,
        review_s=300.0 * attempts,
        landed=attempts // 2,
        usd=0.31 * attempts,
        tokens=20_000 * attempts,
    )


def _counted(question: CountAttempts) -> tuple[Figures, ...]:
    if question.by is not Axis.WEEK:
        return (_figures("claude", 31), _figures("codex", 12))
    weeks = (9, 4, 7, 12, 15)
    return tuple(_figures(week_of(NOW - n * 604_800), count) for n, count in enumerate(weeks))


def _counting() -> PlaitApp:
    app = _app()
    port: Any = app.session.bridge.port
    port.counted = _counted
    return app


_PICTURES = {
    "fleet_puts_first_who_needs_you": (_app, _LARGE, ()),
    "fleet_has_a_rail_when_wide": (_app, _WIDE, ()),
    "fleet_is_a_table_when_narrow": (lambda: _app(many(20)), _SMALL, ()),
    "fleet_is_a_list_when_tiny": (_app, (36, 8), ()),
    "fleet_shows_one_worker_large": (lambda: _app(many(1)), _SMALL, ("plus",)),
    "worker_shows_its_log_and_limits": (_app, _LARGE, ("j", "2")),
    "worker_holds_where_it_is_read": (lambda: _app(worker=_RUNNING), _SMALL, ("2", "k", "k")),
    "diff_marks_words_in_one_column": (_app, _LARGE, ("j", "d")),
    "diff_sets_sides_beside_each_other_when_wide": (_app, _WIDE, ("j", "d", "space")),
    "inbox_shows_the_question_in_full": (_app, _LARGE, ("0",)),
    "inbox_is_one_column_when_narrow": (_app, _SMALL, ("0",)),
    "plan_joins_steps_and_shows_time": (_app, _LARGE, ("g", "p")),
    "runs_are_listed": (_app, _SMALL, ("g", "h")),
    "stats_are_a_table_with_plots_week_by_week": (_counting, _LARGE, ("g", "s")),
    "help_grays_keys_with_reasons": (_app, _LARGE, ("question_mark", *"land")),
    "palette_lists_every_action": (_app, _SMALL, ("colon",)),
    "before_the_first_run_the_ways_to_begin": (
        lambda: _app(EngineView(repository="csvlite")),
        _SMALL,
        (),
    ),
    "before_the_first_run_the_agents_that_are_here": (
        lambda: _startable(EngineView(repository="csvlite")),
        _LARGE,
        (),
    ),
    "a_run_is_composed_with_its_plan": (_startable, _SMALL, ("S", *"fix the reader", "tab")),
    "a_run_of_an_agent_that_is_not_here": (_startable, _LARGE, ("S", "x", "tab", "right")),
    "leaving_asks_once": (_app, _SMALL, ("q",)),
    "stopping_asks_on_the_message_line": (_app, _LARGE, ("j", "x")),
    "a_refusal_says_why": (_app, _LARGE, ("j", "r")),
    "steering_opens_a_box": (_app, _LARGE, ("j", "s", *"look at io.py")),
    "without_color_and_signs": (lambda: _app(is_plain=True, is_ascii=True), _LARGE, ()),
}


@pytest.mark.parametrize("name", _PICTURES)
def test_picture(snap_compare: Compare, name: str):
    make, size, press = _PICTURES[name]
    keys = ["space" if key == " " else key for key in press]
    app = make()

    async def run_before(_: Pilot[None]) -> None:
        console = Console(app, app.session.bridge.port)  # type: ignore[arg-type]
        await console.until(lambda: console.has_drawn)
        await console.press()
        for key in keys:
            await console.press(key)
            await console.until(lambda: _is_loaded(app))
            await console.press()

    assert snap_compare(app, terminal_size=size, run_before=run_before)


def _is_loaded(app: PlaitApp) -> bool:
    """Return what the screen has asked for is there."""
    screen = app.screen
    if isinstance(screen, WorkerScreen):
        return bool(screen.reading.log.lines or not app.session.worker)
    return not isinstance(screen, DiffScreen) or screen.pane.diff is not None


def _sample() -> list[Row]:
    """Everything that a theme colors, in a few rows."""
    states = [span for look in LEGEND for span in (glyph(look), Span(" "), chip(look), Span(" "))]
    kept = Ink(Role.KEYWORD)
    return [
        grounded(
            fit(words(Span(" plait ", Ink(Role.ACCENT, bold=True)), "muted ", Span("text")), 60),
            Role.PANEL,
        ),
        *[tuple(states[start : start + 12]) for start in range(0, len(states), 12)],
        words("mem ", *meter(0.4, 12, Level.ENFORCED), " ", *meter(0.9, 12, Level.SAMPLED)),
        grounded(fit((Span("▌", Ink(Role.FOCUS)), Span("under the cursor")), 60), Role.SELECTION),
        fit(
            (
                Span("- ", Ink(Role.REMOVED, Role.REMOVED_GROUND)),
                Span("raise ", kept._replace(ground=Role.REMOVED_GROUND)),
                Span("ParseError", Ink(Role.TEXT, Role.REMOVED_WORD)),
            ),
            60,
            Ink(ground=Role.REMOVED_GROUND),
        ),
        fit(
            (
                Span("+ ", Ink(Role.ADDED, Role.ADDED_GROUND)),
                Span("raise ", kept._replace(ground=Role.ADDED_GROUND)),
                Span("OpenQuote", Ink(Role.TEXT, Role.ADDED_WORD)),
            ),
            60,
            Ink(ground=Role.ADDED_GROUND),
        ),
        (
            Span("def", Ink(Role.KEYWORD)),
            Span(" parse", Ink(Role.DEFINITION, bold=True)),
            Span("(s: "),
            Span("str", Ink(Role.TYPE)),
            Span(" = "),
            Span('"x"', Ink(Role.STRING)),
            Span(", n="),
            Span("1", Ink(Role.NUMBER)),
            Span("):  "),
            Span("# one line", Ink(Role.COMMENT, italic=True)),
        ),
    ]


class _Painted(Inked):
    """Rows in a theme of their own."""

    def __init__(self, theme: str) -> None:
        super().__init__(classes="painted")
        self.palette, self.is_ascii = Palette(built_in(theme)), False
        self.rows = ((Span(theme, Ink(bold=True)),), *_sample())

    @property
    def painter(self) -> Painter:
        return self


class _Themes(App[None]):
    """Six boards, each in its own theme."""

    CSS = "Grid { grid-size: 2 3; }"

    def compose(self) -> ComposeResult:
        with Grid():
            for name in BUILT_IN:
                yield _Painted(name)


def test_all_themes(snap_compare: Compare):
    assert snap_compare(_Themes(), terminal_size=(124, 42))

"""The look of Review and Compare, held still: one picture for every kind of card."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from textual.pilot import Pilot

from engine.merge import FileConflict
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console
from tests.support.review_consoles import (
    KINDS,
    WHO,
    ReviewPort,
    choosing_view,
    conflicted_view,
    conflicts,
)
from tests.support.world import NOW
from tui.app import Options, PlaitApp
from tui.screens.compare.screen import CompareScreen
from tui.screens.review.screen import ReviewScreen

Compare = Callable[..., bool]
_LARGE, _SMALL, _WIDE = (120, 36), (80, 24), (200, 50)
_FIRST = "implement/worker_1"


@pytest.fixture(autouse=True)
def _one_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clock times are pictures too: everywhere the same."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _app(port: ReviewPort, worker: str, **options: bool) -> PlaitApp:
    flags = {"is_plain": False, **options}
    app = PlaitApp(port, options=Options(clock=lambda: NOW, has_truecolor=True, **flags))
    app.session.can_animate = False
    app.session.worker = worker
    return app


def _review(*files: FileConflict, **options: bool) -> PlaitApp:
    return _app(ReviewPort(conflicted_view(), files=files or conflicts()), WHO, **options)


def _compare(**options: bool) -> PlaitApp:
    diffs = {_FIRST: diff_of_reader()}
    return _app(ReviewPort(choosing_view(), diffs=diffs), _FIRST, **options)


_PICTURES = {
    "review_is_a_card": (_review, _LARGE, ("5",)),
    "review_is_a_card_when_narrow": (_review, _SMALL, ("5",)),
    "review_is_three_columns_when_wide": (_review, _WIDE, ("5", "t")),
    "review_proposes_and_shows_what_would_come_of_it": (_review, _LARGE, ("5", "J")),
    "review_picks_single_lines": (_review, _LARGE, ("5", "v", "j", "space", "j", "space")),
    "review_edits_a_hunk_in_a_box": (_review, _LARGE, ("5", "e")),
    "review_shows_who_and_why": (_review, _LARGE, ("5", "enter")),
    "review_takes_the_rest_of_a_file": (_review, _LARGE, ("5", "M")),
    "review_without_color_and_signs": (
        lambda: _review(is_plain=True, is_ascii=True),
        _LARGE,
        ("5", "t"),
    ),
    "compare_sets_candidates_beside_each_other": (_compare, _LARGE, ("4", "space", "n")),
    "compare_is_short_when_narrow": (_compare, _SMALL, ("4", "space")),
    "compare_checks_what_was_woven": (_compare, _WIDE, ("4", "space", "!")),
    "compare_shows_a_pair_directly": (_compare, _LARGE, ("4", "d")),
}


@pytest.mark.parametrize("name", _PICTURES)
def test_picture(snap_compare: Compare, name: str):
    make, size, press = _PICTURES[name]
    _same(snap_compare, make(), size, press)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "contents"])
def test_card_of(snap_compare: Compare, kind: str):
    _same(snap_compare, _review(KINDS[kind]()), _LARGE, ("5",))


def _same(compare: Compare, app: PlaitApp, size: tuple[int, int], press: Sequence[str]) -> None:
    async def run_before(_: Pilot[None]) -> None:
        console = Console(app, app.session.bridge.port)  # type: ignore[arg-type]
        await console.until(lambda: console.has_drawn)
        await console.press()
        for key in press:
            await console.press(key)
            await console.until(lambda: _is_loaded(app))
            await console.press()

    assert compare(app, terminal_size=size, run_before=run_before)


def _is_loaded(app: PlaitApp) -> bool:
    """Return what the screen has asked for is there."""
    screen = app.screen
    if isinstance(screen, ReviewScreen | CompareScreen):
        return screen.pane.offers != [] if isinstance(screen, ReviewScreen) else _has_table(screen)
    return True


def _has_table(screen: CompareScreen) -> bool:
    return screen.pane.table is not None

"""Whatever is drawn on whatever ground can be read, in every theme: measured on the screens."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.review_consoles import WHO, ReviewPort, choosing_view, conflicted_view, conflicts
from tests.support.world import FakePort, csvlite, log_lines
from tui.ink import Role, Row
from tui.theming import BUILT_IN, built_in, contrast

pytestmark = pytest.mark.anyio
_TEXT, _SHAPE = 4.5, 3.0
_WIDE = (200, 50)
Pairs = dict[tuple[Role, Role, float], str]


def _note(pairs: Pairs, rows: Iterable[Row]) -> None:
    """Every color with its ground, what it must reach, and where it was seen."""
    for row in rows:
        for text, ink in row:
            if text.strip():
                least = _TEXT if any(map(str.isalnum, text)) else _SHAPE
                pairs[ink.role, ink.ground or Role.BACKGROUND, least] = text.strip()


async def _walk(pairs: Pairs, console: Console, *ideas: str) -> None:
    _note(pairs, console.rows)
    for idea in ideas:
        await console.do(idea)
        _note(pairs, console.rows)


@asynccontextmanager
async def _diffing(size: tuple[int, int]) -> AsyncIterator[Console]:
    reader = diff_of_reader()
    diffs = {"implement/worker_1": reader, "port/worker_1": reader}
    logs = {"implement/worker_1": log_lines(200)}
    async with opened(port=FakePort(csvlite(), logs=logs, diffs=diffs), size=size) as console:
        yield console


@pytest.mark.long
async def test_every_color_can_be_read_on_every_ground_it_is_drawn_on():
    pairs: Pairs = {}
    async with _diffing(_WIDE) as console:
        console.screen.session.worker = WHO
        await _walk(pairs, console, "go_worker", "right", "go_diff")
        await console.shows("src/csvlite/reader.py")
        await _walk(pairs, console, "down", "select", "down", "go_inbox", "go_plan", "go_runs")
        await _walk(pairs, console, "go_fleet", "mark", "no_wide", "leave", "help")
    for view, worker, there, size in (
        (conflicted_view(), WHO, "go_review", _WIDE),
        (conflicted_view(), WHO, "go_review", (120, 36)),
        (choosing_view(), "implement/worker_1", "go_compare", (120, 36)),
    ):
        port = ReviewPort(view, files=conflicts(), diffs={worker: diff_of_reader()})
        async with opened(port=port, size=size) as console:
            console.screen.session.worker = worker
            await _walk(pairs, console, there, "down", "right", "left")
    assert len(pairs) > 40
    bad = [
        f"{name}: {role} on {ground}, {found:.2f} of {least}: {seen!r}"
        for name in BUILT_IN
        for (role, ground, least), seen in pairs.items()
        if (found := contrast(built_in(name).colors[role], built_in(name).colors[ground])) < least
    ]
    assert bad == []

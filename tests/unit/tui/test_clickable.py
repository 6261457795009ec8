"""Everything that looks clickable is: keys wherever they are shown, names, beads."""

import pytest

from engine.messages.results import EngineView
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.mouse import click
from tests.support.review_consoles import WHO, ReviewPort, choosing_view
from tests.support.reviewing import port as conflicts_port
from tests.support.world import FakePort, csvlite, log_lines, many
from tests.unit.tui.test_stats import counting_port
from tui.ink import KEY, Span
from tui.kit.bindings import pressed_by

pytestmark = pytest.mark.anyio
RUNNING, ASKS, CLASHES = "implement/worker_1", "implement/worker_2", "port/worker_3"
SIZES = [(80, 24), (120, 36), (200, 50)]
SCREENS = ("fleet", "worker", "diff", "compare", "review", "inbox", "plan", "runs", "stats")


def _port(screen: str) -> FakePort:
    diffs = {RUNNING: diff_of_reader()}
    if screen == "review":
        return conflicts_port()
    if screen == "compare":
        return ReviewPort(choosing_view(), diffs=diffs)
    if screen == "stats":
        return counting_port()[0]
    return FakePort(csvlite(), logs={RUNNING: log_lines(60)}, diffs=diffs)


def _dead_keys(console: Console) -> list[Span]:
    """Return what is drawn as a key and answers no click."""
    return [
        span
        for row in console.rows
        for span in row
        if (span.ink.role, span.ink.bold, span.ink.does) == (KEY.role, KEY.bold, "")
        and span.ink.ground is None
        and span.text.strip()
        and not pressed_by(span.text)
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("screen", SCREENS)
async def test_every_key_that_is_shown_can_be_clicked(screen: str, size: tuple[int, int]):
    async with opened(port=_port(screen), size=size) as console:
        console.app.session.worker = WHO if screen == "review" else RUNNING
        await console.do(f"go_{screen}")
        await console.until(lambda: console.screen.kind == screen)
        assert _dead_keys(console) == []


async def test_a_command_on_the_empty_screen_is_no_key():
    empty = FakePort(EngineView(repository="here"))
    async with opened(port=empty) as console:
        await console.shows("plait doctor")
        assert [span.text.strip() for span in _dead_keys(console)] == [
            "plait demo",
            "plait init",
            "plait doctor",
        ]


async def test_a_key_in_a_sentence_is_pressed_by_a_click():
    async with opened() as console:
        console.app.session.worker = RUNNING
        await console.do("no")
        await console.shows("x y yes", "esc n no")
        await click(console, "esc n")
        await console.until(lambda: "esc n no" not in console.text)
        assert console.port.commands == []
        await console.do("mark")
        await console.shows("1 marked")
        await click(console, "esc clears the marks")
        await console.until(lambda: not console.app.session.marks)


async def test_the_keys_of_a_box_for_text_are_pressed_by_a_click():
    async with opened() as console:
        await console.do("steer")
        await console.type("mind the tests")
        await click(console, "esc closes")
        await console.until(lambda: console.screen.box.writing is None)
        assert console.port.commands == []
        await console.do("steer")
        await click(console, "enter sends")
        await console.until(lambda: bool(console.port.commands))


async def test_beads_names_and_figures_lead_to_what_they_are_about():
    async with opened(size=(200, 50)) as console:
        beads = console.text.split("\n")[1]
        await console.pilot.click(offset=(beads.index("▄"), 1))
        await console.until(lambda: console.app.session.worker == "design/worker_1")
        await click(console, "with port/worker_3")
        assert console.app.session.worker == "design/worker_1"  # a word between two names
        side = console.screen.query_one("#rail").region
        clash = next(
            y for y, row in enumerate(console.text.split("\n")) if " with " in row[side.x :]
        )
        at = console.text.split("\n")[clash].index(CLASHES, side.x)
        await console.pilot.click(offset=(at, clash))
        await console.until(lambda: console.app.session.worker == CLASHES)
        await click(console, "fix 2f1c")
        await console.until(lambda: console.screen.kind == "runs")


async def test_who_needs_you_is_counted_and_the_count_leads_there():
    async with opened(port=FakePort(many(20)), size=(80, 24)) as console:
        await click(console, "need you")
        await console.until(lambda: console.screen.kind == "inbox")


async def test_the_change_beside_a_log_opens_its_diff():
    async with opened(port=_port("worker")) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("CHANGE")
        side = console.screen.query_one("#side").region
        rows = console.text.split("\n")
        y = next(y for y, row in enumerate(rows) if row[side.x :].find("CHANGE") >= 0) + 1
        await console.pilot.click(offset=(side.x + 3, y))
        await console.until(lambda: console.screen.kind == "diff")

"""The files of a diff stand by risk on a key, each with its reasons, and back as git has them."""

import pytest

from engine.messages.diffs import ChangeDiff
from engine.messages.merging import FileRisk
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.review_consoles import ReviewPort, choosing_view
from tests.support.reviewing import port as conflicts_port

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"
READER, IO, PICTURE, LOCK = (
    "src/csvlite/reader.py",
    "src/csvlite/io.py",
    "data/quotes.bin",
    "uv.lock",
)
RISKS = (
    FileRisk(path=IO, score=40.0, reasons=("changes public names: read_block", "70 lines")),
    FileRisk(path=LOCK, score=2.0, reasons=("touched by 2 of the last 5 commits",)),
    FileRisk(path=READER, score=0.0),
)


def _port(**more: object) -> ReviewPort:
    diffs = {RUNNING: diff_of_reader(**{"is_live": False, **more})}
    return ReviewPort(choosing_view(), diffs=diffs, risky=RISKS)


async def _diff(console: Console) -> Console:
    console.app.session.worker = RUNNING
    await console.do("go_diff")
    return await console.shows("hunk 1 of 3")


def _order(console: Console, *names: str) -> list[str]:
    """Return these names in the order in which the list of files has them."""
    rows = console.screen.query_one("#files").text
    return sorted(names, key=rows.index)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_the_riskiest_stands_first_with_its_reasons_and_the_cursor_stays(
    size: tuple[int, int],
):
    names = ("reader.py", "io.py", "quotes.bin", "uv.lock")
    async with opened(port=_port(), size=size) as console:
        await _diff(console)
        pane = console.screen.reading.pane
        assert _order(console, *names) == list(names)
        here = pane.key
        await console.do("show_order")
        await console.shows("the files are sorted by risk", "changes public names", "touched by 2")
        assert _order(console, *names) == ["io.py", "uv.lock", "reader.py", "quotes.bin"]
        assert pane.key == here
        await console.do("first", "unit_down")
        assert pane.path == LOCK  # the hunks stand in the order of the list
        await console.do("show_order")
        await console.shows("the files are in git's order")
        assert _order(console, *names) == list(names)
        assert pane.path == LOCK


async def test_the_order_stays_where_the_same_change_is_read_again():
    given = _port()
    async with opened(port=given, size=(120, 36)) as console:
        await _diff(console)
        await console.do("show_order", "diff")
        await console.shows("compared with", "by risk", "70 lines")


async def test_a_change_of_one_file_has_no_order_but_says_its_reasons():
    alone = diff_of_reader().files[1:2]
    async with opened(port=_port(files=alone)) as console:
        console.app.session.worker = RUNNING
        await console.do("go_diff")
        await console.shows("hunk 1 of 1")
        await console.do("show_order")
        await console.shows("the only file: changes public names: read_block; 70 lines")


async def test_a_change_that_is_still_written_has_no_risk_yet():
    async with opened(port=_port(is_live=True)) as console:
        await _diff(console)
        await console.do("show_order")
        await console.shows(",o refused", "still writes it")


async def test_a_file_is_known_by_its_name_as_it_is_not_as_it_is_shown():
    odd = ChangeDiff(against="main", files=diff_of_reader().files)
    vars(odd)["paths"] = ("a\x1b.py", IO, PICTURE, LOCK)
    given = _port()
    given.risky = (FileRisk(path="a\x1b.py", score=9.0, reasons=("60 lines",)),)
    given.diffs[RUNNING] = odd
    async with opened(port=given, size=(120, 36)) as console:
        await _diff(console)
        await console.do("show_order")
        await console.shows("60 lines")


async def test_a_diff_that_is_not_there_has_no_order():
    async with opened(port=conflicts_port()) as console:
        await console.do("go_diff")
        console.screen.reading.pane.show(None)
        await console.do("show_order")
        await console.shows(",o refused")

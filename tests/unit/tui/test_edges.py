"""Edges of panes and columns are dragged by the mouse, kept, and given back by a double click."""

from pathlib import Path

import pytest

from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.mouse import at, drag_to
from tests.support.review_consoles import WHO, ReviewPort, choosing_view
from tests.support.reviewing import port as conflicts_port
from tests.support.world import NOW, FakePort, csvlite, log_lines, many
from tests.unit.tui.test_stats import counting_port
from tui.app import Options
from tui.ink import row_width
from tui.kit.inked import Inked

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"
WIDE, NARROW = (200, 50), (80, 24)


def _options(path: Path) -> Options:
    return Options(clock=lambda: NOW, is_plain=False, has_truecolor=True, memory=path)


def _edge(console: Console, pane: Inked) -> tuple[int, int]:
    """Return a place on the border of a pane."""
    region = pane.region
    return (region.right - 1 if pane.edge_way > 0 else region.x), region.y + region.height // 2


async def _over(console: Console, head: str) -> None:
    """Move the mouse over a table's head, which shows the marks of its edges there."""
    await console.pilot.hover(offset=at(console, head))
    await console.until(lambda: "│" in console.text.split("\n")[at(console, head)[1]])


def _end_of_head(console: Console, head: str, column: str) -> tuple[int, int]:
    """Return the first mark of an edge behind the name of a column, in a table's head."""
    _, y = at(console, head)
    row = console.text.split("\n")[y]
    return row.index("│", row.index(column)), y


@pytest.mark.parametrize(("by", "width"), [(-20, 70), (10, 40), (-150, 100), (49, 30)])
async def test_the_edge_of_the_rail_is_dragged_and_its_rows_fill_it(by: int, width: int):
    async with opened(size=WIDE) as console:
        side = console.screen.query_one("#rail", Inked)
        assert side.outer_size.width == 50
        x, y = _edge(console, side)
        await drag_to(console, (x, y), (x + by, y))
        await console.until(lambda: side.outer_size.width == width)
        await console.until(lambda: side.rows and row_width(side.rows[0]) == side.size.width)
        assert console.app.mouse_captured is None
        await console.pilot.click(offset=_edge(console, side), times=2)
        await console.until(lambda: side.outer_size.width == 50)


async def test_the_rail_is_not_dragged_by_its_middle():
    async with opened(size=WIDE) as console:
        side = console.screen.query_one("#rail", Inked)
        await drag_to(console, (side.region.x + 20, 20), (side.region.x, 20))
        assert side.outer_size.width == 50


def _port(screen: str) -> FakePort:
    diffs = {RUNNING: diff_of_reader()}
    if screen == "review":
        return conflicts_port()
    if screen == "compare":
        return ReviewPort(choosing_view(), diffs=diffs)
    return FakePort(csvlite(), logs={RUNNING: log_lines(60)}, diffs=diffs)


@pytest.mark.parametrize(
    ("screen", "pane"),
    [
        ("fleet", "rail"),
        ("worker", "side"),
        ("diff", "files"),
        ("compare", "left"),
        ("review", "left"),
        ("inbox", "items"),
    ],
)
async def test_every_pane_beside_another_is_dragged_and_its_text_is_not_selected(
    screen: str, pane: str
):
    async with opened(port=_port(screen), size=WIDE) as console:
        console.app.session.worker = WHO if screen == "review" else RUNNING
        await console.do(f"go_{screen}")
        side = console.screen.query_one(f"#{pane}", Inked)
        await console.until(lambda: side.region.height > 2)
        before = side.outer_size.width
        x, y = _edge(console, side)
        by = -5 * side.edge_way
        await console.pilot.hover(offset=(x, y))
        assert side.has_class("-edge")
        await drag_to(console, (x, y), (x + by, y))
        await console.until(lambda: side.outer_size.width == before - 5)
        assert not console.screen.selections
        assert console.app.session.widths == {f"{screen}.{pane}": before - 5}
        await console.pilot.hover(offset=(x + 3 * by, y))
        assert not side.has_class("-edge")
        await console.pilot.click(offset=_edge(console, side), times=2)
        await console.until(lambda: side.outer_size.width == before)
        assert console.app.session.widths == {}


async def test_what_was_dragged_is_there_again_the_next_time(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(size=WIDE, options=_options(memory)) as console:
        side = console.screen.query_one("#rail", Inked)
        x, y = _edge(console, side)
        await drag_to(console, (x, y), (x - 12, y))
    async with opened(size=WIDE, options=_options(memory)) as console:
        side = console.screen.query_one("#rail", Inked)
        await console.until(lambda: side.outer_size.width == 62)


async def test_a_narrow_diff_keeps_its_files_above_whatever_was_dragged():
    async with opened(port=_port("diff"), size=NARROW) as console:
        console.app.session.widths["diff.files"] = 33
        console.app.session.worker = RUNNING
        await console.do("go_diff")
        files = console.screen.query_one("#files", Inked)
        await console.until(lambda: files.outer_size.width == 78)
        right = files.region.right - 1, files.region.y
        await drag_to(console, right, (right[0] - 9, right[1]))
        assert console.app.session.widths == {"diff.files": 33}


async def test_columns_of_the_table_are_dragged():
    async with opened(port=FakePort(many(20)), size=NARROW) as console:
        await console.shows("WORKER", "NOW", "TIME")
        await _over(console, "WORKER")
        before = console.app.session.worker
        x, y = _end_of_head(console, "WORKER", "NOW")
        assert console.text.split("\n")[y][x:].startswith("│ TIME"), console.text
        await drag_to(console, (x, y), (x - 6, y))
        await console.until(lambda: _end_of_head(console, "WORKER", "NOW") == (x - 6, y))
        assert console.app.session.worker == before
        await console.pilot.click(offset=(x - 6, y), times=2)
        await console.until(lambda: _end_of_head(console, "WORKER", "NOW") == (x, y))


async def test_a_name_in_a_column_that_was_made_narrow_keeps_its_end():
    async with opened(port=FakePort(many(20)), size=NARROW) as console:
        await console.shows("WORKER", "NOW", "port/module_17.py")
        await _over(console, "WORKER")
        x, y = _end_of_head(console, "WORKER", "WORKER")
        await drag_to(console, (x, y), (x - 3, y))
        await console.shows("…/module_17.py", "…t/module_7.py")


async def test_no_column_is_dragged_over_what_a_worker_does_or_out_of_sight():
    async with opened(port=FakePort(many(20)), size=NARROW) as console:
        await console.shows("WORKER", "NOW", "TIME")
        await _over(console, "WORKER")
        x, y = _end_of_head(console, "WORKER", "NOW")
        await drag_to(console, (x, y), (1, y))
        await console.until(lambda: _end_of_head(console, "WORKER", "NOW")[0] < x)
        head = console.text.split("\n")[y]
        assert head.index("TIME") - head.index("NOW") >= 18


async def test_columns_of_runs_and_stats_and_the_names_of_compare_are_dragged():
    counted, _ = counting_port()
    for screen, head, port in (
        ("runs", "BEGAN", _port("runs")),
        ("stats", "ATTEMPTS", counted),
        ("compare", "", _port("compare")),
    ):
        async with opened(port=port, size=(120, 36)) as console:
            console.app.session.worker = RUNNING
            await console.do(f"go_{screen}")
            if head:
                await console.shows(head)
                await _over(console, head)
                x, y = _end_of_head(console, head, head)
            else:
                titles = console.screen.query_one("#titles", Inked)
                await console.until(lambda: titles.region.width > 1)  # noqa: B023
                await console.pilot.hover(offset=titles.region.offset)
                x, y = titles.region.right - 1, titles.region.y
            await console.until(lambda: console.text.split("\n")[y][x] == "│")  # noqa: B023
            await drag_to(console, (x, y), (x + 4, y))
            (cells,) = console.app.session.widths.values()
            await console.until(lambda: console.text.split("\n")[y][x + 4] == "│")  # noqa: B023
            await console.pilot.click(offset=(x + 4, y), times=2)
            await console.pilot.hover(offset=(x, y))
            await console.until(lambda: console.text.split("\n")[y][x] == "│")  # noqa: B023
            assert cells > 4
            assert not console.app.session.widths


def _bars(console: Console) -> tuple[int, int, int]:
    """Return where the two bars between the columns of Review are, and a row that has them."""
    _, y = at(console, "RESULT  ")
    row = console.text.split("\n")[y]
    left = row.rindex("│", 0, row.index("RESULT  "))
    return left, row.index("│", row.index("RESULT  ")), y


async def _in_columns(console: Console) -> None:
    console.app.session.worker = WHO
    await console.do("go_review")
    await console.shows("conflict 1 of")
    if console.app.size.width < 160:
        await console.do("show_split")
    await console.shows("RESULT  ")


async def test_columns_of_review_are_dragged_and_their_code_is_not_selected():
    async with opened(port=_port("review"), size=WIDE) as console:
        await _in_columns(console)
        left, right, y = _bars(console)
        await console.pilot.hover(offset=(left, y + 4))
        assert console.screen.query_one("#conflict", Inked).has_class("-edge")
        await drag_to(console, (left, y + 4), (left - 12, y + 4))
        await console.until(lambda: _bars(console)[:2] == (left - 12, right))
        await drag_to(console, (right, y), (right + 9, y))
        await console.until(lambda: _bars(console)[:2] == (left - 12, right + 9))
        assert not console.screen.selections
        assert set(console.app.session.widths) == {"review.target", "review.incoming"}
        for x in (left - 12, right + 9):
            await console.pilot.click(offset=(x, y), times=2)
        await console.until(lambda: _bars(console)[:2] == (left, right))
        assert not console.app.session.widths


async def test_no_column_of_review_is_dragged_out_of_sight_on_a_narrow_screen():
    async with opened(port=_port("review"), size=NARROW) as console:
        await _in_columns(console)
        left, right, y = _bars(console)
        for start, end in ((left, 0), (left, 79), (right, 0), (right, 79)):
            await drag_to(console, (start, y), (end, y))
        left, right, _ = _bars(console)
        begin = console.screen.query_one("#conflict", Inked).content_region.x
        assert left - begin - 1 >= 20
        assert right - left - 3 >= 20
        assert console.app.size.width - right >= 20

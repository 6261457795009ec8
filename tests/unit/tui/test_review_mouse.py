"""Conflicts under the mouse: files are clicked, pages scroll, texts are selected and copied."""

import pytest

from tests.support.consoles import Console, opened, strips_on
from tests.support.mouse import at, click, drag, wheel
from tests.support.review_consoles import WHO, imports, io_py
from tests.support.reviewing import port
from tests.support.world import NOW
from tui.app import Options

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def _opened(console: Console) -> Console:
    console.app.session.worker = WHO
    await console.do("go_review")
    return await console.shows("conflict 1 of 2")


def _of_page(console: Console, y: int) -> str:
    """A row of the page, without the scrollbar."""
    return console.text.split("\n")[y].partition("│ ")[2].rstrip("│┃ ")


async def test_a_click_on_a_file_looks_at_its_conflict():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        await click(console, "errors.py")
        await console.shows("▌≠ errors.py", "from csvlite.core import")


async def test_a_conflict_in_full_scrolls_by_wheel_and_key_and_begins_at_its_top_again():
    async with opened(port=port(io_py(), imports()), size=(110, 20)) as console:
        await _opened(console)
        await console.do("open")
        await console.shows("src/csvlite/io.py  ")
        await wheel(console, 20, x=80, y=10)
        top = _of_page(console, 3)
        assert top
        assert "src/csvlite/io.py  " not in top
        await console.do("up")
        assert _of_page(console, 4) == top
        await console.do("leave", "open")
        await console.shows("src/csvlite/io.py  ")


async def test_the_text_of_a_side_is_selected_and_copied():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        place = at(console, "data = f.read(size or MAX_BLOCK)")
        await drag(console, place, len("data = f.read"))
        await console.do("copy")
        assert console.app.clipboard == "data = f.read"


async def test_a_click_on_a_proposal_shows_what_comes_of_it_and_two_take_it():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        await click(console, "both, port/worker_1 first")
        assert "▌" in console.text.split("\n")[at(console, "both, port/worker_1 first")[1]]
        await console.shows("RESULT if you press B", "still open")
        await click(console, "both, main first", times=2)
        await console.shows("conflict 2 of 2")
        await console.do("previous_hunk")
        await console.shows("chosen: both, target first")


@pytest.mark.parametrize("size", [(120, 36), (180, 40)])
async def test_a_click_on_the_name_of_a_side_takes_it_and_a_second_one_at_once_no_other(
    size: tuple[int, int],
):
    review = port(io_py(), imports())
    async with opened(port=review, size=size) as console:
        console.app.session.worker = WHO
        await console.do("go_review")
        await console.shows(" t  main")
        x, y = at(console, " t  main  since")
        await console.pilot.click(offset=(x + 1, y), times=2)
        await console.do()
        assert len(review.actions) == 1


async def test_a_click_on_another_conflict_of_the_columns_goes_to_it():
    async with opened(port=port(io_py(), imports()), size=(180, 40)) as console:
        console.app.session.worker = WHO
        await console.do("go_review")
        await console.shows("━━ ≠ conflict 1 of 2")
        await click(console, "≠ conflict 2 of 2")
        await console.shows("━━ ≠ conflict 2 of 2")


async def test_a_click_picks_a_line_and_another_leaves_it():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        await console.do("select")
        await console.shows("LINES 0")
        await click(console, "data = f.read(size or MAX_BLOCK)")
        await console.shows("LINES 1")
        await click(console, "data = f.read(size or MAX_BLOCK)")
        await console.shows("LINES 0")


async def test_a_click_on_the_map_goes_to_that_conflict():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        rows = console.text.split("\n")
        marks = [y for y, row in enumerate(rows) if row.rstrip().endswith("≠")]
        await console.pilot.click(offset=(len(rows[marks[-1]].rstrip()) - 1, marks[-1]))
        await console.shows("▌≠ errors.py")


async def test_escape_leaves_a_selection_before_all_else():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        await console.do("open")
        await drag(console, at(console, "data = f.read(size or MAX_BLOCK)"), 6)
        await console.press("escape")
        assert console.screen.get_selected_text() is None
        await console.shows("src/csvlite/io.py  ")
        await console.press("escape")
        await console.shows("conflict 1 of 2")


@pytest.mark.parametrize("is_ascii", [False, True])
async def test_selected_text_is_reversed_where_there_is_no_color(*, is_ascii: bool):
    options = Options(clock=lambda: NOW, is_plain=True, is_ascii=is_ascii)
    async with opened(port=port(io_py(), imports()), options=options) as console:
        await _opened(console)
        chosen = "data = f.read"
        x, y = at(console, chosen)
        await drag(console, (x, y), len(chosen))
        reversed_ = "".join(
            segment.text for segment in strips_on(console.app)[y] if segment.style.reverse
        )
        assert reversed_ == chosen
        await click(console, "neither of them")  # its row is filled, as the cursor's
        await drag(console, at(console, "neither of them"), len("neither"))
        row = strips_on(console.app)[at(console, "neither of them")[1]]
        parts = {segment.text.strip(): segment.style.reverse for segment in row}
        assert (parts["neither"], parts["of them"]) == (False, True)

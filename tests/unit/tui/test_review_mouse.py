"""Conflicts under the mouse: files are clicked, pages scroll, texts are selected and copied."""

import pytest
from textual.events import MouseScrollDown

from tests.support.consoles import Console, opened
from tests.support.review_consoles import WHO, imports, io_py
from tests.unit.tui.test_review import port

pytestmark = pytest.mark.anyio


async def _opened(console: Console) -> Console:
    console.app.session.worker = WHO
    await console.do("go_review")
    return await console.shows("conflict 1 of 2")


def _place(console: Console, text: str) -> tuple[int, int]:
    """Where a text stands on the screen."""
    rows = console.text.split("\n")
    y = next(n for n, row in enumerate(rows) if text in row)
    return rows[y].index(text), y


def _of_page(console: Console, y: int) -> str:
    """A row of the page, without the scrollbar."""
    return console.text.split("\n")[y].partition("│ ")[2].rstrip("│┃ ")


async def test_a_click_on_a_file_looks_at_its_conflict():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        await console.pilot.click(offset=_place(console, "errors.py"))
        await console.shows("▌≠ errors.py", "from csvlite.core import")


async def test_a_conflict_in_full_scrolls_by_wheel_and_key_and_begins_at_its_top_again():
    async with opened(port=port(io_py(), imports()), size=(110, 20)) as console:
        await _opened(console)
        await console.do("open")
        await console.shows("src/csvlite/io.py  ")
        for _ in range(20):
            await console.pilot._post_mouse_events([MouseScrollDown], offset=(80, 10))
        await console.pilot.pause()
        top = _of_page(console, 2)
        assert top
        assert "src/csvlite/io.py  " not in top
        await console.do("up")
        assert _of_page(console, 3) == top
        await console.do("leave", "open")
        await console.shows("src/csvlite/io.py  ")


async def test_the_text_of_a_side_is_selected_and_copied():
    async with opened(port=port(io_py(), imports())) as console:
        await _opened(console)
        x, y = _place(console, "data = f.read(size or MAX_BLOCK)")
        await console.pilot.mouse_down(offset=(x, y))
        await console.pilot.hover(offset=(x + len("data = f.rea"), y))
        await console.pilot.mouse_up(offset=(x + len("data = f.rea"), y))
        await console.do("copy")
        assert console.app.clipboard == "data = f.read"

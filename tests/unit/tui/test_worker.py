"""Worker: its log is scrolled, selected and clicked as any text of a terminal program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.geometry import Offset

from engine.messages.logs import LogChunk, LogKind, LogLine
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, csvlite, log_lines
from tui.screens.worker.log_view import LogView

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"


class CutPort(FakePort):
    """A port that has lost the beginning of its logs."""

    async def log(self, *of: Any, **more: Any) -> LogChunk:
        return replace(await super().log(*of, **more), first=12_000)


@asynccontextmanager
async def reading(
    lines: tuple[LogLine, ...],
    size: tuple[int, int] = (120, 36),
    port: type[FakePort] = FakePort,
) -> AsyncIterator[Console]:
    """A console that shows a worker's log."""
    async with opened(port=port(csvlite(), logs={RUNNING: lines}), size=size) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("FOLLOW", lines[-1].text[-6:])
        yield console


def said(*texts: str) -> tuple[LogLine, ...]:
    return tuple(LogLine(at=NOW, kind=LogKind.SAYS, text=text) for text in texts)


def place(console: Console, text: str) -> Offset:
    """Return where a text stands on the screen."""
    for y, line in enumerate(console.text.split("\n")):
        if text in line:
            return Offset(line.index(text), y)
    raise AssertionError(f"{text!r} is not there:\n{console.text}")


async def drag(console: Console, first: str, last: str) -> None:
    """Press the mouse where one text begins, and let it go where another one ends."""
    pilot, start, end = console.pilot, place(console, first), place(console, last)
    end = Offset(end.x + len(last) - 1, end.y)
    await pilot.hover(offset=start)
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


async def more(console: Console, *lines: LogLine) -> None:
    console.port.logs[RUNNING] += lines
    console.port.tell()
    count = len(console.port.logs[RUNNING])
    log = console.screen.query_one(LogView).log_lines
    await console.until(lambda: log.dropped + len(log.lines) == count)
    await console.pilot.pause()


async def test_selected_text_is_copied_without_times_and_labels_and_whole_where_it_wrapped():
    words = " ".join(f"word_{n}" for n in range(20))
    async with reading(said("first of all", words, "last of all"), (80, 24)) as console:
        await drag(console, "of all", "last o")
        await console.do("copy")
        assert console.app.clipboard == f"of all\n{words}\nlast o"


async def test_a_selection_stays_with_its_text_while_lines_come():
    async with reading(said(*(f"line {n}" for n in range(60)))) as console:
        await drag(console, "line 50", "line 52")
        await console.shows("HOLD")
        await more(console, *said(*(f"later {n}" for n in range(400))))
        assert console.screen.get_selected_text() == "line 50\nline 51\nline 52"
        await console.shows("line 52", "400 new lines below")
        await console.do("leave")
        assert console.screen.get_selected_text() is None
        await console.do("leave")
        await console.shows("FOLLOW", "later 399")


async def test_a_log_goes_on_under_a_dialog_and_stays_where_it_was():
    async with reading(said(*(f"line {n}" for n in range(60)))) as console:
        await drag(console, "line 50", "line 52")
        await console.do("help")
        await console.shows("Keys of Worker")
        await more(console, *said("said under a dialog"))
        await console.press("escape")
        await console.shows("1 new line below")
        assert console.screen.get_selected_text() == "line 50\nline 51\nline 52"
        await console.do("leave", "leave")
        await console.shows("FOLLOW", "said under a dialog")


async def test_a_selection_of_lines_that_have_gone_is_empty():
    async with reading(said(*(f"line {n}" for n in range(60)))) as console:
        await drag(console, "line 50", "line 52")
        log = console.screen.query_one(LogView).log_lines
        log.take(said(*(f"later {n}" for n in range(30_000))))
        console.screen.draw()
        assert console.screen.get_selected_text() == ""


async def test_the_text_beside_the_log_can_be_selected_too():
    async with reading(said("hello there")) as console:
        await drag(console, "check failed", "check failed")
        assert console.screen.get_selected_text() == "check failed"


async def test_the_wheel_holds_and_follows_again_at_the_end():
    async with reading(log_lines(200)) as console:
        view = console.screen.query_one(LogView)
        for _ in range(10):
            view.action_scroll_up()
        await console.shows("HOLD", "no new lines below")
        assert "test_199" not in console.text
        await more(console, *said("something new"))
        await console.shows("1 new line below")
        view.action_scroll_end()
        await console.shows("FOLLOW", "something new")


async def test_the_cursor_stays_on_screen_when_the_log_is_scrolled():
    async with reading(log_lines(200)) as console:
        await console.do("up")
        view = console.screen.query_one(LogView)
        view.scroll_to(y=20, animate=False)
        await console.shows("test_39")
        assert "▌" in console.text
        await console.do("up")
        assert "▌" in console.text


async def test_the_cursor_is_on_screen_after_any_move():
    async with reading(log_lines(300), (60, 12)) as console:
        for idea in ("page_up", "half_up", "first", "half_down", "previous", "up", "unit_down"):
            await console.do(idea)
            assert "▌" in console.text, idea


async def test_a_log_of_which_the_beginning_is_missing_says_how_much():
    async with reading(log_lines(50), port=CutPort) as console:
        await console.do("first")
        await console.shows("12,000 earlier lines: `plait logs` shows them")
        await console.do(*["down"] * 30)
        assert "earlier lines" not in console.text


async def test_another_level_of_detail_or_width_leaves_the_eye_where_it_was():
    async with reading(log_lines(300)) as console:
        await console.do("page_up", "page_up")
        here = next(line for line in console.text.split("\n") if "▌" in line)
        row = place(console, "▌").y
        await console.do("show_times")
        assert place(console, "▌").y == row
        await console.do("show_times", "zoom")
        assert here[:40] in next(line for line in console.text.split("\n") if "▌" in line)


async def test_a_click_on_the_scrollbar_leads_away_from_the_end():
    async with reading(log_lines(200), (80, 24)) as console:
        view = console.screen.query_one(LogView)
        await console.pilot.click(view.vertical_scrollbar, offset=(0, 2))
        await console.shows("HOLD")
        assert "test_199" not in console.text


async def test_a_click_opens_a_fold_and_another_closes_it():
    output = [LogLine(at=NOW, kind=LogKind.OUTPUT, text=f"out {n}") for n in range(9)]
    async with reading((*output, *said("the end"))) as console:
        await console.pilot.click(offset=place(console, "8 lines folded"))
        await console.shows("out 8", "the end", "HOLD")
        await console.do("open")
        await console.shows("8 lines folded")


async def test_a_click_on_a_link_opens_the_diff():
    lines = (replace(log_lines(2)[1], text="edit src/csvlite/reader.py:85"), *said("the end"))
    async with reading(lines) as console:
        await console.pilot.click(offset=place(console, "reader.py:85"))
        await console.until(lambda: console.screen.kind == "diff")


async def test_a_click_on_what_the_log_does_follows_or_holds():
    async with reading(log_lines(200)) as console:
        await console.pilot.click(offset=place(console, "FOLLOW"))
        await console.shows("‖ HOLD")
        await console.pilot.click(offset=place(console, "no new lines"))
        await console.shows("FOLLOW")


@pytest.mark.parametrize(
    ("title", "shows"),
    [("Events", "No events"), ("Prompt", "Fix the quoted-field"), ("Attempts", "attempt 1")],
)
async def test_a_tab_is_clicked(title: str, shows: str):
    async with reading(said("hello there")) as console:
        await console.pilot.click(offset=place(console, title))
        await console.shows(shows)
        assert "FOLLOW" not in console.text
        await console.pilot.click(offset=place(console, "Log "))
        await console.shows("FOLLOW")


async def test_a_tab_is_drawn_for_its_width_from_the_first():
    async with reading(said("hello there")) as console:
        await console.do("next_tab", "next_tab")
        assert "Fix the quoted-field bug as planned." in console.text


async def test_the_search_goes_to_hits_while_it_is_typed_and_escape_leads_back():
    async with reading(log_lines(200)) as console:
        await console.do("search")
        await console.type("test_14")
        await console.shows("/test_14: 3", "test_149")
        await console.press(*["backspace"] * 7)
        await console.shows("FOLLOW", "test_199")
        await console.type("test_14")
        await console.shows("/test_14: 3", "test_149")
        await console.press("escape")
        await console.shows("FOLLOW", "test_199")
        assert "/test_14" not in console.text


async def test_a_search_that_begins_on_another_tab_is_one_of_the_log():
    async with reading(log_lines(200)) as console:
        await console.do("next_tab")
        await console.burst("/test_14")
        await console.press("enter")
        await console.shows("/test_14: 3", "test_149", "HOLD")


async def test_what_is_beside_the_log_gives_way_where_it_is_narrow():
    async with reading(said("hello there"), (99, 30)) as console:
        assert "LIMITS" not in console.text
        await console.pilot.resize_terminal(100, 30)
        await console.shows("LIMITS")
        await console.do("zoom")
        await console.until(lambda: "LIMITS" not in console.text)

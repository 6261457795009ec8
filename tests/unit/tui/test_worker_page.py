"""The page of a worker: calls that open in place, turns, a filtered search, its frame."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.messages.asked import Question
from engine.messages.commands import Steer
from engine.messages.logs import LogKind, LogLine
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.mouse import click
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.screens.worker.lines import Look
from tui.screens.worker.log_view import LogView
from tui.screens.worker.logs import CAPACITY, Log
from tui.words.figures import MINUS

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"


def line(kind: LogKind, text: str, after: int = 0) -> LogLine:
    """Return a line of a log."""
    return LogLine(at=NOW - 100 + after, kind=kind, text=text)


def printed(count: int) -> tuple[LogLine, ...]:
    """Return what a tool printed."""
    return tuple(
        line(LogKind.TOOL_END, f"printed line number {n:03} of it all") for n in range(count)
    )


TALK = (
    line(LogKind.SAYS, "I begin."),
    line(LogKind.SAYS, "With the reader."),
    line(LogKind.TOOL, "Bash  pytest -q"),
    line(LogKind.TOOL_END, "exit 0, 3.1 s"),
    *printed(9),
    line(LogKind.SAYS, "Now the edit."),
    line(LogKind.TOOL, "Edit  /w/src/csvlite/reader.py  +9 -4"),
    line(LogKind.YOU, "mind the quotes"),
    line(LogKind.SAYS, "I do."),
)


@asynccontextmanager
async def page(
    *lines: LogLine, size: tuple[int, int] = (120, 36), **more: object
) -> AsyncIterator[Console]:
    """A console on the page of a worker with this log."""
    view = changed(csvlite(), RUNNING, **more) if more else csvlite()
    port = FakePort(view, logs={RUNNING: lines or TALK}, diffs={RUNNING: diff_of_reader()})
    async with opened(port=port, size=size) as console:
        console.app.session.worker = RUNNING
        await console.press("g", "w")
        await console.shows("FOLLOW", (lines or TALK)[-1].text[-6:])
        yield console


async def test_what_a_call_printed_is_folded_below_it_and_opens_in_place():
    async with page() as console:
        await console.shows("exit 0, 3.1 s", "9 lines folded")
        assert "printed line number 003" not in console.text
        await console.do("first", "unit_down", "open")
        await console.shows("printed line number 000", "printed line number 008", "Now the edit.")
        await console.do("open")
        await console.shows("9 lines folded")
        assert "printed line number 003" not in console.text


async def test_a_call_that_writes_a_file_opens_that_files_diff_as_it_is_now():
    async with page(size=(120, 50)) as console:
        await console.do("first", "unit_down", "unit_down", "open")
        assert console.screen.kind == "worker"
        await console.shows("src/csvlite/reader.py as it stands now, 3 hunks", "+import re")
        assert "read_block()" not in console.text
        await console.do("down", "open")
        await console.until(lambda: "+import re" not in console.text)


async def test_a_call_without_output_or_change_says_so():
    async with page(line(LogKind.TOOL, "Bash  true"), line(LogKind.SAYS, "the end")) as console:
        await console.do("first", "open")
        await console.shows("it printed nothing", "d opens the diff")


async def test_the_end_of_another_call_is_not_what_the_last_one_printed():
    lines = (
        line(LogKind.TOOL, "Bash  sleep 9"),
        line(LogKind.TOOL, "Bash  ls"),
        line(LogKind.TOOL_END, "Bash  sleep 9: exit 0, 9 s, and that is all of it"),
        *printed(5),
        line(LogKind.SAYS, "the end"),
    )
    async with page(*lines) as console:
        await console.shows("Bash  sleep 9: exit 0", "5 lines folded")
        await console.do("first", "unit_down", "open")
        await console.shows("it printed nothing")


async def test_turns_are_where_somebody_begins_to_speak():
    async with page() as console:
        await console.do("first")
        for wanted in ("Now the edit.", "mind the quotes", "I do."):
            await console.do("next_turn")
            here = console.screen.reading.log.here  # type: ignore[attr-defined]
            assert here.line.text == wanted
        await console.do("next_turn")
        await console.shows("no more messages down")
        await console.do("previous_turn", "previous_turn", "previous_turn")
        assert console.screen.reading.log.here.line.text == "I begin."  # type: ignore[attr-defined]


async def test_a_search_shows_its_hits_alone_and_all_lines_again():
    async with page() as console:
        await console.do("search")
        await console.type("number 00\n")
        await console.do("show_kinds")
        await console.shows("/number 00: 9 only", "printed line number 008")
        assert "Now the edit." not in console.text
        console.port.logs[RUNNING] += (line(LogKind.SAYS, "number 007 again"),)
        console.port.logs[RUNNING] += (line(LogKind.SAYS, "unseen"),)
        console.port.tell()
        await console.shows("/number 00: 10 only")
        assert "unseen" not in console.text
        await console.press("escape")
        await console.shows("Now the edit.", "unseen")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_the_prompt_stands_above_the_log_and_the_box_below_it(size: tuple[int, int]):
    async with page(size=size) as console:
        await console.shows("prompt Fix the quoted-field bug", "s ▏say something to it")
        await click(console, "say something to it")
        await console.type("go on\n")
        assert console.port.commands == [Steer(worker=RUNNING, text="go on", run="2f1c")]


async def test_the_box_says_what_helps_where_nothing_can_be_said():
    async with page(phase=Phase.FAILED) as console:
        await console.shows("R ▏say what to do better, and retry")
    async with page(phase=Phase.QUEUED) as console:
        assert "▏" not in console.text


async def test_what_is_asked_stands_above_the_log_and_is_answered_there():
    asked = Question(id="q", text="Which?", choices=("one", "two"), asked_at=NOW - 9)
    async with page(questions=(asked,)) as console:
        await console.shows("ASKS YOU", "1 one", "2 two", "I do.")
        await console.press("1", "a")
        await console.shows("answered")


async def test_the_files_it_changed_stand_beside_the_log_and_lead_into_the_diff():
    async with page() as console:
        await console.shows("CHANGE", f"src/csvlite/io.py +1 {MINUS}1", "data/quotes.bin binary")
        await click(console, "src/csvlite/io.py")
        await console.until(lambda: console.screen.kind == "diff")


def test_lines_of_a_diff_leave_the_log_before_its_oldest_lines_go():
    log = Log()
    log.lay(Look(80))
    log.take([line(LogKind.TOOL, "Edit  a.py"), line(LogKind.SAYS, "on")])
    log.first()
    item = log.tool
    assert item is not None
    log.open_tool(item, [("+", "new"), ("-", "old")])
    assert [one.line.text for one in log.items] == ["Edit  a.py", "new", "old", "on"]
    log.take([line(LogKind.SAYS, f"later {n}") for n in range(CAPACITY + CAPACITY // 4)])
    assert [one.number for one in log.items] == list(
        range(log.dropped, log.dropped + len(log.lines))
    )


@pytest.mark.parametrize("columns", range(100, 131, 3))
async def test_no_letter_of_a_log_lies_behind_the_scrollbar(columns: int):
    word = "abcdefghijklmnopqrstuvwxyz0123456789"
    port = FakePort(csvlite())
    port.logs["implement/worker_1"] = (LogLine(at=NOW, kind=LogKind.SAYS, text=word * 5),)
    async with opened(port=port, size=(columns, 30)) as console:
        console.app.session.worker = "implement/worker_1"
        await console.do("go_worker")
        await console.shows("abcdef")
        width = console.screen.query_one(LogView).size.width
        rows = [line[:width] for line in console.text.split("\n")]
        begin = next(at for at, row in enumerate(rows) if "says" in row and "abcdef" in row)
        shown = "".join(row[17:].strip() for row in rows[begin : begin + 8])
        assert word * 5 in shown

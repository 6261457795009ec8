"""A diff in the console: what it is held against, searching it, comments that outlive code."""

from dataclasses import replace

import pytest

from engine.messages.diffs import DiffLine, Sign
from engine.messages.results import Change, EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.screens.diff.screen import DiffScreen

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"


def _port() -> FakePort:
    return FakePort(csvlite(), diffs={RUNNING: diff_of_reader()})


def _diff(console: Console) -> DiffScreen:
    assert isinstance(console.screen, DiffScreen)
    return console.screen


async def test_a_comment_is_opened_again_and_an_empty_one_goes_away():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("next", "down", "comment")
        await console.type("why?\n")
        await console.do("comment")
        assert console.screen.box.area.text == "why?"
        console.screen.box.area.text = ""
        await console.press("enter")
        await console.until(lambda: "not sent yet" not in console.text)
        await console.do("undo")
        await console.shows("not sent yet")


async def test_a_comment_on_code_that_has_changed_is_kept_and_marked():
    port = _port()
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("next", "down", "comment")
        await console.type("why?\n")
        reader = port.diffs[RUNNING]
        first, second, third = reader.files[0].hunks
        grown = replace(second, lines=(*second.lines, DiffLine(Sign.ADDED, "more", None, 95)))
        file = replace(reader.files[0], hunks=(first, grown, third))
        port.diffs[RUNNING] = replace(reader, files=(file, *reader.files[1:]))
        port.tell(view=_later(port, files=9))
        await console.shows("not sent yet; the code has changed since", "why?")


async def test_a_diff_is_held_against_one_thing_after_another():
    port = _port()
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("diff", "diff")
        await console.until(lambda: ("target", 3) in port.compared)
        await console.shows("compared with its target")
        console.screen.perform("against")
        await console.pilot.pause()
        await console.type("v1.0\n")
        await console.until(lambda: ("v1.0", 3) in port.compared)
        await console.do("more")
        await console.until(lambda: ("v1.0", 24) in port.compared)


async def test_what_was_seen_last_is_something_to_compare_with():
    port = _port()
    reader = port.diffs[RUNNING]
    port.diffs[RUNNING] = replace(reader, head="one", is_live=False)
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("go_fleet")
        assert list(console.app.session.looked.values()) == ["one"]
        port.diffs[RUNNING] = replace(reader, head="two", is_live=False)
        port.tell(view=_later(port, files=9))
        await console.do("go_diff")
        await console.until(lambda: (d := _diff(console).pane.diff) is not None and d.head == "two")
        while ("one", 3) not in port.compared:
            await console.do("diff")
        await console.shows("→ what you saw last")


async def test_a_diff_is_searched_through_its_folds():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("last")
        await console.shows("► generated, folded")
        await console.do("search")
        await console.type("A = 2\n")
        await console.shows("search refused: this diff does not contain 'A = 2'")
        await console.do("search")
        await console.type("a = 2\n")
        await console.shows("/a = 2  1 line has it", "+ a = 2")
        await console.do("next")
        await console.shows("this is the only hit for /a = 2")
        await console.do("leave", "first", "next")
        await console.shows("hunk 1 of 3")


async def test_a_jump_brings_the_whole_hunk_on_screen_with_its_head():
    async with opened(port=_port(), size=(120, 24)) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("right", "right")
        await console.shows("hunk 3 of 3", "def _closing_quote(self", "return -1")


async def test_files_stand_above_the_diff_where_there_is_no_room_beside_it():
    async with opened(port=_port(), size=(80, 24)) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("▌M src/csvlite/reader.py", "M src/csvlite/io.py", "B data/quotes.bin")
        await console.do("zoom")
        await console.until(lambda: "M src/csvlite/io.py" not in console.text)


async def test_a_hunk_is_dropped_kept_and_brought_back_by_undo():
    port = _port()
    first, second, third = port.diffs[RUNNING].keys[0]
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("no")
        await console.shows("refused: it is still working")
        assert _left_out(port) == ()
        port.tell(view=_later(port))
        await console.until(lambda: not console.screen.refusal("no"))
        await console.do("first", "right", "no")
        await console.shows("✗ left out", "✗ 1 left out", "the hunk left out. 1 hunk will not land")
        assert _left_out(port) == (first,)
        await console.do("right", "no")
        await console.until(lambda: _left_out(port) == (first, second))
        await console.do("no")
        await console.until(lambda: _left_out(port) == (first,))
        await console.do("no_wide")
        await console.until(lambda: _left_out(port) == (first, second, third))
        await console.do("undo")
        await console.until(lambda: _left_out(port) == (first,))
        await console.do("undo", "undo")
        await console.until(lambda: _left_out(port) == (first,))
        await console.do("undo")
        await console.until(lambda: _left_out(port) == ())
        await console.do("redo")
        await console.shows("✗ 1 left out")
        await console.do("diff", "no")
        await console.shows("refused: you leave out hunks in the diff against its base")


async def test_dropping_that_the_engine_refuses_says_why_and_is_nothing_to_undo():
    port = _port()
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        port.tell(view=_later(port))
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.until(lambda: not console.screen.refusal("no"))
        port.diffs.clear()
        await console.do("no_wide")
        await console.shows("refused: another builds on it")
        await console.do("undo")
        await console.shows("there is nothing to undo")


async def test_a_hunk_whose_code_is_not_shown_as_it_is_is_dropped_by_its_own_key():
    port = _port()
    reader = port.diffs[RUNNING]
    first, *others = reader.files[0].hunks
    odd = replace(first, lines=(*first.lines, DiffLine(Sign.ADDED, "\x1b[2J\u202e", None, 5)))
    file = replace(reader.files[0], hunks=(odd, *others))
    port.diffs[RUNNING] = replace(reader, files=(file, *reader.files[1:]))
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        port.tell(view=_later(port))
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.until(lambda: not console.screen.refusal("no"))
        await console.do("first", "right", "no")
        await console.until(lambda: _left_out(port) == port.diffs[RUNNING].keys[0][:1])
        await console.do("go_fleet", "undo")
        await console.until(lambda: _left_out(port) == ())


def _left_out(port: FakePort) -> tuple[str, ...]:
    return next(w.left_out for w in port.shown.runs[0].workers if w.worker == RUNNING)


def _later(port: FakePort, **change: object) -> EngineView:
    """The view with another change of the worker that is looked at."""
    made = Change(head="x", base="y", **change)  # type: ignore[arg-type]
    view = changed(port.shown, RUNNING, change=made, phase=Phase.REVIEWING)
    return replace(view, at=NOW + 5)

"""Comments on one line are a thread: the agent's answers stand below, and can be answered."""

from dataclasses import replace

import pytest

from engine.messages.commands import Steer
from engine.messages.logs import LogKind, LogLine, LogLines
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.ink import row_width, text_of
from tui.screens.diff.answers import answered, answers_in
from tui.screens.diff.layout import Part
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.screen import DiffScreen
from tui.screens.diff.threads import thread_rows
from tui.words.comments import Comment

_RUNNING = "implement/worker_1"
_SENT = Comment("a.py", "k", 3, 88, "x = 1", "why?", is_sent=True, id=2, sent_at=NOW)


def _said(*texts: str, kind: LogKind = LogKind.SAYS, at: float = NOW + 1) -> LogLines:
    return LogLines.of(LogLine(at=at, kind=kind, text=text) for text in texts)


def _answers(*texts: str, kind: LogKind = LogKind.SAYS, at: float = NOW + 1) -> tuple[str, ...]:
    return answered(_SENT, answers_in(_said(*texts, kind=kind, at=at).pieces)).answers


def test_an_answer_begins_with_the_number_and_ends_at_a_blank_line():
    said = (
        "I looked.",
        "[1] Other.",
        "[2] Because of x.",
        "And of y.",
        "",
        "Done.",
        "- **[2]**: So.",
    )
    assert _answers(*said) == ("Because of x.\nAnd of y.", "So.")


def test_what_was_said_before_by_others_or_of_another_number_is_no_answer():
    assert _answers("[2] Long ago.", at=NOW - 1) == ()
    assert _answers("[2] Printed.", kind=LogKind.OUTPUT) == ()
    assert _answers("[3] Of another.", "see [2] above", "[2]") == ()
    assert answered(_SENT._replace(id=0), {0: [(NOW + 1, "x")]}).answers == ()


def test_a_number_that_no_comment_has_is_no_answer():
    assert answers_in(_said(f"[{'9' * 5000}] x", "[\u0662] x").pieces) == {}


def test_an_answer_that_is_read_twice_is_one():
    once = answered(_SENT, {2: [(NOW + 1, "So.")]})
    assert answered(once, {2: [(NOW + 1, "So."), (NOW + 2, "More.")]}).answers == ("So.", "More.")


@pytest.mark.parametrize("cells", [40, 80, 140])
def test_a_thread_is_one_box_in_the_order_that_it_was_said(cells: int):
    reply = _SENT._replace(text="Then say so in the code.", is_sent=False, id=0)
    rows = thread_rows([_SENT._replace(answers=("Because of x.", "")), reply], cells, "a")
    text = text_of(rows)
    order = ("you, line 88", "why?", "agent", "Because", "Then say so", "not sent yet")
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("╭") == text.count("╰") == 1
    assert {row_width(row) for row in rows} == {cells}


def test_the_cursor_goes_to_a_thread_and_a_mark_there_means_no_file():
    pane = DiffPane(comments=[])
    pane.show(diff_of_reader())
    key = pane.keys_at(pane.place)[0]
    pane.comments += [
        Comment("src/csvlite/reader.py", key, 1, 4, "", "one", is_sent=True),
        Comment("src/csvlite/reader.py", "gone", 1, 4, "old", "stale"),
        Comment("src/csvlite/reader.py", key, 1, 4, "", "two"),
    ]
    pane.lay_out()
    threads = [at for at, place in enumerate(pane.places) if place.part is Part.COMMENT]
    assert len(threads) == 2
    for at in threads:
        pane.cursor = at
        assert pane.thread
        assert pane.keys_at(pane.place) == ()
    assert [c.text for c in pane.thread] == ["one", "two"]
    spot = pane.spot()
    assert spot is not None
    assert (spot.key, spot.line, spot.text, spot.is_sent) == (key, 1, "", False)


def test_the_cursor_stays_on_its_thread_among_those_on_changed_code():
    pane = DiffPane(comments=[])
    pane.show(diff_of_reader())
    pane.comments += [
        Comment("src/csvlite/reader.py", f"gone {text}", n, n, "old", text)
        for n, text in enumerate(("first", "second", "third"))
    ]
    pane.lay_out()
    threads = [at for at, place in enumerate(pane.places) if place.part is Part.COMMENT]
    for at, text in zip(threads, ("first", "second", "third"), strict=True):
        pane.cursor = at
        pane.lay_out()
        assert [comment.text for comment in pane.thread] == [text]


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("src/csvlite/reader.py:88", "src/csvlite/reader.py"),
        ("/abroad/src/csvlite/reader.py", "src/csvlite/reader.py"),
        ("ader.py:88", None),
        ("src/csvlite/reader.py:\u00b2", "src/csvlite/reader.py"),
        (f"src/csvlite/reader.py:{'9' * 5000}", "src/csvlite/reader.py"),
    ],
)
def test_a_place_that_a_log_names_leads_to_its_file_alone(place: str, path: str | None):
    pane = DiffPane()
    pane.show(diff_of_reader())
    pane.cursor = 0
    before = pane.jumps
    pane.to_place(place)
    assert (pane.jumps > before) == (path is not None)


async def _at_thread(console: Console) -> None:
    screen = console.screen
    assert isinstance(screen, DiffScreen)
    screen.pane.cursor = next(
        at for at, place in enumerate(screen.pane.places) if place.part is Part.COMMENT
    )
    screen.draw()
    await console.pilot.pause()


@pytest.mark.anyio
async def test_an_agent_is_asked_answers_and_is_answered():
    port = FakePort(csvlite(), diffs={_RUNNING: diff_of_reader()})
    async with opened(port=port) as console:
        console.app.session.worker = _RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("next", "down", "comment")
        await console.type("why?\n")
        await console.do("send")
        (command,) = port.commands
        assert isinstance(command, Steer)
        assert command.text.startswith("[1] src/csvlite/reader.py:81\n> ")
        assert "begin with its number" in command.text
        lines = (*port.logs.get(_RUNNING, ()), *_said("[1] The quote is doubled.", "Nothing else."))
        port.logs[_RUNNING] = lines
        port.tell(view=replace(changed(port.shown, _RUNNING, last_output_at=NOW + 1), at=NOW + 2))
        await console.shows("agent", "The quote is doubled.", "answered")
        await _at_thread(console)
        await console.do("comment")
        await console.shows("answer on src/csvlite/reader.py:81")
        await console.type("then say so\n")
        await console.shows("then say so", "not sent yet")
        assert console.text.count("╰") == 1
        await console.do("send")
        assert isinstance(port.commands[1], Steer)
        assert port.commands[1].text.startswith("[2] src/csvlite/reader.py:81\n> ")
        await _at_thread(console)
        await console.do("no")
        await console.until(lambda: "The quote is doubled." not in console.text)
        await console.do("undo")
        await console.shows("The quote is doubled.", "then say so")


@pytest.mark.anyio
async def test_yes_on_a_suggestion_applies_it_and_never_approves():
    port = FakePort(csvlite(), diffs={_RUNNING: diff_of_reader()})
    async with opened(port=port) as console:
        console.app.session.worker = _RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        screen = console.screen
        assert isinstance(screen, DiffScreen)
        key = screen.pane.keys_at(screen.pane.place)[0]
        made = Comment(
            "src/csvlite/reader.py", key, 1, 4, "import re", "", suggestion="import json"
        )
        console.app.session.comments.append(made._replace(about=console.app.session.about, first=4))
        screen.pane.lay_out()
        await _at_thread(console)
        assert screen.editing.suggestion is not None
        assert screen.label_of("yes") == "apply"

"""The log of an attempt knows what its agent is at: its tool, its model, its context, its turns."""

from engine.agents.agent_events import Said, Started, ToolCalled, ToolEnded, UsageSeen
from engine.messages.logs import LogKind
from engine.work.logbook import Logbook, Remark


def test_of_several_tools_the_one_that_began_last_runs_now() -> None:
    book = Logbook(1)
    book.note(ToolCalled("1", "Bash", "make"), 10.0)
    book.note(ToolCalled("2", "Bash", "sleep 9"), 12.0)
    assert (book.tool, book.tool_since) == ("Bash  sleep 9", 12.0)
    book.note(ToolEnded("2", "done"), 13.0)
    assert (book.tool, book.tool_since) == ("Bash  make", 10.0)
    book.note(ToolEnded("1", "done"), 14.0)
    assert (book.tool, book.tool_since) == (None, None)


def test_a_better_title_makes_a_tool_no_younger() -> None:
    book = Logbook(1)
    book.note(ToolCalled("1", "edit"), 10.0)
    book.note(ToolCalled("1", "edit", "src/a.py"), 15.0)
    assert (book.tool, book.tool_since) == ("edit  src/a.py", 10.0)


def test_its_model_its_context_and_its_turns_are_the_newest() -> None:
    book = Logbook(1)
    book.note(Started("s", "opus"), 1.0)
    book.note(UsageSeen(context=1_000, window=200_000, turns=1), 2.0)
    book.note(UsageSeen(context=3_000, window=200_000, turns=2), 3.0)
    assert (book.model, book.context, book.window, book.turns) == ("opus", 3_000, 200_000, 2)


def test_an_attempt_that_is_over_runs_no_tool() -> None:
    book = Logbook(1)
    book.note(ToolCalled("1", "Bash", "make"), 10.0)
    book.end("", 20.0)
    assert book.tool is None


def test_settings_that_went_along_are_known_and_known_again_to_the_next_engine() -> None:
    lines = ("your settings: MCP server one", "left out of your settings: hooks: they run code")
    book, again = Logbook(1), Logbook(1)
    for line in (*lines, "the base has moved"):
        book.remark(LogKind.NOTE, line, 1.0)
    again.recall(Remark(1.0, LogKind.NOTE, line) for line in (*lines, "the base has moved"))
    assert book.settings == again.settings == lines


def test_a_tool_tells_its_edit_how_it_ended_and_how_long_it_took() -> None:
    book = Logbook(1)
    book.note(ToolCalled("1", "Edit", "a.py", ("a.py",), (3, 1)), 10.0)
    book.note(ToolEnded("1", "done", "The file was updated"), 10.1)
    book.note(ToolCalled("2", "Bash", "make"), 11.0)
    book.note(ToolEnded("2", "failed", "Exit code 2\nmake: *** no rule"), 14.1)
    book.note(ToolCalled("3", "Bash", "ls"), 20.0)
    book.note(ToolEnded("3", "done", "", 0), 20.01)
    edit, make, ls = book.lately()
    assert (edit.text, edit.result, edit.tail) == (
        "Edit  a.py  +3 -1",
        "",
        ("The file was updated",),
    )
    assert (make.text, make.result) == ("Bash  make", "exit 2, 3.1 s")
    assert make.tail == ("Exit code 2", "make: *** no rule")
    assert (ls.result, ls.count) == ("exit 0", 0)


def test_the_end_of_one_of_several_tools_is_not_told_of_another() -> None:
    book = Logbook(1)
    book.note(ToolCalled("1", "Bash", "make"), 10.0)
    book.note(ToolCalled("2", "Bash", "ls"), 10.0)
    book.note(ToolEnded("1", "failed", "", 2), 12.0)
    *_, ls = book.lately()
    assert (ls.text, ls.result) == ("Bash  ls", "")
    assert "Bash  make: exit 2, 2.0 s" in ls.tail


def test_words_stay_among_what_it_did_whatever_a_tool_prints() -> None:
    book = Logbook(1)
    book.note(Said("I run ", is_delta=True), 1.0)
    book.note(Said("the\ntests.", is_delta=True), 1.1)
    book.note(ToolCalled("1", "Bash", "pytest"), 2.0)
    for number in range(3000):
        book.write_raw(f"line {number}\nFAILED {number}", 3.0, monotonic=3.0)
    words, tool, *outputs = book.lately()
    assert words.text == "I run the\ntests."
    assert (tool.text, len(outputs)) == ("Bash  pytest", 1)
    assert outputs[0].tail[-1] == "FAILED 2999"
    assert outputs[0].count == 6000

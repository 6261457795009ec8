"""The log of an attempt knows what its agent is at: its tool, its model, its context, its turns."""

from engine.agents.agent_events import Started, ToolCalled, ToolEnded, UsageSeen
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

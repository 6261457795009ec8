"""Every message is on its page, in plain English, and names commands that work."""

import re

import pytest

from engine.messages.explaining import letter_of
from tests.support.message_page import PAGE, ROOT, message_page, messages, messages_in, modules
from tests.unit.test_english import slips
from tui.commands.base import parser_of
from tui.commands.names import COMMANDS

_SOURCE = '''
"""What a module says of itself is no message."""

def refuse(worker: "Name | None") -> None:
    """What a function does is none."""
    pattern = re.compile("no such file here")
    assert worker, "an assertion is read by nobody"
    database.execute("delete it all")
    run(["git commit", "--message", "SELECT at FROM event", "word"])
    raise Refused(f"{worker.name} has no change", hint="Retry " "it first.")
    _rates = {"union reversed": "a.id IN (SELECT rowid FROM found)", "no": "D delete ctrl+k"}
    if text.startswith("locked by plait") or said == "it is gone" or key(key="edit other"):
        raise AssertionError("nobody asks for this")
    print(f"{a.name} asks for {b.name}, not for {a.name}")
    return table[worker.phase] + " waits for you", f"{clean(worker.path)} is gone"
'''


def test_a_message_is_found_wherever_it_stands():
    assert list(messages(_SOURCE)) == [
        "{name} has no change",
        "Retry it first.",
        "{name} asks for {name2}, not for {name}",
        " waits for you",
        "{path} is gone",
    ]


def test_the_page_of_messages_is_current():
    assert PAGE.read_text() == message_page(), "write it: python -m tests.support.message_page"


@pytest.mark.parametrize("room", ["engine", "tui"])
def test_messages_are_in_plain_english(room: str):
    broken = {
        path.relative_to(ROOT).as_posix(): wrong
        for path in modules()
        if path.is_relative_to(ROOT / room)
        and (wrong := [slip for text in messages_in(path) for slip in slips(text)])
    }
    assert broken == {}


def _named_commands() -> set[str]:
    """Return every command of plait that a message names, with a word for each gap."""
    text = PAGE.read_text().replace("site down {name}", "site down local-cluster")
    page = re.sub(r"\{[^}]*\}", "X", text)
    return set(re.findall(r"`plait ([^`]+)`", page))


def _does_something(command: str) -> bool:
    name, *words = command.split()
    if not words or "…" in words or words[-1] in {"--help", "--at"}:  # it only names them
        return name in {*COMMANDS, "COMMAND", "X", "--help"}
    args = parser_of(name)[1].parse_args(words)
    return name != "cancel" or bool(args.all or args.workers)


def test_every_command_that_a_message_names_works():
    named = _named_commands()
    assert {"cancel --all --run X", "try --back"} <= named
    assert [command for command in sorted(named) if not _does_something(command)] == []


def test_a_command_that_names_nobody_is_noticed():
    assert not _does_something("cancel --run X")


def test_no_two_candidates_have_one_name():
    names = [letter_of(place) for place in range(500)]
    assert len(set(names)) == len(names)
    assert (names[0], names[25], names[26], names[27]) == ("A", "Z", "A1", "B1")

"""Every message is on its page, and in plain English."""

import pytest

from engine.messages.explaining import letter_of
from tests.support.message_page import PAGE, ROOT, message_page, messages, messages_in, modules
from tests.unit.test_english import slips

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


def test_no_two_candidates_have_one_name():
    names = [letter_of(place) for place in range(500)]
    assert len(set(names)) == len(names)
    assert (names[0], names[25], names[26], names[27]) == ("A", "Z", "A1", "B1")

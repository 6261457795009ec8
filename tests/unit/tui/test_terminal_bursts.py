"""A burst of keys written to a real terminal at once: what opens a box takes the rest of it."""

from collections.abc import Iterator

import pytest

from tests.support.console_pty import FIRST_SCREEN, process_in_pty
from tests.support.console_story import StoryConsole

_ECHO = FIRST_SCREEN.replace(
    "raise SystemExit",
    'print("COMMANDS", port.commands, flush=True)\nraise SystemExit',
)


@pytest.fixture
def console() -> Iterator[StoryConsole]:
    with process_in_pty(_ECHO) as opened:
        opened.wait_written(b"ASKS YOU")
        yield StoryConsole(opened.process, opened.master, (100, 30))


@pytest.mark.parametrize(
    ("burst", "shown"),
    [
        ("2/audit", "audit"),
        ("2/xxXX", "xxXX"),
        (":xxXX", "xxXX"),
        ("?xxXX", "xxXX"),
        ("sxxXX", "xxXX"),
        ("xxXX", "xXX"),
        ("/audit", "audit"),
        ("gh/xxXX", "xxXX"),
        ("3/xxXX", "xxXX"),
    ],
)
def test_a_burst_in_a_real_terminal_belongs_to_the_box_that_it_opens(
    console: StoryConsole, burst: str, shown: str
):
    console.press(burst.encode())
    console.shows(shown)
    console.press(b"\x11")
    console.wait_written(b"COMMANDS []")
    console.end()


def test_a_paste_into_the_box_stays_there_and_one_beside_it_is_no_row_of_keys(
    console: StoryConsole,
):
    console.press(b"\x1b[200~xxXX\x1b[201~")
    console.press(b"2/\x1b[200~pasted xx\x1b[201~")
    console.shows("pasted xx")
    console.press(b"\x11")
    console.wait_written(b"COMMANDS []")
    console.end()

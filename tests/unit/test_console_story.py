"""The terminal of a story sees what is on screen only for a moment."""

from tests.support.console_pty import process_in_pty
from tests.support.console_story import StoryConsole

_WRITES_TWICE = """
import sys
sys.stdout.write("\\x1b[H\\x1b[2Jis approved\\x1b[1;1Hlanded     ")
sys.stdout.flush()
sys.stdin.readline()
"""


def test_the_screen_at_the_end_holds_the_last_message_only() -> None:
    with process_in_pty(_WRITES_TWICE) as opened:
        console = StoryConsole(opened.process, opened.master, (100, 60))
        console.shows("landed")
        assert "is approved" not in console.text


def test_a_message_is_seen_before_the_one_that_replaces_it() -> None:
    with process_in_pty(_WRITES_TWICE) as opened:
        console = StoryConsole(opened.process, opened.master, (100, 60))
        console.read_until(b"landed")
        console.shows("is approved").shows("landed")

"""The terminal is left as it was, whatever ends the console; and nothing foreign reaches it."""

import errno
import re
import signal
import termios
import threading
from io import StringIO

import pytest
from textual.drivers._writer_thread import MAX_QUEUED_WRITES

from tests.support.console_pty import (
    CALLING,
    LEFT_ALT_SCREEN,
    MOUSE_OFF,
    console_in_pty,
    process_in_pty,
)
from tui.kit.private import EnduringWriter

READY = b"ASKS YOU"
ENTERED_ALT_SCREEN = b"\x1b[?1049h"
ECHO = termios.ECHO | termios.ICANON
_HOSTILE = (
    "world.changed(world.csvlite(), 'implement/worker_1', tool={bad!r}, "
    "last_lines=({bad!r},), label={bad!r}, error={bad!r})"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_the_console_and_restores_the_terminal(number: signal.Signals):
    with console_in_pty() as console:
        console.wait_written(READY)
        assert LEFT_ALT_SCREEN not in console.written
        assert console.end(number) == 128 + number
        assert LEFT_ALT_SCREEN in console.written
        assert MOUSE_OFF in console.written


_NOTHING = dict.fromkeys(("LANG", "LC_ALL", "LC_CTYPE", "PLAIT_ASCII"), "")


@pytest.mark.parametrize(
    ("said", "is_ascii"),
    [
        ({"LANG": "C.UTF-8"}, False),
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LC_ALL": "C", "LANG": "C.UTF-8"}, True),
        ({"LANG": "en_US.ISO-8859-1"}, True),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "C.UTF-8", "TERM": "vt100", "NO_COLOR": "1"}, True),
        ({"LANG": "C.UTF-8", "NO_COLOR": "1"}, False),
        ({"LC_ALL": "C", "PLAIT_ASCII": "0"}, False),
        ({"LANG": "C.UTF-8", "PLAIT_ASCII": "1"}, True),
    ],
    ids=str,
)
def test_a_terminal_without_unicode_gets_ascii_alone(said: dict[str, str], *, is_ascii: bool):
    with console_in_pty(**{**_NOTHING, **said}) as console:
        console.wait_written(READY)
        for keys in (b"?", b"\x1b", b":"):  # pages and lists are drawn by Textual's own widgets
            seen = len(console.written)
            console.press(keys)
            console.wait_written_after(seen, b"\x1b[")
        assert console.written.isascii() == is_ascii


class _GoneTerminal(StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.EIO, f"there is no terminal for {text}")


def test_what_is_written_to_a_terminal_that_is_gone_holds_nothing_up():
    writer = EnduringWriter(_GoneTerminal())
    writer.start()

    def close() -> None:
        for _ in range(3 * MAX_QUEUED_WRITES):
            writer.write("a frame")
        writer.stop()

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(timeout=30)
    assert not closing.is_alive()
    assert not writer.is_alive()


_WRITES_TO_NOBODY = """
import os, sys
from tui.kit.private import drop_unwritten
master, slave = os.openpty()
os.dup2(slave, 1)
os.close(master)
sys.stdout.write("a frame")
if "drop" in sys.argv:
    drop_unwritten()
raise SystemExit(7)
"""


@pytest.mark.parametrize(("word", "code"), [("drop", 7), ("leave", 120)])
def test_what_no_terminal_took_changes_nothing_of_the_exit_code(word: str, code: int):
    with process_in_pty(_WRITES_TO_NOBODY, word, PYTHONUNBUFFERED="") as console:
        assert console.process.wait(timeout=30) == code


@pytest.mark.parametrize("says_so", [True, False], ids=["by_a_signal", "in_silence"])
def test_a_console_whose_terminal_was_closed_ends(*, says_so: bool):
    with console_in_pty() as console:
        console.wait_written(READY)
        console.hang_up(says_so=says_so)
        assert console.process.wait(timeout=30) == 128 + signal.SIGHUP


def test_bytes_that_are_no_text_are_survived_and_keys_in_one_piece_heard_in_their_order():
    with console_in_pty() as console:
        console.wait_written(READY)
        console.press(b"\xff\xfe\x1b[M \xf0\xf1")
        console.press(b"s")
        console.wait_written(b"sends")
        console.press(b"wrong\x15lwft\x1b[D\x1b[D\x7fe\x1b[F it")
        console.wait_written(b"left it")
        assert console.process.poll() is None
        console.press(b"\x11")
        assert console.end() == 0
        assert LEFT_ALT_SCREEN in console.written


@pytest.mark.parametrize("takes_it_back", [ECHO, 0], ids=["by_a_shell", "by_anybody"])
def test_a_console_that_was_stopped_from_outside_goes_on_as_before(takes_it_back: int):
    with console_in_pty() as console:
        console.wait_written(READY)
        raw = termios.tcgetattr(console.master)
        console.process.send_signal(signal.SIGSTOP)
        console.wait_stopped()
        taken = [*raw[:3], raw[3] | takes_it_back, *raw[4:]]
        termios.tcsetattr(console.master, termios.TCSANOW, taken)
        seen = len(console.written)
        console.process.send_signal(signal.SIGCONT)
        console.wait_written_after(seen, ENTERED_ALT_SCREEN)  # the rest of a frame may come first
        console.wait_written_after(console.written.index(ENTERED_ALT_SCREEN, seen), READY)
        assert not termios.tcgetattr(console.master)[3] & ECHO
        seen = len(console.written)
        console.press(b"?")
        console.wait_written_after(seen, b"next worker that needs you")
        assert console.end(signal.SIGTERM) == 128 + signal.SIGTERM
        assert termios.tcgetattr(console.master)[3] & ECHO == ECHO


_PAINTS_BADLY = """
import sys
from tests.support import world
from tui.app import Options, PlaitApp
from tui.kit.inked import Inked
from tui.kit.private import Enduring

class Paints(PlaitApp):
    BINDINGS = [("ctrl+y", "paint", "")]

    def action_paint(self):
        Inked._strip = lambda tile, row: 1 // 0 if tile.id == "run" else strip(tile, row)
        run = self.screen.query_one("#run")
        run.notify_style_update()
        run.refresh()

strip = Inked._strip
if "falls" in sys.argv:
    del Enduring._handle_exception
    Inked._drawn = lambda tile, row: tile._strip(row)
app = Paints(world.FakePort(world.csvlite()), options=Options(can_stay_alive=False))
app.run()
print(app.failures.parting())
raise SystemExit(app.return_code)
"""


@pytest.mark.parametrize("word", ["goes on", "falls"])
def test_a_row_that_cannot_be_painted_does_not_end_the_console(word: str):
    with process_in_pty(_PAINTS_BADLY, word) as console:
        console.wait_written(READY)
        said, tries = b"internal error in plait: ZeroDivisionError", 0
        while said not in console.written and console.process.poll() is None and tries < 30:
            console.press(b"\x19")  # the first one may come before keys are heard
            console.read_until(said, seconds=1.0)
            tries += 1
        if word == "goes on":
            assert said in console.written
            console.press(b"\x11")
            assert console.end() == 0
            assert b"the console had 1 internal error:\r\nTraceback" in console.written
        else:  # the negative control: Textual's own way
            assert console.end() == 1
        assert LEFT_ALT_SCREEN in console.written


_BREAKS = """
from tests.support import world
from tui.app import PlaitApp

class Breaks(PlaitApp):
    def on_ready(self):
        raise RuntimeError("broken")

app = Breaks(world.FakePort(world.csvlite()))
app.run()
raise SystemExit(app.return_code)
"""


def test_an_exception_restores_the_terminal_too():
    with process_in_pty(_BREAKS) as console:
        assert console.end(seconds=30) != 0
        assert LEFT_ALT_SCREEN in console.written


def test_no_control_sequence_of_foreign_text_reaches_the_terminal():
    bad = "\x1b]52;c;aGk=\x07 \x9d0;t\x9c \x1b[6n \x1bc \u202eevil MARKER"
    with console_in_pty(_HOSTILE.format(bad=bad)) as console:
        console.wait_written(b"MARKER")
        console.press(b"2")
        console.wait_written(b"LIMITS")
        console.press(b"\x11")
        console.end()
    written = console.written.decode("utf-8", "replace")
    assert "MARKER" in written
    assert "\x1b]52" not in written
    assert "\u202e" not in written
    assert "\x1bc" not in written
    assert "\x1b[6n" not in written
    assert not re.search("[\x80-\x9f]", written)


def test_no_color_is_sent_where_none_is_wanted():
    with console_in_pty(NO_COLOR="1") as console:
        console.wait_written(READY)
        console.press(b"\x11")
        console.end()
    styles = re.findall(rb"\x1b\[([0-9;]*)m", console.written)
    numbers = {number for style in styles for number in style.split(b";")}
    colored = {n for n in numbers if n.isdigit() and (30 <= int(n) <= 49 or 90 <= int(n) <= 107)}
    assert colored <= {b"39", b"49"}
    assert b"7" in numbers


def test_a_terminal_that_shrinks_and_grows_is_drawn_anew():
    with console_in_pty() as console:
        console.wait_written(READY)
        for size, found in (((300, 80), b"PREDICTED"), ((40, 10), b"need you"), ((100, 30), READY)):
            console.written = b""
            console.resize(size)
            console.wait_written(found)
        console.press(b"\x11")
        assert console.end() == 0


def test_a_human_who_looks_elsewhere_is_called_by_bell_title_and_notification():
    with process_in_pty(CALLING, TMUX="of-some-server", DBUS_SESSION_BUS_ADDRESS="") as console:
        console.wait_written(b"\x1b]2;(3) plait csvlite: fix\x07")
        called = b"\x07\x1bPtmux;\x1b\x1b]9;implement/worker_2 needs you\x07\x1b\\"
        assert called in console.written
        console.press(b"\x11")
        assert console.end() == 0
        assert b"\x1b[23;2t" in console.written

"""Keys, pastes and the mouse send their bytes, and a program's own signals are understood."""

import pytest

from engine.terminal.keys import Button, key_bytes, mouse_bytes, paste_bytes
from engine.terminal.modes import Modes
from engine.terminal.signals import SignalKind, signal_of
from engine.terminal.terminal import Terminal

PLAIN = Modes()
APPLICATION = Modes(has_application_cursor=True)


@pytest.mark.parametrize(
    ("name", "character", "modes", "sent"),
    [
        ("a", "a", PLAIN, b"a"),
        ("upper_a", "A", PLAIN, b"A"),
        ("é", "é", PLAIN, "é".encode()),
        ("enter", "\r", PLAIN, b"\r"),
        ("backspace", "\x7f", PLAIN, b"\x7f"),
        ("ctrl+c", None, PLAIN, b"\x03"),
        ("ctrl+z", "\x1a", PLAIN, b"\x1a"),
        ("ctrl+right_square_bracket", None, PLAIN, b"\x1d"),
        ("up", None, PLAIN, b"\x1b[A"),
        ("up", None, APPLICATION, b"\x1bOA"),
        ("ctrl+left", None, APPLICATION, b"\x1b[1;5D"),
        ("shift+tab", None, PLAIN, b"\x1b[Z"),
        ("pagedown", None, PLAIN, b"\x1b[6~"),
        ("shift+f5", None, PLAIN, b"\x1b[15;2~"),
        ("alt+b", "b", PLAIN, b"\x1bb"),
        ("alt+up", None, PLAIN, b"\x1b[1;3A"),
        ("ctrl+unknown", None, PLAIN, b""),
    ],
)
def test_a_key_sends_what_terminals_send(
    name: str, character: str | None, modes: Modes, sent: bytes
) -> None:
    assert key_bytes(name, character, modes) == sent


def test_a_paste_cannot_end_itself() -> None:
    hostile = "one\r\ntwo\x1b[201~; rm -rf ~\n"
    sent = paste_bytes(hostile, Modes(takes_paste=True))
    assert sent == b"\x1b[200~one\rtwo[201~; rm -rf ~\r\x1b[201~"
    assert paste_bytes(hostile, PLAIN) == b"one\rtwo[201~; rm -rf ~\r"


@pytest.mark.parametrize(
    ("modes", "more", "sent"),
    [
        (Modes(), {}, b""),
        (Modes(mouse=1000, has_long_mouse=True), {}, b"\x1b[<0;3;5M"),
        (Modes(mouse=1000, has_long_mouse=True), {"is_down": False}, b"\x1b[<0;3;5m"),
        (Modes(mouse=1000), {}, b"\x1b[M #%"),
        (Modes(mouse=1000), {"is_move": True}, b""),
        (Modes(mouse=1002, has_long_mouse=True), {"is_move": True}, b"\x1b[<32;3;5M"),
    ],
)
def test_the_mouse_is_told_as_the_program_wants_it(
    modes: Modes, more: dict[str, bool], sent: bytes
) -> None:
    assert mouse_bytes(Button.LEFT, 2, 4, modes, **more) == sent


def test_a_mouse_too_far_away_for_the_short_form_is_not_told() -> None:
    assert mouse_bytes(Button.LEFT, 300, 4, Modes(mouse=1000)) == b""


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("9;it is done", SignalKind.NOTICE, "it is done"),
        ("777;notify;claude;needs you", SignalKind.NOTICE, "claude: needs you"),
        ("99;i=1:d=0;hello", SignalKind.NOTICE, "hello"),
        ("2;a \x1b[31mtitle", SignalKind.TITLE, "a <001B>[31mtitle"),
        ("133;B", SignalKind.PROMPT, ""),
        ("133;C", SignalKind.BUSY, ""),
        ("133;D;1", SignalKind.DONE, "1"),
    ],
)
def test_a_program_tells_by_signals_of_its_own(body: str, kind: SignalKind, text: str) -> None:
    signal = signal_of(body)
    assert signal is not None
    assert signal.kind is kind
    assert signal.text.replace("\\x1b", "<001B>") == text


@pytest.mark.parametrize(
    "body", ["9;4;1;50", "52;c;aGFjaw==", "8;;http://x", "777;other;x", "9;", ""]
)
def test_what_asks_nobody_is_no_signal(body: str) -> None:
    assert signal_of(body) is None


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[3;7H\x1b[6n", b"\x1b[3;7R"),
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[18t", b"\x1b[8;24;80t"),
        (b"\x1b]52;c;?\x07", b""),
        (b"\x1b[21t", b""),
        (b"\x1bP$qm\x1b\\", b""),
    ],
)
def test_a_question_is_answered_to_the_program_alone_and_never_with_its_own_words(
    asked: bytes, answer: bytes
) -> None:
    terminal = Terminal()
    terminal.feed(b"\x1b]2;echo hacked\x07" + asked)
    assert terminal.take_replies() == answer
    assert terminal.take_replies() == b""


def test_bells_without_end_are_one_signal() -> None:
    terminal = Terminal()
    terminal.feed(b"\x07" * 10_000)
    assert [signal.kind for signal in terminal.take_signals()] == [SignalKind.BELL]

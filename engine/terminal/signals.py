"""Read what a program tells whoever looks after it: notices, titles, where its prompts are.

These are the ways that programs have of their own to say that they wait for somebody: a bell, a
desktop notice (OSC 9, OSC 99 of kitty, OSC 777), the marks of a shell around its prompt (OSC 133).
"""

from enum import StrEnum
from typing import NamedTuple

from engine.legible import legible_line

LONGEST = 500


class SignalKind(StrEnum):
    """Name what a program can tell."""

    BELL = "bell"
    NOTICE = "notice"
    TITLE = "title"
    PROMPT = "prompt"
    """It shows a prompt, and takes what is typed."""
    BUSY = "busy"
    """It runs what was typed."""
    DONE = "done"
    """It has run what was typed; the text is the exit code, where it is told."""
    TAKES_PASTE = "takes paste"
    """It reads lines by itself now, and takes a paste as one."""


class Signal(NamedTuple):
    """Hold one thing that was reported, and its words."""

    kind: SignalKind
    text: str = ""


BELL = Signal(SignalKind.BELL)
TAKES_PASTE = Signal(SignalKind.TAKES_PASTE)
_PROGRESS = "4;"
_SHELL_MARKS = {
    "B": SignalKind.PROMPT,
    "C": SignalKind.BUSY,
    "D": SignalKind.DONE,
}


def signal_of(body: str) -> Signal | None:
    """Return the signal in an operating system command, if there is one."""
    code, _, rest = body.partition(";")
    if code in {"0", "2"}:
        return Signal(SignalKind.TITLE, _words(rest))
    if code == "9" and not rest.startswith(_PROGRESS):
        return _notice(rest)
    if code == "777" and rest.startswith("notify;"):
        title, _, text = rest.removeprefix("notify;").partition(";")
        return _notice(f"{title}: {text}" if title and text else title or text)
    if code == "99":
        return _notice(rest.partition(";")[2])
    if code == "133" and rest[:1] in _SHELL_MARKS:
        return Signal(_SHELL_MARKS[rest[:1]], _words(rest[2:]))
    return None


def _notice(text: str) -> Signal | None:
    words = _words(text)
    return Signal(SignalKind.NOTICE, words) if words else None


def _words(text: str) -> str:
    return legible_line(text[:LONGEST])

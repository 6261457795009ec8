"""The installed console in a real terminal, read as a user reads it: by what is on screen."""

import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Self

import pyte

from tests.support.console_pty import PtyConsole
from tests.support.shells import Shell
from tui.keys import default_keymap

PATIENCE_S = 30.0
_ALT_SCREEN = 1049
_SLICE = 2_048
"""Bytes drawn between two looks: a message is on screen for longer than one write."""
_BYTES = {
    "escape": b"\x1b",
    "enter": b"\r",
    "space": b" ",
    "tab": b"\t",
    "ctrl+q": b"\x11",
    "ctrl+z": b"\x1a",
}
PLAIT = str(Path(sys.executable).with_name("plait"))


class _Grid(pyte.Screen):
    """A screen that is empty when a program takes the whole of it, or gives it back."""

    def set_mode(self, *modes: int, **how: bool) -> None:
        super().set_mode(*modes, **how)
        self._clear_for(modes)

    def reset_mode(self, *modes: int, **how: bool) -> None:
        super().reset_mode(*modes, **how)
        self._clear_for(modes)

    def _clear_for(self, modes: tuple[int, ...]) -> None:
        if _ALT_SCREEN in modes:
            self.erase_in_display(2)


class StoryConsole(PtyConsole):
    """A console that is pressed by what keys mean, and whose terminal is a grid of characters."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", master: int, size: tuple[int, int]
    ) -> None:
        super().__init__(process, master)
        self._screen = _Grid(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0

    @property
    def text(self) -> str:
        """Everything on screen."""
        self._draw(len(self.written))
        return self._drawn()

    def shows(self, *texts: str, seconds: float = PATIENCE_S) -> Self:
        """Wait until every text is on screen at once, be it for a moment."""
        deadline = time.monotonic() + seconds
        while not self._are_drawn(texts) and time.monotonic() < deadline:
            if self._fed < len(self.written):
                self._draw(self._fed + _SLICE)
            elif not self._read(0.1):
                break
        missing = [text for text in texts if text not in self._drawn()]
        assert not missing, f"{missing} not on screen:\n{self.text}"
        return self

    def allows(self, action: str) -> Self:
        """Press the key that allows; again, where the request appeared only just before."""
        self.do(action)
        asks, allowed = "just appeared. Allow", "allowed once"
        deadline = time.monotonic() + PATIENCE_S
        while not self._are_drawn((asks,)) and not self._are_drawn((allowed,)):
            assert time.monotonic() < deadline, f"neither asked nor allowed:\n{self.text}"
            if self._fed < len(self.written):
                self._draw(self._fed + _SLICE)
            elif not self._read(0.1):
                break
        if self._are_drawn((asks,)):
            self.do(action)
        return self.shows(allowed)

    def press(self, data: bytes) -> None:
        """Type bytes; what was on screen before them is no answer to them."""
        self._draw(len(self.written))
        super().press(data)

    def _draw(self, end: int) -> None:
        self._stream.feed(self.written[self._fed : end])
        self._fed = min(end, len(self.written))

    def _drawn(self) -> str:
        return "\n".join(self._screen.display)

    def _are_drawn(self, texts: tuple[str, ...]) -> bool:
        drawn = self._drawn()
        return all(text in drawn for text in texts)

    def do(self, *actions: str) -> Self:
        """Press the keys of actions (`fleet.retry_with`, `everywhere.quit`)."""
        for action in actions:
            key = default_keymap().of(action)[0]
            self.press(_BYTES.get(key, key.encode()))
        return self

    def enters(self, text: str) -> Self:
        """Type a text into the box that is open, and send it."""
        self.press(text.encode())
        self.shows(text)
        self.press(_BYTES["enter"])
        return self


@contextmanager
def console_story(
    shell: Shell, *words: str, size: tuple[int, int] = (120, 36)
) -> Iterator[StoryConsole]:
    """`plait WORDS` in a terminal, in a shell's folder; killed with the block if it still lives."""
    with terminal_story(shell, PLAIT, *words, size=size) as console:
        yield console


@contextmanager
def terminal_story(
    shell: Shell, *argv: str, size: tuple[int, int] = (120, 36)
) -> Iterator[StoryConsole]:
    """Any program in a terminal, as above."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    process = subprocess.Popen(
        argv,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=shell.folder,
        env={
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(shell.state.parent),
            "PLAIT_STATE_HOME": str(shell.state),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "TEXTUAL_ANIMATIONS": "none",
            "PLAIT_ASCII": "0",
            **shell.env,
        },
        start_new_session=True,
    )
    os.close(slave)
    console = StoryConsole(process, master, size)
    try:
        yield console
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)

"""The installed console in a real terminal, read as a user reads it: by what is on screen."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator
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
_MOVE = re.compile(rb"\x1b\[(?:\d*;?\d*[HfJ]|\?1049[hl])")
"""A program writes over the screen behind one of these alone, so it is looked at before each."""
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

    def row(self, y: int) -> str:
        """Return one row as it is read; behind a wide sign stands an empty cell."""
        line = self.buffer[y]
        return "".join(line[x].data for x in range(self.columns))

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
        self._rows = [""] * size[1]

    @property
    def text(self) -> str:
        """Everything on screen."""
        self._draw(len(self.written))
        return self._drawn()

    def shows(self, *texts: str, seconds: float = PATIENCE_S) -> Self:
        """Wait until every text is on screen at once, be it for a moment."""
        assert self._wait_drawn(texts, all, seconds), f"not all of {texts} on screen:\n{self.text}"
        return self

    def shows_one_of(self, *texts: str) -> Self:
        """Wait until one of the texts is on screen, be it for a moment."""
        assert self._wait_drawn(texts, any, PATIENCE_S), f"none of {texts} on screen:\n{self.text}"
        return self

    def _wait_drawn(
        self, texts: tuple[str, ...], enough: Callable[[Iterable[bool]], bool], seconds: float
    ) -> bool:
        deadline = time.monotonic() + seconds
        while not (found := self._are_drawn(texts, enough)) and time.monotonic() < deadline:
            if self._fed < len(self.written):
                move = _MOVE.search(self.written, self._fed + 1)
                self._draw(move.start() if move else len(self.written))
            elif not self._read(0.1):
                break
        return found

    def allows(self, action: str) -> Self:
        """Press the key that allows; again, where the request appeared only just before."""
        self.do(action)
        asks, allowed = "just appeared. Allow", "allowed once"
        self.shows_one_of(asks, allowed)
        if self._are_drawn((asks,), all):
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
        for y in self._screen.dirty:
            self._rows[y] = self._screen.row(y)
        self._screen.dirty.clear()
        return "\n".join(self._rows)

    def _are_drawn(self, texts: tuple[str, ...], enough: Callable[[Iterable[bool]], bool]) -> bool:
        drawn = self._drawn()
        return enough(text in drawn for text in texts)

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

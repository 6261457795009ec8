"""Draw pictures on terminals that can: which way they know, and the bytes that draw one."""

import os
import re
import select
import termios
import time
import tty
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from struct import unpack
from typing import NamedTuple

from tui.screens.diff.png import Raster

_ASK = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c"
"""Asks for kitty's graphics, for the size of a cell, and, as every terminal answers it, what it is.
"""
_IS_KITTY = re.compile(rb"\x1b_Gi=31;OK")
_ATTRIBUTES = re.compile(rb"\x1b\[\?([0-9;]*)c")
_CELL = re.compile(rb"\x1b\[6;(\d+);(\d+)t")
_SIXEL = b"4"
_ANSWER_S = 2.0
_CHUNK = 4096
_USUAL_CELL = (10, 20)
OPEN, CLOSE = b"\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H", b"\x1b[?25h\x1b[?1049l"
FORGET = b"\x1b_Ga=d,d=A,q=2\x1b\\"
"""Takes kitty's pictures off the screen, and out of its memory."""


class Terminal(NamedTuple):
    """Say what a terminal can draw, how many cells it has, and of how many pixels one is."""

    has_kitty: bool
    has_sixel: bool
    cells: tuple[int, int]
    cell: tuple[int, int]

    @property
    def can_draw(self) -> bool:
        """Return whether it can draw pictures at all."""
        return self.has_kitty or self.has_sixel


@contextmanager
def raw_mode(line: int) -> Iterator[None]:
    """Let keys come as they are typed; what was typed meanwhile is for nobody."""
    before = termios.tcgetattr(line)
    tty.setraw(line)
    try:
        yield
    finally:
        termios.tcflush(line, termios.TCIFLUSH)
        termios.tcsetattr(line, termios.TCSANOW, before)


def ask_terminal(line: int) -> Terminal:
    """Return what the terminal says of itself; one that does not answer draws no pictures."""
    rows, columns, wide, high = unpack("HHHH", ioctl(line, termios.TIOCGWINSZ, b"\0" * 8))
    write_all(line, _ASK)
    answer = b""
    until = time.monotonic() + _ANSWER_S
    while not _ATTRIBUTES.search(answer) and (left := until - time.monotonic()) > 0:
        if not select.select([line], [], [], left)[0]:
            break
        answer += os.read(line, _CHUNK)
    known = _ATTRIBUTES.search(answer)
    told = _CELL.search(answer)
    cell = (wide // columns, high // rows) if columns and rows and wide and high else (0, 0)
    if not all(cell):
        cell = (int(told[2]), int(told[1])) if told else _USUAL_CELL
    return Terminal(
        has_kitty=_IS_KITTY.search(answer) is not None,
        has_sixel=known is not None and _SIXEL in known[1].split(b";"),
        cells=(columns or 80, rows or 24),
        cell=cell if all(cell) else _USUAL_CELL,
    )


def wait_key(line: int) -> None:
    """Wait until a key is pressed, or the terminal is gone."""
    os.read(line, _CHUNK)


def write_all(line: int, data: bytes) -> None:
    """Write every byte, however slowly the terminal reads."""
    while data:
        data = data[os.write(line, data[:65536]) :]


def at(column: int, row: int) -> bytes:
    """Return what puts the cursor on a cell, counted from 1."""
    return b"\x1b[%d;%dH" % (row, column)


def kitty_png(data: bytes, columns: int, rows: int) -> bytes:
    """Return what lets kitty draw a PNG file over so many cells from the cursor on."""
    return _kitty(b"a=T,q=2,C=1,f=100,c=%d,r=%d" % (columns, rows), data)


def kitty_pixels(raster: Raster, columns: int, rows: int) -> bytes:
    """Return what lets kitty draw pixels over so many cells from the cursor on."""
    size = (raster.width, raster.height, columns, rows)
    return _kitty(b"a=T,q=2,C=1,f=32,o=z,s=%d,v=%d,c=%d,r=%d" % size, zlib.compress(raster.pixels))


def _kitty(control: bytes, data: bytes) -> bytes:
    coded = b64encode(data)
    chunks = [coded[begin : begin + _CHUNK] for begin in range(0, len(coded), _CHUNK)]
    found = []
    for number, chunk in enumerate(chunks):
        more = b"m=%d" % (number < len(chunks) - 1)
        found.append(b"\x1b_G%s;%s\x1b\\" % (more if number else control + b"," + more, chunk))
    return b"".join(found)


# Sixels: six rows at once, color by color.

_LEVELS = (6, 7, 6)
"""So many steps of red, green and blue: 252 colors, of the 256 that a terminal has."""
_BAYER = (0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5)
_SOLID = 128
_BAND = 6
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


def sixel_pixels(raster: Raster, width: int, height: int) -> bytes:
    """Return what draws a picture at the cursor in so many pixels; what is clear stays as it is."""
    found = [b'\x1bP0;1;0q"1;1;%d;%d' % (width, height)]
    found += [b"#%d;2;%d;%d;%d" % (number, *_percents(number)) for number in range(252)]
    columns = [x * raster.width // width * 4 for x in range(width)]
    for top in range(0, height, _BAND):
        masks: dict[int, bytearray] = {}
        for y in range(top, min(top + _BAND, height)):
            begin = (y * raster.height // height) * raster.width * 4
            row = raster.pixels[begin : begin + raster.width * 4]
            bit = 1 << (y - top)
            for x, place in enumerate(columns):
                if row[place + 3] >= _SOLID:
                    color = _color(row[place : place + 3], _BAYER[(y & 3) * 4 + (x & 3)])
                    if color not in masks:
                        masks[color] = bytearray(width)
                    masks[color][x] |= bit
        found.append(
            b"$".join(b"#%d%s" % (color, _run_lengths(mask)) for color, mask in masks.items())
        )
        found.append(b"-")
    found.append(b"\x1b\\")
    return b"".join(found)


def _percents(number: int) -> tuple[int, ...]:
    red, green, blue = number // 42, number // 6 % 7, number % 6
    levels = zip((red, green, blue), _LEVELS, strict=True)
    return tuple(level * 100 // (most - 1) for level, most in levels)


def _color(rgb: bytes, threshold: int) -> int:
    """Return the nearest color; which of two, by the place, so that areas mix to what is meant."""
    number = 0
    for value, most in zip(rgb, _LEVELS, strict=True):
        level = (value * (most - 1) * 16 + threshold * 255 + 127) // (255 * 16)
        number = number * most + min(level, most - 1)
    return number


def _run_lengths(mask: bytearray) -> bytes:
    signs = bytes(bits + 63 for bits in mask.rstrip(b"\0"))
    return _RUN.sub(lambda run: b"!%d%s" % (len(run[0]), run[1]), signs)

"""Hold the pen that a program draws with, and read what it says of it: the sequence SGR."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

Color = int | tuple[int, int, int] | None
"""One of the 256 colors by its number, a color by its parts, or the terminal's own."""


class Pen(NamedTuple):
    """Say how a sign is drawn, in the words of the program that drew it."""

    color: Color = None
    ground: Color = None
    is_bold: bool = False
    is_dim: bool = False
    is_italic: bool = False
    is_underlined: bool = False
    is_reversed: bool = False
    is_hidden: bool = False
    is_struck: bool = False


PLAIN = Pen()

_ON: dict[int, dict[str, bool]] = {
    1: {"is_bold": True},
    2: {"is_dim": True},
    3: {"is_italic": True},
    4: {"is_underlined": True},
    7: {"is_reversed": True},
    8: {"is_hidden": True},
    9: {"is_struck": True},
    21: {"is_underlined": True},
    22: {"is_bold": False, "is_dim": False},
    23: {"is_italic": False},
    24: {"is_underlined": False},
    27: {"is_reversed": False},
    28: {"is_hidden": False},
    29: {"is_struck": False},
}
_PALETTE, _PARTS = 5, 2
_COLORED = {38: "color", 48: "ground"}
_DEFAULT = {39: "color", 49: "ground"}
_RANGES = ((30, "color", 0), (40, "ground", 0), (90, "color", 8), (100, "ground", 8))
_MOST = 255
_LONGEST = 32


def numbers(params: str) -> list[int]:
    """Return the numbers of a sequence; one that is missing or absurd is 0."""
    parts = params.split(";")[:_LONGEST]
    return [int(one) if one.isdecimal() and len(one) < 6 else 0 for one in parts]  # noqa: PLR2004 - no terminal has 100,000 columns


@lru_cache(maxsize=1024)
def pen_after(pen: Pen, params: str) -> Pen:
    """Return the pen that a program has after it said this of it."""
    words = iter(params.split(";")[:_LONGEST])
    for word in words:
        pen = _colon(pen, word) if ":" in word else _changed(pen, number_of(word), words)
    return pen


def number_of(word: str) -> int:
    """Return one number; 0 where it is missing or absurd."""
    return int(word) if word.isdecimal() and len(word) < 6 else 0  # noqa: PLR2004 - likewise


def _changed(pen: Pen, number: int, words: Iterator[str]) -> Pen:
    if number == 0:
        return PLAIN
    if number in _ON:
        return pen._replace(**_ON[number])
    if number in _COLORED:
        return _colored(pen, _COLORED[number], words)
    if number in _DEFAULT:
        return _with(pen, _DEFAULT[number], None)
    for first, part, base in _RANGES:
        if first <= number < first + 8:
            return _with(pen, part, number - first + base)
    return pen


def _colon(pen: Pen, word: str) -> Pen:
    """Return the pen after a sequence with its parts behind colons, as ITU T.416 writes them."""
    kind, *parts = word.split(":")
    number = number_of(kind)
    if number == 4:  # noqa: PLR2004 - a kind of underline; 0 is none
        return pen._replace(is_underlined=parts[0] != "0")
    if number not in _COLORED:
        return pen
    if parts[0] == str(_PARTS) and len(parts) > 4:  # noqa: PLR2004 - with a color space before them
        parts = [parts[0], *parts[2:]]
    return _colored(pen, _COLORED[number], iter(parts))


def _colored(pen: Pen, part: str, words: Iterator[str]) -> Pen:
    color = _color(words)
    return pen if color is None else _with(pen, part, color)


def _with(pen: Pen, part: str, color: Color) -> Pen:
    return pen._replace(color=color) if part == "color" else pen._replace(ground=color)


def _color(words: Iterator[str]) -> Color:
    """Return a color; None where what was said is none."""
    kind = number_of(next(words, ""))
    if kind == _PALETTE:
        number = number_of(next(words, ""))
        return number if number <= _MOST else None
    if kind == _PARTS:
        red, green, blue = (number_of(next(words, "")) for _ in range(3))
        return (red, green, blue) if max(red, green, blue) <= _MOST else None
    return None

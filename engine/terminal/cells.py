"""Hold the cells of a terminal: signs with a pen each, in lines.

A wide sign stands in its first cell; its second one holds an empty text. No cell ever holds a
control character, so a line can be shown as it is.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from unicodedata import category, east_asian_width

from engine.terminal.pens import PLAIN, Pen

_MOST_MARKS = 4
"""So many combining marks a cell keeps: a hostile program sends them without end."""


Drawn = tuple[tuple[str, Pen], ...]
"""A line as runs of one pen each, without the plain blanks at its end."""


@lru_cache(maxsize=4096)
def width_of(char: str) -> int:
    """Return how many cells a sign takes: 0 joins the sign before it."""
    kind = category(char)
    if kind in {"Mn", "Me", "Mc"} or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if east_asian_width(char) in {"W", "F"} else 1


def is_shown(char: str) -> bool:
    """Return whether a sign may stand in a cell: no control, no mark that turns the direction."""
    return category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} and not "\ufe00" <= char <= "\ufe0f"


class Cells:
    """One line of cells."""

    __slots__ = ("chars", "pens")

    def __init__(self, columns: int, pen: Pen = PLAIN) -> None:
        self.chars = [" "] * columns
        self.pens = [pen] * columns

    def put(self, x: int, text: Sequence[str], pen: Pen) -> None:
        """Draw signs from a cell on, each of one cell; they must fit."""
        chars, end = self.chars, x + len(text)
        if not chars[x]:
            self._part(x)
        if end < len(chars) and not chars[end]:
            self._part(end)
        chars[x:end] = text
        self.pens[x:end] = [pen] * len(text)

    def put_wide(self, x: int, char: str, pen: Pen) -> None:
        """Draw a sign of two cells."""
        self.put(x, (char, ""), pen)

    def join(self, x: int, mark: str) -> None:
        """Join a combining mark to the sign of a cell."""
        if x > 0 and not self.chars[x]:
            x -= 1
        if len(self.chars[x]) <= _MOST_MARKS:
            self.chars[x] += mark

    def erase(self, start: int, stop: int, pen: Pen) -> None:
        """Make cells blank."""
        if start < stop:
            self.put(start, [" "] * (stop - start), pen)

    def insert(self, x: int, count: int, pen: Pen) -> None:
        """Insert blanks; what is moved over the end is gone."""
        columns = len(self.chars)
        self._part(x)
        self._part(columns - count)
        self.chars[x:] = [" "] * count + self.chars[x : columns - count]
        self.pens[x:] = [pen] * count + self.pens[x : columns - count]

    def delete(self, x: int, count: int, pen: Pen) -> None:
        """Delete cells; blanks come in at the end."""
        self._part(x)
        self._part(x + count)
        self.chars[x:] = self.chars[x + count :] + [" "] * count
        self.pens[x:] = self.pens[x + count :] + [pen] * count

    def resize(self, columns: int) -> None:
        """Cut the line, or make it longer."""
        more = columns - len(self.chars)
        if more < 0:
            self._part(columns)
            del self.chars[columns:], self.pens[columns:]
        else:
            self.chars += [" "] * more
            self.pens += [PLAIN] * more

    def drawn(self) -> Drawn:
        """Return the line as runs of one pen."""
        first = self.pens[0]
        if self.pens.count(first) == len(self.pens):
            text = "".join(self.chars)
            runs = [(text.rstrip(" ") if first == PLAIN else text, first)]
        else:
            runs = [
                ("".join(char for char, _ in run), pen)
                for pen, run in groupby(zip(self.chars, self.pens, strict=True), lambda one: one[1])
            ]
            if runs[-1][1] == PLAIN:
                runs[-1] = (runs[-1][0].rstrip(" "), PLAIN)
        return tuple(run for run in runs if run[0])

    def _part(self, x: int) -> None:
        """Part a wide sign whose second half is in this cell: half of it is never seen."""
        if 0 < x < len(self.chars) and not self.chars[x]:
            self.chars[x - 1] = self.chars[x] = " "

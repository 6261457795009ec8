"""Write a terminal down as bytes: another terminal that reads them shows what this one does."""

from collections.abc import Iterable
from itertools import islice

from engine.terminal.cells import Cells, Drawn
from engine.terminal.pens import PLAIN, Color, Pen
from engine.terminal.terminal import Terminal

_BRIGHT = 8
_FEW = 16


def redrawn(terminal: Terminal, *, most_lines: int = 0) -> bytes:
    """Return bytes that draw a terminal on a new one of the same size.

    Args:
        terminal: The terminal.
        most_lines: So many of the lines that have left its screen come along.
    """
    grid = terminal.grid
    kept = list(islice(reversed(grid.history), most_lines))[::-1]
    below = grid.below
    text = "\x1bc" + _lines([*kept, *(grid.lines if below is None else below)])
    if below is not None:
        text += f"\x1b[?1049h\x1b[H{_lines(grid.lines)}"
    if (grid.top, grid.bottom) != (0, grid.rows - 1):
        text += f"\x1b[{grid.top + 1};{grid.bottom + 1}r"
    text += grid.modes.switched()
    y, x = grid.at
    row = y - (grid.top if grid.modes.is_origin_relative else 0)
    text += f"\x1b[{row + 1};{x + 1}H"
    if grid.cursor.x >= grid.columns and not grid.modes.inserts:  # full: draw its last sign again
        text += _last_sign(grid.lines[y])
    text += f"\x1b[0;{_said(grid.cursor.pen)}m" if grid.cursor.pen != PLAIN else "\x1b[m"
    return (text + f"\x1b]2;{terminal.title}\x07").encode()


def text_of(drawn: Drawn) -> str:
    """Return a line without its pens."""
    return "".join(text for text, _ in drawn)


def screen_text(terminal: Terminal) -> str:
    """Return what stands on the screen, without blank lines at its end."""
    return "\n".join(text_of(line.drawn()).rstrip() for line in terminal.grid.lines).rstrip()


def _lines(lines: Iterable[Cells]) -> str:
    return "\r\n".join(_line(line.drawn()) for line in lines)


def _line(drawn: Drawn) -> str:
    found = ""
    for text, pen in drawn:
        found += text if pen == PLAIN else f"\x1b[0;{_said(pen)}m{text}\x1b[m"
    return found


def _last_sign(line: Cells) -> str:
    """Return the sequences that draw the last sign of a full line once more."""
    cells = 1 if line.chars[-1] else 2
    pen, char = line.pens[-cells], line.chars[-cells]
    back = f"\x1b[{cells - 1}D" if cells > 1 else ""
    return f"{back}\x1b[0;{_said(pen)}m{char}"


def _said(pen: Pen) -> str:
    weights = (
        (pen.is_bold, "1"),
        (pen.is_dim, "2"),
        (pen.is_italic, "3"),
        (pen.is_underlined, "4"),
        (pen.is_reversed, "7"),
        (pen.is_hidden, "8"),
        (pen.is_struck, "9"),
    )
    words = [word for is_on, word in weights if is_on]
    words += [*_color(pen.color, 30), *_color(pen.ground, 40)]
    return ";".join(words) or "0"


def _color(color: Color, base: int) -> Iterable[str]:
    if color is None:
        return ()
    if isinstance(color, tuple):
        return (f"{base + 8};2;{color[0]};{color[1]};{color[2]}",)
    if color < _BRIGHT:
        return (str(base + color),)
    return (f"{base + 60 + color - _BRIGHT}" if color < _FEW else f"{base + 8};5;{color}",)

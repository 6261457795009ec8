"""Turn the cells of a terminal into rows of ink."""

from engine.terminal.cells import Cells, Drawn
from engine.terminal.cells import width_of as cells_of
from engine.terminal.grid import Grid
from engine.terminal.pens import Pen
from tui.ink import Ink, Row, Span, width_of
from tui.words.clean import clean


def line_at(grid: Grid, number: int) -> Cells:
    """Return a line, counted from the oldest one that is kept."""
    kept = len(grid.history)
    return grid.history[number] if number < kept else grid.lines[number - kept]


def row_of(drawn: Drawn) -> Row:
    """Return a line as a row; each sign takes as many cells as the program assumes."""
    return tuple(Span(_fitted(text), Ink(pen=pen)) for text, pen in drawn)


def with_cursor(row: Row, x: int) -> Row:
    """Return a row with the cell of the cursor turned round."""
    spans: list[Span] = []
    at = 0
    for number, (text, ink) in enumerate(row):
        for begin, char in enumerate(text):
            cells = width_of(char)
            if at <= x < at + cells:
                parts = (Span(text[:begin], ink), Span(char, _turned(ink)))
                rest = (Span(text[begin + 1 :], ink), *row[number + 1 :])
                return tuple(span for span in (*spans, *parts, *rest) if span.text)
            at += cells
        spans.append(Span(text, ink))
    return (*spans, Span(" " * (x - at)), Span(" ", _turned(Ink())))


def _turned(ink: Ink) -> Ink:
    pen = ink.pen or Pen()
    return ink._replace(pen=pen._replace(is_reversed=not pen.is_reversed))


def _fitted(text: str) -> str:
    """Return foreign text in as many cells as it took: the two may not agree on a sign."""
    if text.isascii() and text.isprintable():
        return text
    cleaned = clean(text)
    if len(cleaned) == len(text) and width_of(cleaned) == sum(map(cells_of, text)):
        return cleaned
    return "".join(map(_sign, text))


def _sign(char: str) -> str:
    cells, shown = cells_of(char), clean(char)
    return shown if width_of(shown) == cells and shown else "�" * bool(cells) + " " * (cells - 1)

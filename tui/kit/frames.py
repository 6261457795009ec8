"""Frames round tiles, cards and dialogs: title on the left, clock on the right."""

from collections.abc import Sequence

from tui.ink import LINE, Ink, Role, Row, Span, blank, cut_row, fit, grounded, row_width

_LIGHT = ("╭", "─", "╮", "│", "╰", "╯")
_HEAVY = ("┏", "━", "┓", "┃", "┗", "┛")
_EDGES = 2


def framed(
    rows: Sequence[Row],
    size: tuple[int, int],
    *,
    title: Row = (),
    ending: Row = (),
    is_focused: bool = False,
    ground: Role | None = None,
) -> list[Row]:
    """The rows in a frame of exactly this size; one blank column inside it on either side."""
    cells, height = size
    left_top, flat, right_top, upright, left_low, right_low = _HEAVY if is_focused else _LIGHT
    ink = Ink(Role.FOCUS) if is_focused else LINE
    ink = ink._replace(ground=ground)
    inner = cells - _EDGES
    top = _top(inner, flat, ink, title=title, ending=ending)
    drawn: list[Row] = [(Span(left_top, ink), *top, Span(right_top, ink))]
    paper = Ink(ground=ground)
    wall, gap = Span(upright, ink), blank(1, paper)
    for index in range(height - _EDGES):
        row = fit(rows[index] if index < len(rows) else (), inner - 2, paper)
        if ground:
            row = grounded(row, ground)
        drawn.append((wall, gap, *row, gap, wall))
    drawn.append((Span(left_low + flat * inner + right_low, ink),))
    return drawn


def title_room(cells: int, ending: Row) -> int:
    """Return the cells that the title of a frame this wide has beside what it ends with."""
    return cells - _EDGES - (row_width(ending) + 3 if ending else 0) - 4


def _top(inner: int, flat: str, ink: Ink, *, title: Row, ending: Row) -> Row:
    """The upper edge with its title two cells in and its ending two cells before the corner."""
    paper = Ink(ground=ink.ground)
    right = (Span(" ", paper), *ending, Span(" ", paper), Span(flat, ink)) if ending else ()
    room = inner - row_width(right) - 1
    name = (Span(" ", paper), *cut_row(title, room - 3), Span(" ", paper)) if title else ()
    line = Span(flat * (room - row_width(name)), ink)
    row = (Span(flat, ink), *name, line, *right)
    return grounded(row, ink.ground) if ink.ground else row

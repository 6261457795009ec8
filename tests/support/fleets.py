"""Read Fleet as one page, as if everything that scrolls were on screen."""

from tui.ink import Row, fit, overlaid
from tui.screens.fleet.page import FleetPage, Form


def rows_of(page: FleetPage, cells: int) -> list[Row]:
    """Return every row of the page, each as wide as the screen."""
    lead = 0 if page.form is Form.TILES else 1
    rows: list[Row] = [()] * max((piece.y + piece.height for piece in page.pieces), default=0)
    rows = [fit(row, cells) for row in ([page.head] * lead + rows)]
    for piece in page.pieces:
        rows = overlaid(rows, piece.draw(), piece.x, piece.y + lead)
    if page.close_up:
        rows += [fit((), cells)] * (1 + page.close_up.height)
        rows = overlaid(rows, page.close_up.draw(), page.close_up.x, page.close_up.y)
    return [fit(row, cells) for row in rows]

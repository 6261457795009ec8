"""Cells of a terminal as rows of ink: every row has the width that the program knows."""

from hypothesis import given
from hypothesis import strategies as st

from engine.terminal.terminal import Terminal
from tui.ink import row_width, text_of
from tui.terminals.rows import row_of, with_cursor


@given(st.text(max_size=60), st.integers(0, 19))
def test_no_sign_makes_a_row_wider_or_unclean(text: str, x: int) -> None:
    terminal = Terminal(4, 20)
    terminal.feed(text.encode("utf-8", "surrogatepass") + b"\x1b[41m\x1b[K")
    for line in terminal.grid.lines:
        row = row_of(line.drawn())
        assert row_width(row) <= 20
        assert all(char.isprintable() for char in text_of([row]))
        assert row_width(with_cursor(row, x)) == max(row_width(row), x + 1)


def test_the_cell_of_the_cursor_is_turned_round() -> None:
    terminal = Terminal(1, 20)
    terminal.feed("a中\x1b[7mb".encode())
    row = row_of(terminal.grid.lines[0].drawn())
    turned = [
        "".join(text for text, ink in with_cursor(row, x) if ink.pen and ink.pen.is_reversed)
        for x in range(6)
    ]
    assert turned == ["ab", "中b", "中b", "", "b ", "b "]

"""Rows keep their widths, whatever is cut, filled, sliced or laid over."""

from tui.ink import (
    MUTED,
    Ink,
    Role,
    Span,
    cut_row,
    fit,
    head_of,
    overlaid,
    row_width,
    slice_row,
    spread,
    tail_of,
    text_of,
    width_of,
)

WIDE = "日本語 text"


def test_width_counts_wide_characters_twice_and_combining_ones_not_at_all():
    assert width_of("abc") == 3
    assert width_of("日本") == 4
    assert width_of("e\u0301") == 1


def test_head_and_tail_never_split_a_wide_character():
    assert head_of(WIDE, 3) == "日"
    assert tail_of("text 日本", 3) == "本"
    assert tail_of("abc", 0) == ""


def test_cut_row_ends_in_an_ellipsis_where_something_was_lost():
    assert text_of([cut_row((Span("abc"), Span("defgh", MUTED)), 6)]) == "abcde…"
    assert text_of([cut_row((Span("abc"),), 3)]) == "abc"


def test_fit_and_spread_give_exactly_the_cells_asked_for():
    assert row_width(fit((Span(WIDE),), 7)) == 7
    row = spread((Span("left side that is long"),), (Span("right"),), 16)
    assert row_width(row) == 16
    assert text_of([row]) == "left si…   right" or text_of([row]).endswith("right")


def test_spread_cuts_the_left_part_first():
    assert text_of([spread((Span("a" * 50),), (Span("1:02"),), 12)]).endswith("1:02")


def test_slice_makes_blanks_of_halved_wide_characters():
    row = (Span("a日b"),)
    assert "".join(s.text for s in slice_row(row, 0, 2)) == "a "
    assert "".join(s.text for s in slice_row(row, 2, 4)) == " b"


def test_overlay_replaces_cells_and_nothing_else():
    base = [fit((Span("0123456789"),), 10)] * 3
    rows = overlaid(base, [(Span("XX", Ink(Role.ACCENT)),)], 4, 1)
    assert text_of(rows) == "0123456789\n0123XX6789\n0123456789"

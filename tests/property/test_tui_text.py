"""Whatever bytes come in: no control sequence comes out, and every row keeps its width."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from engine.messages.asked import Question
from engine.messages.logs import LogKind, LogLine
from engine.phases import Phase
from tests.support.world import NOW, changed, csvlite
from tui.ink import Span, fit, row_width, slice_row, spread, width_of
from tui.kit.ascii import ascii_text
from tui.kit.lists import cursor_row
from tui.screens.fleet.page import lay_out
from tui.screens.worker.lines import Look
from tui.screens.worker.logs import Log
from tui.words.clean import clean, clean_block, clean_code, clean_tree
from tui.words.cutting import cut_command, cut_end, cut_path, wrap
from tui.words.scene import Scene
from tui.words.wording import changed_words

_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_SEQUENCES = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b]52;c;aGk=\x07",
        "\x1b]0;t\x1b\\",
        "\x9b6n",
        "\x9d0;t\x9c",
        "\x1bc",
        "\x1bP1q",
        "\u202e",
        "\u200b",
        "\x1b",
        "\r",
        "\n",
        "\t",
        "[red]",
        "[/]",
        "[@click=app.exit]",
        "日本",
        "e\u0301",
        "\U0001f468\u200d\U0001f469",
        "\ufe0f",
        "\u2066",
        "\U000e0041",
        "\ud800",
    ]
)
_FOREIGN = st.lists(st.one_of(st.text(max_size=12), _SEQUENCES), max_size=8).map("".join)
_RAW = st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape"))


@given(st.one_of(_FOREIGN, _RAW))
def test_no_control_character_survives_and_cleaning_twice_changes_nothing(text: str):
    cleaned = clean(text)
    assert not _FORBIDDEN.search(cleaned)
    assert clean(cleaned) == cleaned
    assert not _FORBIDDEN.search(clean_block(text).replace("\n", ""))
    assert not _FORBIDDEN.search(clean_code(text))


@given(_FOREIGN)
def test_widths_are_those_of_the_terminal_library(text: str):
    cleaned = clean(text)
    assert width_of(cleaned) == cell_len(cleaned)


@pytest.mark.needs("Unicode 14")
def test_every_character_is_as_wide_as_the_terminal_library_says():
    wrong = [
        code for code in range(0x110000) if width_of(clean(chr(code))) != cell_len(clean(chr(code)))
    ]
    assert wrong == []


@given(_FOREIGN, st.integers(0, 40))
def test_cut_text_fits(text: str, cells: int):
    cleaned = clean(text)
    for cut in (cut_end, cut_path, cut_command):
        assert width_of(cut(cleaned, cells)) <= cells


@given(_FOREIGN, st.integers(1, 30))
def test_wrapped_text_fits_and_loses_only_blanks(text: str, cells: int):
    cleaned = clean(text)
    lines = wrap(cleaned, max(cells, 2))
    assert all(width_of(line) <= max(cells, 2) for line in lines)
    assert "".join("".join(lines).split()) == "".join(cleaned.split())


@given(st.lists(_FOREIGN, max_size=5), st.integers(0, 50))
def test_rows_are_as_wide_as_asked(texts: list[str], cells: int):
    row = tuple(Span(clean(text)) for text in texts)
    assert row_width(fit(row, cells)) == cells
    assert row_width(spread(row, row, cells)) == cells
    whole = row_width(row)
    assert row_width(slice_row(row, 0, cells)) == min(cells, whole)


@given(_FOREIGN)
def test_ascii_is_ascii_and_as_wide(text: str):
    cleaned = clean(text)
    plain = ascii_text(cleaned)
    assert plain.isascii()
    assert len(plain) == width_of(cleaned)


@settings(max_examples=40)
@given(_FOREIGN, st.sampled_from(list(Phase)), st.integers(20, 180), st.integers(4, 60))
def test_any_text_in_any_phase_draws_a_fleet_of_the_right_size(
    text: str, phase: Phase, cells: int, height: int
):
    question = Question(id="q", text=text, choices=(text,), asked_at=NOW)
    view = clean_tree(
        changed(
            csvlite(),
            "implement/worker_1",
            phase=phase,
            tool=text,
            label=text,
            error=text,
            agent=text,
            last_lines=(text, text),
            questions=(question,),
            conflicts=(text,),
            violations=(text,),
        )
    )
    scene = Scene(view=view, run=view.runs[0], now=NOW)
    page = lay_out(scene, (cells, height), "implement/worker_1")
    for piece in page.pieces:
        assert {row_width(row) for row in piece.draw()} == {piece.width}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(list(LogKind)), _FOREIGN), max_size=40),
    st.lists(st.integers(-50, 50), max_size=6),
    st.integers(12, 90),
    st.integers(2, 20),
)
def test_a_log_draws_exactly_its_rows_whatever_is_in_it_and_wherever_it_is_looked_at(
    lines: list[tuple[LogKind, str]], moves: list[int], cells: int, height: int
):
    log = Log(started_at=NOW)
    log.take(LogLine(at=NOW, kind=kind, text=clean(text)) for kind, text in lines)
    for by in [0, *moves]:
        if by:
            log.move(by)
            log.toggle_fold()
        log.lay(Look(cells))
        whole = [drawn.row for _, drawn in log.rows(log.base, log.base + log.row_count)]
        assert len(whole) == log.row_count
        begin, end = log.rows_of(log.cursor) if log.items else (0, 0)
        seen = [drawn.row for _, drawn in log.rows(begin, begin + height)]
        assert seen == whole[begin : begin + height]
        assert end <= log.row_count
        drawn = {row_width(cursor_row(row, cells + 1, is_focused=False)) for row in whole}
        assert drawn <= {cells + 1}


@given(_FOREIGN, _FOREIGN)
def test_changed_words_lie_inside_their_lines_in_order(old: str, new: str):
    one, two = clean(old), clean(new)
    for marks, text in zip(changed_words(one, two), (one, two), strict=True):
        at = 0
        for start, end in marks:
            assert at <= start < end <= len(text)
            at = end

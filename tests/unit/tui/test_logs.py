"""A log follows, holds, folds, searches, and costs the same however long it is."""

import pytest

from engine.messages.logs import LogKind, LogLine
from tests.support.consoles import NOW, log_lines
from tui.ink import row_width, text_of
from tui.screens.worker.logs import CAPACITY, LogPane


def _pane(count: int = 50, **more: object) -> LogPane:
    pane = LogPane(started_at=NOW - 250, **more)  # type: ignore[arg-type]
    pane.take(log_lines(count))
    return pane


def _line(kind: LogKind, text: str) -> LogLine:
    return LogLine(at=NOW, kind=kind, text=text)


def test_it_follows_the_end():
    pane = _pane()
    assert "test_49" in text_of(pane.draw(80, 10))
    pane.take([_line(LogKind.SAYS, "the newest")])
    assert "the newest" in text_of(pane.draw(80, 10))


def test_moving_holds_and_counts_what_comes_in_below():
    pane = _pane()
    pane.draw(80, 10)
    pane.move(-5)
    before = text_of(pane.draw(80, 10)[:-1])
    pane.take([_line(LogKind.SAYS, f"new {n}") for n in range(14)])
    rows = pane.draw(80, 10)
    assert text_of(rows[:-1]) == before
    assert "HOLD" in text_of(rows[-1:])
    assert "14 new lines below" in text_of(rows[-1:])


def test_the_beginning_of_a_log_that_is_longer_says_how_much_is_missing():
    pane = LogPane()
    pane.clear(NOW, earlier=12_000)
    pane.take(log_lines(50))
    pane.first()
    assert "12,000 lines before these: `plait logs` has them" in text_of(pane.draw(80, 10)[-1:])
    pane.move(30)
    pane.draw(80, 10)
    assert "before these" not in text_of(pane.draw(80, 10)[-1:])


def test_going_to_the_end_follows_again():
    pane = _pane()
    pane.move(-5)
    pane.move(99)
    assert pane.is_following


@pytest.mark.parametrize(("cells", "height"), [(20, 3), (80, 10), (200, 50)])
def test_every_row_is_as_wide_as_asked(cells: int, height: int):
    pane = _pane(200)
    for by in (0, -7, -500):
        if by:
            pane.move(by)
        rows = pane.draw(cells, height)
        assert len(rows) == height
        assert {row_width(row) for row in rows} == {cells}


def test_the_cursor_is_on_screen_after_any_move():
    pane = _pane(300)
    for by in (-50, -200, 100, 30, -3):
        pane.move(by)
        assert "▌" in text_of(pane.draw(60, 12)) or pane.is_following


def test_output_is_folded_from_four_lines_on_and_opens():
    pane = LogPane()
    pane.take([_line(LogKind.OUTPUT, f"out {n}") for n in range(20)])
    assert "► 19 lines folded" in text_of(pane.draw(80, 30))
    pane.move(-1)
    assert pane.toggle_fold()
    assert "out 19" in text_of(pane.draw(80, 30))


def test_a_short_result_stands_beside_its_tool_and_a_bad_one_is_red():
    pane = LogPane()
    pane.take([_line(LogKind.TOOL, "run pytest"), _line(LogKind.TOOL_END, "exit 1 in 3.1 s")])
    rows = pane.draw(80, 4)
    assert "exit 1 in 3.1 s" in text_of(rows[:1])
    assert rows[0][-2].ink.role == "failed" or any(s.ink.role == "failed" for s in rows[0])


def test_detail_shows_says_then_tools_then_everything():
    pane = _pane()
    everything = len(pane.items)
    pane.show(0)
    assert {item.line.kind for item in pane.items} == {LogKind.SAYS, LogKind.ERROR}
    pane.show(1)
    assert LogKind.TOOL in {item.line.kind for item in pane.items}
    pane.show(2)
    assert len(pane.items) == everything


def test_search_finds_fills_and_wraps_nowhere():
    pane = _pane()
    pane.query = "test_9"
    pane.first()
    assert pane.to_next(1)
    assert pane.here is not None
    assert "test_9" in pane.here.line.text
    assert not pane.to_next(1)
    filled = [s for row in pane.draw(80, 20) for s in row if s.ink.ground == "waiting_fill"]
    assert [s.text for s in filled] == ["test_9"]


def test_without_a_search_next_goes_to_errors():
    pane = _pane(10)
    pane.first()
    pane.to_next(1)
    assert pane.here is not None
    assert pane.here.line.kind is LogKind.ERROR


def test_a_path_under_the_cursor_is_a_link():
    pane = LogPane()
    pane.take([_line(LogKind.TOOL, "edit src/csvlite/reader.py:88")])
    assert pane.link == "src/csvlite/reader.py:88"


def test_a_full_ring_drops_the_oldest_and_keeps_the_eye_where_it_was():
    pane = LogPane()
    pane.take([_line(LogKind.SAYS, f"line {n}") for n in range(CAPACITY)])
    pane.move(-10)
    here = pane.here.line.text if pane.here else ""
    pane.take([_line(LogKind.SAYS, f"later {n}") for n in range(CAPACITY // 4)])
    assert len(pane.lines) == CAPACITY
    assert pane.here is not None
    assert pane.here.line.text == here


def test_of_output_that_fills_the_ring_what_is_left_stays_on_the_log():
    pane = LogPane()
    for begin in range(0, CAPACITY + CAPACITY // 2, 500):
        pane.take([_line(LogKind.OUTPUT, f"line {n}") for n in range(begin, begin + 500)])
    assert len(pane.items) == 1
    kept = [pane.items[0].line, *pane.items[0].folded]
    assert kept == pane.lines
    assert kept[-1].text == f"line {CAPACITY + CAPACITY // 2 - 1}"


def test_times_and_wrapping_can_be_turned_off():
    pane = LogPane(started_at=NOW - 5)
    pane.take([_line(LogKind.SAYS, "word " * 40)])
    assert "0:05" in text_of(pane.draw(60, 6))
    pane.has_times = pane.is_wrapped = False
    text = text_of(pane.draw(60, 6))
    assert "0:05" not in text
    assert "…" in text

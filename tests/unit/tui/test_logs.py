"""A log follows, holds, folds, searches, and costs the same however long it is."""

import pytest

from engine.messages.logs import LogKind, LogLine
from tests.support.world import NOW, log_lines
from tui.ink import Row, row_width, text_of
from tui.screens.worker.lines import Look
from tui.screens.worker.logs import CAPACITY, Log


def _log(count: int = 50, **more: object) -> Log:
    log = Log(started_at=NOW - 250, **more)  # type: ignore[arg-type]
    log.take(log_lines(count))
    return log


def _rows(log: Log, cells: int = 80) -> list[Row]:
    look = Look(cells, log.is_wrapped, log.has_times, log.started_at, log.query)
    log.lay(look)
    return [drawn.row for _, drawn in log.rows(log.base, log.base + log.row_count)]


def _line(kind: LogKind, text: str) -> LogLine:
    return LogLine(at=NOW, kind=kind, text=text)


def test_it_follows_the_end():
    log = _log()
    log.take([_line(LogKind.SAYS, "the newest")])
    assert log.here is not None
    assert log.here.line.text == "the newest"


def test_moving_holds_and_counts_what_comes_in_below():
    log = _log()
    log.move(-5)
    here = log.here
    log.take([_line(LogKind.SAYS, f"new {n}") for n in range(14)])
    assert not log.is_following
    assert log.here is here
    assert log.below == 14


def test_going_to_the_end_follows_again():
    log = _log()
    log.move(-5)
    log.move(99)
    assert log.is_following


@pytest.mark.parametrize("cells", [40, 80, 200])
def test_no_row_is_wider_than_asked(cells: int):
    log = _log(200)
    assert max(map(row_width, _rows(log, cells))) <= cells


@pytest.mark.parametrize(("begin", "count"), [(0, 3), (7, 10), (190, 50)])
def test_any_stretch_of_rows_is_what_the_whole_has_there(begin: int, count: int):
    log = _log(200)
    whole = _rows(log, 40)
    stretch = [drawn.row for _, drawn in log.rows(begin, begin + count)]
    assert stretch == whole[begin : begin + count]


def test_rows_keep_their_numbers_while_the_oldest_go():
    log = Log()
    log.take([_line(LogKind.SAYS, f"line {n}") for n in range(CAPACITY)])
    begin, end = log.rows_of(log.cursor)
    log.move(-1)
    log.take([_line(LogKind.SAYS, f"later {n}") for n in range(CAPACITY // 4)])
    assert log.base > 0
    assert [drawn.text for _, drawn in log.rows(begin, end)] == [f"line {CAPACITY - 1}"]


def test_output_is_folded_from_four_lines_on_and_opens():
    log = Log()
    log.take([_line(LogKind.OUTPUT, f"out {n}") for n in range(20)])
    assert "► 19 lines folded" in text_of(_rows(log))
    log.move(-1)
    assert log.toggle_fold()
    assert "out 19" in text_of(_rows(log))


def test_a_short_result_stands_beside_its_tool_and_a_bad_one_is_red():
    log = Log()
    log.take([_line(LogKind.TOOL, "run pytest"), _line(LogKind.TOOL_END, "exit 1 in 3.1 s")])
    rows = _rows(log)
    assert "exit 1 in 3.1 s" in text_of(rows[:1])
    assert rows[0][-2].ink.role == "failed" or any(s.ink.role == "failed" for s in rows[0])


def test_detail_shows_says_then_tools_then_everything():
    log = _log()
    everything = len(log.items)
    log.show(0)
    assert {item.line.kind for item in log.items} == {LogKind.SAYS, LogKind.ERROR}
    log.show(1)
    assert LogKind.TOOL in {item.line.kind for item in log.items}
    log.show(2)
    assert len(log.items) == everything


def test_search_finds_fills_and_wraps_nowhere():
    log = _log()
    log.query = "test_9"
    log.first()
    assert log.to_next(1)
    assert log.here is not None
    assert "test_9" in log.here.line.text
    assert not log.to_next(1)
    filled = [s for row in _rows(log) for s in row if s.ink.ground == "waiting_fill"]
    assert [s.text for s in filled] == ["test_9"]


def test_without_a_search_next_goes_to_errors():
    log = _log(10)
    log.first()
    log.to_next(1)
    assert log.here is not None
    assert log.here.line.kind is LogKind.ERROR


def test_a_path_under_the_cursor_is_a_link():
    log = Log()
    log.take([_line(LogKind.TOOL, "edit src/csvlite/reader.py:88")])
    assert log.link == "src/csvlite/reader.py:88"


@pytest.mark.parametrize("text", ["Ran 4 tests in 0.000s", "3.11 MB in 2.5", "$ sleep 0.3s"])
def test_a_figure_is_no_path(text: str):
    log = Log()
    log.take([_line(LogKind.TOOL, text)])
    assert not log.link


def test_a_full_ring_drops_the_oldest_and_keeps_the_eye_where_it_was():
    log = Log()
    log.take([_line(LogKind.SAYS, f"line {n}") for n in range(CAPACITY)])
    log.move(-10)
    here = log.here.line.text if log.here else ""
    log.take([_line(LogKind.SAYS, f"later {n}") for n in range(CAPACITY // 4)])
    assert len(log.lines) == CAPACITY
    assert log.here is not None
    assert log.here.line.text == here


def test_of_output_that_fills_the_ring_what_is_left_stays_on_the_log():
    log = Log()
    for begin in range(0, CAPACITY + CAPACITY // 2, 500):
        log.take([_line(LogKind.OUTPUT, f"line {n}") for n in range(begin, begin + 500)])
    assert len(log.items) == 1
    kept = [log.items[0].line, *log.items[0].folded]
    assert kept == log.lines
    assert kept[-1].text == f"line {CAPACITY + CAPACITY // 2 - 1}"


def test_times_and_wrapping_can_be_turned_off():
    log = Log(started_at=NOW - 5)
    log.take([_line(LogKind.SAYS, "word " * 40)])
    assert "0:05" in text_of(_rows(log, 60))
    log.has_times = log.is_wrapped = False
    text = text_of(_rows(log, 60))
    assert "0:05" not in text
    assert "…" in text

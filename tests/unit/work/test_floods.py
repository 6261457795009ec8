"""Output that comes in floods is taken in one piece, and tells the same as line by line."""

import random
from pathlib import Path

import pytest

from engine.agents.agent_events import AgentEvent, Printed, Raw
from engine.agents.contract import Ending
from engine.agents.own_stream import OwnStream
from engine.messages.logs import LogKind, LogLines
from engine.plan.model import AgentChoice
from engine.work.logbook import KEPT_LINES, Logbook, raw_text
from tests.support.agent_runs import launch_request

PIECES = (
    b"a line",
    b"",
    b"ends\r",
    b"\xff\xfe no text",
    "ünï".encode(),
    b"\xc3",
    b"  ",
    b"x" * 500,
)
CHOICE = AgentChoice(name="shell", adapter="command")
RECORD = b'{"plait": "say", "text": "hello"}'


def plain(events: list[AgentEvent]) -> list[str]:
    told = [event for event in events if isinstance(event, Raw | Printed)]
    return raw_text(told).split("\n") if told else []


def fed(tmp_path: Path, blocks: list[bytes]) -> tuple[list[str], str]:
    stream = OwnStream(launch_request(tmp_path, choice=CHOICE), is_proved_by_exit=True)
    heard = (stream.feed("out", block) for block in blocks)
    lines = [line for events in heard for line in plain(events)]
    return lines, stream.finish(Ending(exit_code=0)).text


@pytest.mark.parametrize("seed", range(8))
def test_a_flood_reads_as_its_lines_do_when_they_come_one_by_one(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    lines = [dice.choice(PIECES) + b"\n" for _ in range(2_000)]
    assert fed(tmp_path, [b"".join(lines)]) == fed(tmp_path, lines)


def test_a_record_in_the_middle_of_a_flood_is_heard(tmp_path: Path) -> None:
    lines = [b"noise\n"] * 500 + [RECORD + b"\n"] + [b"noise\n"] * 500
    heard, said = fed(tmp_path, [b"".join(lines)])
    assert (len(heard), said) == (1_000, "hello")


def numbers(begin: int, end: int) -> str:
    return "\n".join(map(str, range(begin, end)))


def test_numbers_of_lines_go_on_when_a_flood_passes_what_is_kept() -> None:
    logbook = Logbook(1)
    logbook.write(LogKind.NOTE, "first", 0.0)
    for begin in range(0, 25_000, 5_000):
        logbook.write_raw(numbers(begin, begin + 5_000), 1.0, monotonic=1.0)
    logbook.write_raw(numbers(25_000, 40_000), 2.0, monotonic=2.0)
    chunk = logbook.read(0)
    assert (logbook.next, chunk.next_offset) == (40_001, 40_001)
    assert KEPT_LINES <= len(chunk.lines) <= KEPT_LINES + 15_000
    assert logbook.first == 40_001 - len(chunk.lines)
    texts = [line.text for line in chunk.lines]
    assert texts == [str(n) for n in range(40_000 - len(texts), 40_000)]
    assert [line.text for line in logbook.read(40_000).lines] == ["39999"]
    for after in (30_000, 34_999, 39_998, 40_001, 50_000):
        read = logbook.read(after).lines
        assert read == LogLines.of(list(chunk.lines)[after - logbook.first :])
        assert len(read) == max(40_001 - after, 0)
    assert logbook.tail()[-1] == "39999"


def test_a_log_is_focused_while_somebody_reads_it_and_not_for_long_after() -> None:
    logbook = Logbook(1)
    assert not logbook.is_focused(10.0)
    logbook.last_read = 10.0
    assert logbook.is_focused(10.5)
    assert not logbook.is_focused(100.0)


def test_last_words_that_are_longer_than_what_is_kept_are_not_said_again() -> None:
    logbook = Logbook(1)
    for begin in range(0, 15_000, 3_000):
        logbook.write_raw(numbers(begin, begin + 3_000), at=1.0, monotonic=1.0)
    logbook.end(numbers(1_000, 15_000), at=2.0)
    assert logbook.next == 15_000
    other = Logbook(1)
    other.end(f"{numbers(0, 40)}\nthe end", at=2.0)
    assert other.next == 41

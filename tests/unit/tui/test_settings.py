"""Settings and times as they are typed."""

from datetime import datetime

import pytest

from engine.limits import Limits
from tui.words.settings import limits_with, split_settings, time_named

NOW = datetime.fromisoformat("2026-03-05T12:00:30").astimezone()


@pytest.mark.parametrize(
    ("word", "then"),
    [
        ("10:05", "2026-03-05T10:05:59"),
        ("9:05:07", "2026-03-05T09:05:07"),
        ("12:00", "2026-03-05T12:00:59"),
        ("23:10", "2026-03-04T23:10:59"),
        ("10m", "2026-03-05T11:50:30"),
        ("1.5h", "2026-03-05T10:30:30"),
        ("2026-03-01T08:15", "2026-03-01T08:15:59"),
        ("2026-03-01 08:15:01", "2026-03-01T08:15:01"),
    ],
)
def test_a_time_is_the_last_one_that_has_been_and_whole(word: str, then: str):
    found = time_named(word, NOW.timestamp())
    assert found is not None
    assert int(found) == datetime.fromisoformat(then).astimezone().timestamp()


@pytest.mark.parametrize("word", ["", "noon", "25:00", "10", "-5m", "2026-13-01"])
def test_what_is_no_time_is_none(word: str):
    assert time_named(word, NOW.timestamp()) is None


def test_settings_are_a_first_line_of_nothing_else():
    assert split_settings("memory_mb=2 at=9:05\ndo it") == (
        {"memory_mb": "2", "at": "9:05"},
        "do it",
    )
    assert split_settings("at nine") == ({}, "at nine")
    assert limits_with(Limits(), {"memory_mb": "2"}) == Limits(memory_mb=2)
    assert limits_with(Limits(), {"at": "9"}) == "at is not a limit"

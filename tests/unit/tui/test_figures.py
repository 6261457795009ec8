"""Figures are written one way everywhere."""

import pytest

from tui.present import figures as f


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (42, "0:42"), (252, "4:12"), (3852, "1:04:12"), (183_600, "2d 3h"), (-5, "0:00")],
)
def test_durations(seconds: float, text: str):
    assert f.lasting(seconds) == text


def test_what_is_not_known_is_a_dash_and_never_a_zero():
    assert f.lasting(None) == f.UNKNOWN
    assert f.cost(None) == f.UNKNOWN
    assert f.cost(0.0) == f.UNKNOWN
    assert f.memory(None) == f.UNKNOWN
    assert f.tokens(None) == f.UNKNOWN


@pytest.mark.parametrize(
    ("usd", "text"), [(0.004, "<$0.01"), (0.42, "$0.42"), (12.8, "$12.80"), (128.4, "$128")]
)
def test_costs(usd: float, text: str):
    assert f.cost(usd) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (812, "812"),
        (31_200, "31.2k"),
        (999_949, "999.9k"),
        (999_951, "1.00M"),
        (1_240_000, "1.24M"),
    ],
)
def test_tokens(count: int, text: str):
    assert f.tokens(count) == text


@pytest.mark.parametrize(
    ("mib", "text"), [(88, "88M"), (410, "410M"), (1023.7, "1.0G"), (1024, "1.0G"), (21_504, "21G")]
)
def test_memory(mib: float, text: str):
    assert f.memory(mib) == text


def test_ages_and_counts():
    assert f.age(5) == "5 s ago"
    assert f.age(400) == "6 min ago"
    assert f.age(90_000) == "1 d ago"
    assert f.countdown(42) == "in 0:42"
    assert f.some(1, "file") == "1 file"
    assert f.some(7012, "file") == "7,012 files"


def test_clock_shows_the_date_on_other_days():
    now = 1_800_000_000.0
    assert f.clock(now, now).count(":") == 2
    assert ":" not in f.clock(now - 5 * 86_400, now)

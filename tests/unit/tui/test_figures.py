"""Figures are written one way everywhere."""

import pytest

from engine.limits import Usage
from engine.messages.results import LoginUse, WorkerView
from engine.phases import Phase
from tui.words import figures as f
from tui.words.said import how_heard


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (42, "0:42"), (252, "4:12"), (3852, "1:04:12"), (183_600, "2d 3h"), (-5, "0:00")],
)
def test_durations(seconds: float, text: str):
    assert f.lasting(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (7199, "119 min"),
        (7500, "2:05 h"),
        (90_000, "1d 1h"),
    ],
)
def test_times_that_are_left(seconds: float, text: str):
    assert f.remaining(seconds) == text


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
    ("told", "text"),
    [
        ((None, None), f.UNKNOWN),
        ((0.4, 0.02), "$0.42"),
        ((0.42, None), "≥$0.42"),
    ],
)
def test_a_cost_that_one_of_several_did_not_tell_is_not_counted_as_nothing(
    told: tuple[float | None, ...], text: str
):
    workers = [a_worker(n, agent="claude", attempt=1, usd=usd) for n, usd in enumerate(told, 1)]
    command = a_worker(8, agent="", attempt=1, usd=None)
    waiting = a_worker(9, agent="claude", attempt=0, usd=None)
    assert f.cost_of([*workers, command, waiting]) == text


def a_worker(number: int, *, agent: str, attempt: int, usd: float | None) -> WorkerView:
    return WorkerView(
        worker=f"s/worker_{number}",
        step="s",
        phase=Phase.RUNNING,
        agent=agent,
        attempt=attempt,
        usage=Usage(usd=usd),
    )


def test_what_a_login_used_says_how_much_of_it_is_unknown():
    assert f.used(LoginUse()) == "\u2013, 0 tokens"
    assert f.used(LoginUse(usd=1.5, tokens=31_200, attempts=2)) == "$1.50, 31.2k tokens"
    unknown = LoginUse(usd=1.5, tokens=10, attempts=5, without_usd=2, without_tokens=1)
    assert f.used(unknown) == "≥$1.50, ≥10 tokens; 2 of 5 attempts reported no cost"
    silent = LoginUse(attempts=2, without_usd=2, without_tokens=2)
    assert f.used(silent) == "\u2013, \u2013 tokens; 2 of 2 attempts reported no cost"


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
    assert f.how_long(5) == "5 s"
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


@pytest.mark.parametrize(
    ("ways", "text"),
    [
        (("now", "now"), "it reads this between its tools"),
        (("after_turn",), "it reads this after its turn"),
        (("by_resume",), "it reads this when it resumes, after its current task"),
        (("no",), "it reads nothing while it works; its next attempt gets this"),
        (("",), "it reads this as soon as it can"),
        (("now", "no"), "each reads this as soon as it can"),
    ],
)
def test_whoever_says_something_is_told_when_it_is_heard(ways: tuple[str, ...], text: str):
    workers = [
        WorkerView(worker=f"s/worker_{n}", step="s", phase=Phase.RUNNING, hears=way)
        for n, way in enumerate(ways, 1)
    ]
    assert how_heard(workers) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("", None),
        ("-1", None),
        ("\u00b2", None),
        ("\u0663", None),
        ("9" * 5000, None),
    ],
)
def test_a_number_is_one_of_plain_digits_that_are_not_too_many(text: str, number: int | None):
    assert f.number_in(text) == number

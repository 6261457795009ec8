"""The clock of an attempt: what counts against its limit and what does not."""

import pytest

from engine.keeper import limits
from engine.keeper.limits import Stopwatch


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    fake = Time()
    monkeypatch.setattr(limits, "time", fake)
    return fake


def test_holds_do_not_count(time: Time) -> None:
    watch = Stopwatch()
    time.now += 5
    watch.hold("pause")
    time.now += 7
    assert (watch.active_s, watch.held_s, watch.is_held) == (5, 7, True)
    watch.release("pause")
    time.now += 2
    assert (watch.active_s, watch.held_s, watch.wall_s) == (7, 7, 14)


def test_a_restart_counts_from_now_and_keeps_its_holders(time: Time) -> None:
    watch = Stopwatch()
    watch.hold("human")
    time.now += 5
    watch.restart()
    time.now += 2
    assert (watch.wall_s, watch.held_s, watch.active_s) == (2, 2, 0)


def test_work_counts_although_somebody_holds_it(time: Time) -> None:
    watch = Stopwatch()
    watch.hold("human")
    time.now += 5
    watch.count(2)
    watch.count(-1)
    assert (watch.active_s, watch.held_s) == (2, 5)
    watch.restart()
    assert watch.active_s == 0


def test_it_goes_on_when_the_last_holder_lets_go(time: Time) -> None:
    watch = Stopwatch()
    watch.hold("pause")
    time.now += 1
    watch.hold("human")
    watch.hold("human")
    time.now += 1
    watch.release("pause")
    time.now += 1
    assert watch.held_s == 3
    watch.release("human")
    watch.release("human")
    time.now += 1
    assert (watch.held_s, watch.active_s) == (3, 1)

"""The poll loop: timers in order, replaced and cancelled; callbacks that end other callbacks."""

import os
import select
import time
from collections.abc import Iterator

import pytest

from engine.keeper.loop import Loop


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def test_timers_are_called_once_in_order_of_their_time() -> None:
    loop, called = Loop(), []
    now = time.monotonic()
    loop.at("later", now - 1, lambda: called.append("later"))
    loop.at("sooner", now - 2, lambda: called.append("sooner"))
    loop.at("never", now + 600, lambda: called.append("never"))
    loop.turn(0)
    loop.turn(0)
    assert called == ["sooner", "later"]


def test_a_timer_of_the_same_name_is_replaced_and_can_be_cancelled() -> None:
    loop, called = Loop(), []
    loop.after("one", 0, lambda: called.append("old"))
    loop.after("one", 0, lambda: called.append("new"))
    loop.after("two", 0, lambda: called.append("two"))
    loop.cancel("two")
    loop.turn(0)
    assert called == ["new"]


def test_a_timer_that_an_earlier_one_cancels_is_not_called() -> None:
    loop, called = Loop(), []
    now = time.monotonic()
    loop.at("first", now - 2, lambda: loop.cancel("second"))
    loop.at("second", now - 1, lambda: called.append("second"))
    loop.turn(0)
    assert called == []


def test_it_waits_no_longer_than_the_next_timer(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), []
    loop.watch(pipe[0], select.POLLIN, lambda _: called.append("read"))
    loop.after("soon", 0.01, lambda: called.append("soon"))
    loop.turn()
    assert called == ["soon"]


def test_a_descriptor_that_is_not_watched_any_more_is_left_alone(pipe: tuple[int, int]) -> None:
    loop, called = Loop(), []
    os.write(pipe[1], b"x")
    loop.watch(pipe[0], select.POLLIN, lambda _: called.append("read"))
    loop.turn(0)
    loop.unwatch(pipe[0])
    loop.unwatch(pipe[0])
    loop.turn(0)
    assert called == ["read"]

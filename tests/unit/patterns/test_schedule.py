"""Test how close to a perfect list schedule the bounded patterns come, by a clock that jumps."""

import heapq
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.patterns import balanced, first, gather, in_batches, retry_failed, settled, stages

SKEWED = [8.0 if index % 3 == 0 else 1.0 for index in range(24)]


def list_schedule(lengths: list[float], k: int) -> float:
    """Return when the last ends if `k` take the next one as soon as they are free."""
    free = [0.0] * k
    for length in lengths:
        heapq.heappush(free, heapq.heappop(free) + length)
    return max(free)


def took(pattern: Callable[[], Awaitable[object]]) -> float:
    async def timed() -> float:
        start = trio.current_time()
        await pattern()
        return trio.current_time() - start

    return trio.run(timed, clock=MockClock(autojump_threshold=0))


def naps() -> list[Any]:
    return [partial(trio.sleep, length) for length in SKEWED]


@pytest.mark.parametrize("k", [3, 6, 8])
def test_skewed_work_takes_no_longer_than_a_list_schedule(k: int):
    perfect = list_schedule(SKEWED, k)
    members = {f"m{number}": trio.sleep for number in range(k)}
    for pattern in (
        partial(gather, naps(), limit=k),
        partial(settled, naps(), limit=k),
        partial(first, 24, naps(), limit=k),
        partial(retry_failed, naps(), limit=k),
        partial(stages, SKEWED, trio.sleep, limit=k),
        partial(balanced, members, SKEWED),
    ):
        assert took(pattern) == pytest.approx(perfect, rel=1e-6), pattern


def test_the_measure_sees_a_barrier():
    barrier = took(partial(in_batches, SKEWED, trio.sleep, size=3))
    assert barrier > 2 * list_schedule(SKEWED, 3)


def test_waits_between_attempts_are_as_long_as_they_say():
    async def never() -> None:
        raise LookupError

    for backoff, total in (("fixed", 3), ("linear", 6), ("exponential", 7)):
        retry = partial(retry_failed, [never], attempts=4, backoff=backoff, base_s=1, jitter=0)
        assert took(retry) == pytest.approx(total)

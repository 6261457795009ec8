from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine.patterns import (
    Backoff,
    Failure,
    Success,
    gather,
    retry_failed,
    with_retry,
    with_timeout,
)
from engine.patterns.retry import wait_s

pytestmark = pytest.mark.anyio


class Flaky:
    """Fails `failures` times, then answers how often it was called."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        await checkpoint()
        if self.calls <= self.failures:
            raise LookupError(f"call {self.calls}")
        return self.calls


async def test_with_retry_answers_the_first_success():
    assert await with_retry(Flaky(2), attempts=3, base_s=0) == 3


async def test_with_retry_raises_the_last_error():
    flaky = Flaky(9)
    with pytest.raises(LookupError, match="call 3"):
        await with_retry(flaky, attempts=3, base_s=0)
    assert flaky.calls == 3


async def test_retry_failed_repeats_only_the_failed():
    works = [Flaky(0), Flaky(1), Flaky(9)]
    seen = []
    outcomes = await retry_failed(
        works, attempts=3, base_s=0, limit=1, progress=lambda *told: seen.append(told)
    )
    assert [work.calls for work in works] == [1, 2, 3]
    assert outcomes[:2] == [Success(1, 0, 1), Success(2, 1, 2)]
    assert isinstance(outcomes[2], Failure)
    assert (outcomes[2].index, outcomes[2].attempts) == (2, 3)
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def test_a_wait_holds_no_place():
    order = []

    async def fails_once() -> None:
        order.append("flaky")
        if order.count("flaky") == 1:
            raise LookupError

    async def other() -> None:
        order.append("other")

    await retry_failed([fails_once, other], limit=1, base_s=0.01)
    assert order == ["flaky", "other", "flaky"]


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.FIXED, [1, 1, 1, 1, 1]),
        (Backoff.LINEAR, [1, 2, 3, 4, 5]),
        (Backoff.EXPONENTIAL, [1, 2, 4, 8, 10]),
    ],
)
def test_the_wait_grows_as_it_is_called(backoff: Backoff, delays: list[float]):
    grown = [wait_s(backoff, n, base_s=1, max_s=10, jitter=0) for n in range(1, 6)]
    assert grown == delays
    assert wait_s(backoff, 10**6, base_s=1, max_s=10**9, jitter=0) <= 10**9


def test_jitter_varies_the_wait_within_its_share():
    delays = {wait_s(Backoff.FIXED, 1, base_s=10, max_s=60, jitter=0.2) for _ in range(200)}
    assert len(delays) > 100
    assert 8 <= min(delays) < 9
    assert 11 < max(delays) <= 12


async def test_with_timeout_cancels_what_takes_too_long():
    ended = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    with pytest.raises(TimeoutError):
        await with_timeout(slow, seconds=0.01)
    assert ended == ["slow"]
    assert await with_timeout(Flaky(0), seconds=5) == 1


async def test_with_timeout_holds_for_each_or_for_the_whole():
    naps = [partial(anyio.sleep, 0.03)] * 3
    await gather([partial(with_timeout, nap, seconds=5) for nap in naps], limit=1)
    with pytest.raises(TimeoutError):
        await gather([partial(with_timeout, nap, seconds=0.001) for nap in naps])
    with pytest.raises(TimeoutError):
        await with_timeout(partial(gather, naps, limit=1), seconds=0.04)


async def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="attempts must be at least 1"):
        await with_retry(Flaky(0), attempts=0)
    with pytest.raises(ValueError, match="quadratic"):
        await with_retry(Flaky(0), backoff="quadratic")
    with pytest.raises(ValueError, match="jitter=2"):
        await with_retry(Flaky(0), jitter=2)
    with pytest.raises(ValueError, match="seconds must be at least 0"):
        await with_timeout(Flaky(0), seconds=-1)
    with pytest.raises(ValueError, match="seconds must be at least 0"):
        await with_timeout(Flaky(0), seconds=float("nan"))

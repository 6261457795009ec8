from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine.patterns import (
    Failure,
    StrayCancellation,
    Success,
    fan_in,
    first,
    gather,
    race,
    settled,
)

pytestmark = pytest.mark.anyio


async def give(value: int, checkpoints: int = 1) -> int:
    for _ in range(checkpoints):
        await checkpoint()
    return value


async def fail(text: str, checkpoints: int = 1) -> int:
    for _ in range(checkpoints):
        await checkpoint()
    raise LookupError(text)


def giving(*values: int) -> list[Callable[[], Awaitable[int]]]:
    return [partial(give, value, len(values) - value) for value in values]


async def test_gather_keeps_input_order_whatever_ends_first():
    assert await gather(giving(0, 1, 2, 3)) == [0, 1, 2, 3]
    assert await gather(giving(0, 1, 2, 3), limit=2) == [0, 1, 2, 3]


async def test_gather_raises_the_bare_error_and_cancels_the_rest():
    ended = []

    async def slow() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")
        return 0

    with pytest.raises(LookupError, match="first"):
        await gather([slow, partial(fail, "first"), slow])
    assert ended == ["slow", "slow"]


async def test_gather_notes_what_the_cancelled_raised():
    async def sore() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError("cleaning up failed")

    with pytest.raises(LookupError) as caught:
        await gather([sore, partial(fail, "first")])
    assert "cleaning up failed" in "\n".join(caught.value.__notes__)


async def test_gather_begins_nothing_after_the_first_error():
    begun = []

    async def work(index: int) -> None:
        begun.append(index)
        raise LookupError

    for limit in (1, None):
        begun.clear()
        with pytest.raises(LookupError):
            await gather([partial(work, index) for index in range(5)], limit=limit)
        assert len(begun) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 7, None])
async def test_limit_bounds_how_many_run_at_once(limit: int | None):
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await checkpoint()
        running -= 1

    await gather([work] * 5, limit=limit)
    assert most == min(limit or 5, 5)


async def test_progress_counts_up_to_the_total():
    seen: list[tuple[int, int]] = []
    await gather(giving(0, 1, 2), limit=2, progress=lambda *told: seen.append(told))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    seen.clear()
    await settled([*giving(0), partial(fail, "x")], progress=lambda *told: seen.append(told))
    assert seen == [(1, 2), (2, 2)]


async def test_an_error_of_progress_is_raised_bare():
    def broken(done: int, total: int) -> None:
        raise ZeroDivisionError

    for pattern in (gather, settled, race):
        with pytest.raises(ZeroDivisionError):
            await pattern(giving(0, 1), progress=broken)


async def test_settled_answers_for_each_in_input_order():
    outcomes = await settled([partial(give, 7, 3), partial(fail, "no"), partial(give, 9)], limit=2)
    assert outcomes[0] == Success(7, 0)
    assert outcomes[2] == Success(9, 2)
    match outcomes[1]:
        case Failure(LookupError() as error, 1, 1):
            assert str(error) == "no"
        case _:
            pytest.fail(f"{outcomes[1]}")


async def test_settled_keeps_what_was_done_in_time():
    outcomes = await settled([partial(give, 7), anyio.sleep_forever], seconds=0.5)
    assert outcomes[0] == Success(7, 0)
    assert isinstance(outcomes[1], Failure)
    assert isinstance(outcomes[1].error, TimeoutError)


async def test_race_answers_the_first_success_and_cancels_the_losers():
    ended = []

    async def loser() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("loser")
        return 0

    assert await race([loser, partial(fail, "early", 0), partial(give, 2, 3), loser]) == 2
    assert ended == ["loser", "loser"]


async def test_what_losers_come_to_while_they_are_cancelled_counts_for_nothing():
    async def stubborn() -> int:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return 9
        return 0

    async def sore() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError

    seen: list[tuple[int, int]] = []
    works = [stubborn, sore, partial(give, 2, 3), stubborn]
    assert await first(1, works, progress=lambda *told: seen.append(told)) == [2]
    assert seen == [(1, 4)]


async def test_race_begins_nothing_once_it_is_won():
    begun = []

    async def win(name: str) -> str:
        begun.append(name)
        return name

    for limit in (1, None):
        begun.clear()
        winner = await race([partial(win, "a"), partial(win, "b")], limit=limit)
        assert begun == [winner]


async def test_race_raises_all_errors_when_none_succeeds():
    with pytest.raises(ExceptionGroup) as caught:
        await race([partial(fail, "a"), partial(fail, "b")])
    assert sorted(str(error) for error in caught.value.exceptions) == ["a", "b"]


async def test_first_answers_in_the_order_of_arrival():
    works = [partial(give, 1, 9), partial(give, 2, 2), partial(give, 3, 5)]
    assert await first(2, works) == [2, 3]


async def test_first_gives_up_as_soon_as_too_few_are_left():
    with pytest.raises(ExceptionGroup, match="2 of 3 failed, 2 had to succeed"):
        await first(2, [anyio.sleep_forever, partial(fail, "a"), partial(fail, "b")])


async def test_empty_input_is_fine_where_it_means_something():
    assert await gather([]) == []
    assert await settled([]) == []
    with pytest.raises(ValueError, match="n must be at most 0, not 1"):
        await race([])


async def test_bad_arguments_are_refused_by_name():
    for pattern in (gather, settled, race):
        with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
            await pattern(giving(0), limit=0)
    with pytest.raises(ValueError, match="n must be at most 2, not 3"):
        await first(3, giving(0, 1))
    with pytest.raises(ValueError, match="n must be at least 1"):
        await first(0, giving(0, 1))


async def test_a_coroutine_instead_of_a_function_is_explained():
    slip = give(1)
    with pytest.raises(TypeError, match=r"work 0 is coroutine.*pass `f`, not `f\(\)`"):
        await gather([slip])  # type: ignore[list-item]
    slip.close()


async def test_fan_in_hands_all_outcomes_to_the_synthesis():
    async def count(outcomes: Any) -> tuple[int, int]:
        return sum(isinstance(outcome, Success) for outcome in outcomes), len(outcomes)

    assert await fan_in([*giving(0, 1), partial(fail, "x")], count, limit=2) == (2, 3)
    assert await fan_in([], count) == (0, 0)


async def test_cancellation_is_never_an_outcome():
    with anyio.CancelScope() as scope:
        scope.cancel()
        await settled([anyio.sleep_forever])
        pytest.fail("cancellation was swallowed")
    assert scope.cancelled_caught


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # only there can this happen
async def test_a_stray_cancellation_is_a_failure_and_no_silent_gap():
    async def stray() -> int:
        from asyncio import get_running_loop  # noqa: PLC0415, TID251 - what a foreign library does

        future = get_running_loop().create_future()
        future.cancel()
        await future
        return 0

    with pytest.raises(StrayCancellation):
        await gather([stray, anyio.sleep_forever])
    outcomes = await settled([stray, partial(give, 3)])
    assert isinstance(outcomes[0], Failure)
    assert isinstance(outcomes[0].error, StrayCancellation)
    assert outcomes[1] == Success(3, 1)
    assert await race([stray, partial(give, 3)]) == 3

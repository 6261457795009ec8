"""Both clocks against the same promises; the manual one against a few more."""

from collections.abc import Callable

import anyio
import pytest

from engine.clock import Clock, SystemClock, Wakes
from engine.testing.manual_clock import ManualClock

pytestmark = pytest.mark.anyio


async def _turned(clock: ManualClock) -> None:
    while True:
        clock.advance(0.01)
        await anyio.lowlevel.checkpoint()


@pytest.fixture(params=[SystemClock, ManualClock])
async def clock(request: pytest.FixtureRequest):
    made: Callable[[], Clock] = request.param
    clock = made()
    async with anyio.create_task_group() as tasks:
        if isinstance(clock, ManualClock):
            tasks.start_soon(_turned, clock)
        yield clock
        tasks.cancel_scope.cancel()


async def test_a_sleep_lasts_as_long_as_it_says(clock: Clock):
    wall, since = clock.now(), clock.monotonic()
    with anyio.fail_after(30):
        await clock.sleep(0.02)
    assert clock.now() >= wall + 0.02
    assert clock.monotonic() >= since + 0.02


async def test_a_time_that_has_passed_is_not_waited_for(clock: Clock):
    with anyio.fail_after(30):
        await clock.sleep_until(clock.now() - 100)
        await clock.sleep_until(clock.now() + 0.02)


async def test_a_sleep_can_be_cancelled(clock: Clock):
    with anyio.move_on_after(0.01) as scope:
        await clock.sleep(1e12)
    assert scope.cancelled_caught


async def test_nobody_wakes_before_the_hands_are_turned():
    clock, woken = ManualClock(), anyio.Event()

    async def sleep() -> None:
        await clock.sleep(60)
        woken.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        await anyio.wait_all_tasks_blocked()
        clock.advance(59)
        await anyio.wait_all_tasks_blocked()
        assert not woken.is_set()
        assert clock.sleeping == 1
        clock.advance(1)
        await woken.wait()
    assert clock.sleeping == 0


async def test_a_wall_clock_that_is_set_leaves_the_monotonic_one_alone():
    clock = ManualClock(100.0)
    clock.advance(5)
    clock.set_wall(1_000.0)
    assert (clock.now(), clock.monotonic()) == (1_000.0, 5.0)


def test_a_machine_has_just_woken_for_a_while_after_it_slept():
    wakes = Wakes()
    assert not wakes.look(slept_s=100, now=0)
    assert not wakes.look(slept_s=101, now=1)
    assert wakes.look(slept_s=400, now=2)
    assert wakes.look(slept_s=400, now=60)
    assert not wakes.look(slept_s=400, now=200)
    assert wakes.look(slept_s=500, now=201)


def test_a_machine_that_is_awake_has_not_just_woken():
    clock = SystemClock()
    assert [clock.has_just_woken() for _ in range(3)] == [False] * 3

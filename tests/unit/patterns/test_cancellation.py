"""Every pattern cancelled at its first turn of the loop, its second, … until it ends by itself."""

import gc
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine.patterns import (
    Pool,
    balanced,
    fan_in,
    first,
    gather,
    in_batches,
    map_chunks,
    race,
    retry_failed,
    settled,
    stages,
    with_retry,
    with_timeout,
)

pytestmark = pytest.mark.anyio


class World:
    """Work that knows how much of it is alive."""

    def __init__(self) -> None:
        self.alive = 0
        self.calls = 0

    async def work(self, item: int = 0) -> int:
        self.calls += 1
        self.alive += 1
        try:
            for _ in range(1 + item % 3):
                await checkpoint()
        finally:
            self.alive -= 1
        return item

    async def flaky(self) -> None:
        await self.work()
        if self.calls % 3:
            raise LookupError

    async def summed(self, outcomes: Any) -> int:
        await self.work()
        return len(outcomes)


class PooledWorld(World):
    """A world whose members count as alive until they are closed."""

    def fork(self) -> "PooledWorld":
        self.alive += 1
        return self

    async def prompt(self, item: int) -> int:
        return await self.work(item)

    async def aclose(self) -> None:
        await checkpoint()
        self.alive -= 1


async def _chunks(world: World) -> None:
    async for _ in map_chunks(range(7), world.work, size=3, limit=2):
        await checkpoint()


async def _pool(world: PooledWorld) -> None:
    async with Pool(world, size=2) as pool:
        await gather([partial(pool.run, item) for item in range(5)])


def _works(world: World) -> list[Callable[[], Awaitable[int]]]:
    return [partial(world.work, item) for item in range(5)]


PATTERNS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "gather": lambda w: gather(_works(w)),
    "gather limit": lambda w: gather(_works(w), limit=2),
    "settled": lambda w: settled(_works(w), limit=2, seconds=60),
    "race": lambda w: race(_works(w)),
    "first": lambda w: first(2, _works(w), limit=2),
    "fan_in": lambda w: fan_in(_works(w), w.summed),
    "in_batches": lambda w: in_batches(range(5), w.work, size=2),
    "stages": lambda w: stages(range(5), w.work, w.work, limit=2),
    "balanced load": lambda w: balanced({"a": w.work, "b": w.work}, range(5)),
    "balanced round": lambda w: balanced({"a": w.work, "b": w.work}, range(5), by="round_robin"),
    "map_chunks": _chunks,
    "with_retry": lambda w: with_retry(w.flaky, attempts=9, base_s=0),
    "retry_failed": lambda w: retry_failed([w.flaky] * 3, attempts=9, base_s=0, limit=2),
    "with_timeout": lambda w: with_timeout(partial(w.work, 2), seconds=60),
    "pool": _pool,
}


def _tasks() -> set[int]:
    return {task.id for task in anyio.get_running_tasks()}


async def _cancelled_after(pattern: Callable[[Any], Awaitable[Any]], world: World, n: int) -> bool:
    """Return whether `pattern` was cut short by a cancellation after `n` turns of the loop."""

    async def canceller() -> None:
        for _ in range(n):
            await checkpoint()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(canceller)
        with anyio.CancelScope() as scope:
            await pattern(world)
        group.cancel_scope.cancel()
    return scope.cancelled_caught


@pytest.mark.parametrize("name", PATTERNS)
async def test_cancelled_at_any_checkpoint_nothing_is_left_behind(name: str):
    before = _tasks()
    for n in range(200):
        world = PooledWorld()
        was_cut = await _cancelled_after(PATTERNS[name], world, n)
        assert world.alive == 0
        assert _tasks() == before
        calls = world.calls
        await checkpoint()
        assert world.calls == calls, "work went on after the cancellation"
        if not was_cut:
            break
    else:
        pytest.fail("the pattern never ended by itself")
    assert n > 1, "the cancellation never hit the pattern"
    gc.collect()  # an abandoned coroutine or generator would warn here, and warnings are errors


async def test_the_loop_above_notices_what_is_left_behind():
    async def leaky(world: World) -> None:
        world.alive += 1
        await checkpoint()
        await checkpoint()
        world.alive -= 1

    world = World()
    assert await _cancelled_after(leaky, world, 0)
    assert world.alive == 1

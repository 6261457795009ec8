"""Measure what a pattern costs above a bare anyio task group, in one interleaved run."""

import time
from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.patterns import settled

pytestmark = pytest.mark.bench

COUNT = 1_000
ROUNDS = 40


async def nothing() -> None:
    pass


async def bare() -> None:
    async with anyio.create_task_group() as group:
        for _ in range(COUNT):
            group.start_soon(nothing)


async def ours() -> None:
    await settled([nothing] * COUNT)


async def bounded() -> None:
    await settled([nothing] * COUNT, limit=8)


async def _best(works: list[Callable[[], Awaitable[None]]]) -> list[float]:
    """The quickest round of each; the rounds take turns, so that noise hits all alike."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for index, work in enumerate(works):
            start = time.process_time()
            await work()
            best[index] = min(best[index], time.process_time() - start)
    return best


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_settled_beside_a_bare_task_group(backend: str):
    base, unbounded, limited = anyio.run(_best, [bare, ours, bounded], backend=backend)
    print(
        f"\n{backend}: {COUNT} no-ops: task group {base * 1e3:.2f} ms, "
        f"settled {unbounded / base:.2f}x, settled(limit=8) {limited / base:.2f}x"
    )
    assert unbounded <= 1.2 * base
    assert limited <= 1.2 * base


if __name__ == "__main__":
    ignored = "ignore::pytest.PytestAssertRewriteWarning"  # this module has imported anyio
    raise SystemExit(pytest.main(["-q", "-s", "-W", ignored, __file__]))

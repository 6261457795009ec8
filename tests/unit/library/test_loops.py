"""A loop in a thread of its own: a question gets an answer, or hears that the loop ended."""

import random
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from engine import sync
from engine.library.loops import LoopEnded, LoopThread

PATIENCE_S = 30.0


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns so often that they meet where they would once in a million times."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@asynccontextmanager
async def number() -> AsyncIterator[int]:
    yield 3


async def twice(held: int) -> int:
    return held * 2


def ask(loop: LoopThread[int], ends: list[Any]) -> None:
    try:
        while loop.wait(twice) == 6:
            pass
    except Exception as error:  # noqa: BLE001 - looked at by the test
        ends.append(error)


async def ask_from_a_loop(loop: LoopThread[int], ends: list[Any]) -> None:
    try:
        await loop.wait_open()
        while await loop.call(twice) == 6:
            pass
    except Exception as error:  # noqa: BLE001 - looked at by the test
        ends.append(error)


def test_whoever_asks_while_it_is_closed_is_told(restless: None) -> None:
    luck = random.Random(7)
    for _ in range(100):
        loop = LoopThread(number, after=None)
        ends: list[Any] = []
        threads = [
            threading.Thread(target=ask, args=(loop, ends)),
            threading.Thread(target=ask, args=(loop, ends)),
            threading.Thread(target=partial(anyio.run, ask_from_a_loop, loop, ends)),
            threading.Thread(target=loop.close),
        ]
        for thread in threads:
            thread.daemon = True  # a hanging one fails this test, not the whole suite
            thread.start()
            threading.Event().wait(luck.random() / 500)
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)
        assert not loop.is_alive
        assert [type(end) for end in ends] == [LoopEnded] * 3


def test_what_breaks_ends_its_calls_and_is_told() -> None:
    @asynccontextmanager
    async def fragile() -> AsyncIterator[anyio.Event]:
        hit = anyio.Event()

        async def break_when_hit() -> None:
            await hit.wait()
            raise ZeroDivisionError("it broke")

        async with anyio.create_task_group() as group:
            group.start_soon(break_when_hit)
            yield hit

    async def strike(held: anyio.Event) -> None:
        held.set()
        await anyio.sleep_forever()

    loop = LoopThread(fragile, after=None)
    with pytest.raises(LoopEnded):
        loop.wait(strike)
    loop.close()
    assert isinstance(loop.failure, ZeroDivisionError)
    with pytest.raises(LoopEnded, match="it broke"):
        loop.wait(strike)


def test_two_threads_that_are_first_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LoopThread[int]] = []
    both = threading.Barrier(2)

    @cache
    def slow() -> LoopThread[int]:
        loop = LoopThread(number, after=None)
        made.append(loop)
        threading.Event().wait(0.05)  # long enough for the other to come as well
        return loop

    def first() -> None:
        both.wait()
        assert sync._shared().wait(twice) == 6

    monkeypatch.setattr(sync, "_loop", slow)
    threads = [threading.Thread(target=first) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for loop in made:
        loop.close()
    assert len(made) == 1

"""Test who asks while others are answered is answered with the next, and never by an older look."""

from collections.abc import Sequence

import anyio
import pytest

from engine.proof.tampering import Together

pytestmark = pytest.mark.anyio


class Oracle:
    """Answers when the test lets it; remembers who was answered together."""

    def __init__(self) -> None:
        self.rounds: list[list[int]] = []
        self.gate = anyio.Event()

    async def answer(self, several: Sequence[int]) -> list[int]:
        self.rounds.append(sorted(several))
        await self.gate.wait()
        if 0 in several:
            raise ValueError
        return [n * n for n in several]


async def test_those_who_ask_meanwhile_are_answered_together_each_its_own() -> None:
    oracle, found = Oracle(), dict[int, int]()
    together = Together(oracle.answer)

    async def ask(n: int) -> None:
        found[n] = await together.ask(n)

    async with anyio.create_task_group() as tasks:
        for n in (1, 2, 3):
            tasks.start_soon(ask, n)
            await anyio.wait_all_tasks_blocked()
        oracle.gate.set()
    assert (oracle.rounds, found) == ([[1], [2, 3]], {1: 1, 2: 4, 3: 9})


async def test_one_that_goes_away_while_it_is_answered_keeps_nobody_from_an_answer() -> None:
    oracle, found = Oracle(), dict[int, int]()
    together = Together(oracle.answer)

    async def ask(n: int) -> None:
        found[n] = await together.ask(n)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, 1)
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as leaving:
            tasks.start_soon(ask, 2)
            await anyio.wait_all_tasks_blocked()
            leaving.start_soon(ask, 3)
            await anyio.wait_all_tasks_blocked()
            gate, oracle.gate = oracle.gate, anyio.Event()
            gate.set()
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        oracle.gate.set()
    assert (oracle.rounds, found) == ([[1], [2, 3]], {1: 1, 2: 4})
    assert await together.ask(5) == 25


async def test_one_that_goes_away_or_fails_leaves_the_others_their_answer() -> None:
    oracle, found = Oracle(), dict[int, object]()
    together = Together(oracle.answer)

    async def ask(n: int) -> None:
        try:
            found[n] = await together.ask(n)
        except ValueError:
            found[n] = "failed"

    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(ask, 7)
            await anyio.wait_all_tasks_blocked()
            for n in (0, 2):
                tasks.start_soon(ask, n)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()
        oracle.gate.set()
    assert found == {0: "failed", 2: 4}
    assert oracle.rounds == [[7], [0, 2], [2]]

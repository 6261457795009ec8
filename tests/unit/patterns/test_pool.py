from functools import partial
from itertools import count
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine.patterns import Pool, gather, settled

pytestmark = pytest.mark.anyio


class Member:
    """An agent as the pool sees it; the class knows who lives."""

    def __init__(self, living: set[int], numbers: "count[int]") -> None:
        self.living, self.numbers = living, numbers
        self.number = next(numbers)
        living.add(self.number)
        self.prompts: list[str] = []

    def fork(self) -> "Member":
        return Member(self.living, self.numbers)

    async def prompt(self, text: str) -> str:
        self.prompts.append(text)
        await checkpoint()
        if text == "break":
            raise LookupError(text)
        if text == "hang":
            await anyio.sleep_forever()
        return f"{self.number}:{text}"

    async def aclose(self) -> None:
        await checkpoint()
        self.living.discard(self.number)


async def use_once_and_break(source: Any) -> None:
    async with Pool(source, size=2) as pool:
        await pool.run("a")
        raise ZeroDivisionError


@pytest.fixture
def agent() -> Member:
    template = Member(set(), count())
    template.living.clear()  # the template is the caller's: it is neither used nor closed
    return template


async def test_members_are_made_when_needed_and_reused(agent: Member):
    async with Pool(agent, size=3) as pool:
        assert agent.living == set()
        assert [await pool.run(text) for text in "ab"] == ["1:a", "1:b"]
        answers = await gather([partial(pool.run, "c")] * 10)
        assert {answer.split(":")[0] for answer in answers} == {"1", "2", "3"}
        assert agent.living == {1, 2, 3}
    assert agent.living == set()
    assert agent.prompts == []


async def test_a_factory_may_be_sync_or_async_and_a_member_a_function():
    async def work(text: str) -> str:
        return text.upper()

    async def build() -> Any:
        await checkpoint()
        return work

    for factory in (build, lambda: work):
        async with Pool(factory, size=1) as pool:
            assert await pool.run("a") == "A"
            async with pool.member() as member:
                assert member is work


async def test_a_member_that_failed_is_replaced(agent: Member):
    async with Pool(agent, size=1) as pool:
        with pytest.raises(LookupError):
            await pool.run("break")
        assert agent.living == set()
        assert await pool.run("a") == "2:a"


async def test_a_member_that_was_cancelled_is_replaced(agent: Member):
    async with Pool(agent, size=1) as pool:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, "hang")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert agent.living == set()
        assert await pool.run("a") == "2:a"


async def test_a_factory_that_fails_gives_its_place_back():
    calls = count()

    def factory() -> Any:
        if next(calls) == 0:
            raise OSError
        return checkpoint

    async with Pool(factory, size=1) as pool:
        with pytest.raises(OSError):  # noqa: PT011 - it has no text
            await pool.run()
        await pool.run()


async def test_members_are_closed_when_the_block_is_left_by_error_or_cancellation(agent: Member):
    with pytest.raises(ZeroDivisionError):
        await use_once_and_break(agent)
    assert agent.living == set()

    with anyio.CancelScope() as scope:
        async with Pool(agent, size=2) as pool:
            await settled([partial(pool.run, "a")] * 2)
            scope.cancel()
            await pool.run("hang")
    assert scope.cancelled_caught
    assert agent.living == set()


async def test_a_member_lent_past_the_end_is_closed_when_it_comes_back(agent: Member):
    pool = Pool(agent, size=1)
    async with pool:
        lent = pool.member()
        await lent.__aenter__()
    assert agent.living == {1}
    await lent.__aexit__(None, None, None)
    assert agent.living == set()


async def test_what_closing_raises_is_told():
    class Sore:
        async def aclose(self) -> None:
            raise OSError("still mounted")

        async def prompt(self, text: str) -> str:
            return text

    with pytest.raises(ExceptionGroup) as caught:
        async with Pool(Sore, size=1) as pool:
            await pool.run("a")
    assert str(caught.value.exceptions[0]) == "still mounted"

    with pytest.raises(ZeroDivisionError) as first:
        await use_once_and_break(Sore)
    assert "still mounted" in first.value.__notes__[0]


async def test_a_member_that_never_closes_holds_nobody_for_ever(monkeypatch: pytest.MonkeyPatch):
    class Stubborn:
        async def aclose(self) -> None:
            await anyio.sleep_forever()

        async def prompt(self, text: str) -> str:
            return text

    monkeypatch.setattr("engine.patterns.pool.CLOSE_SECONDS", 0.01)
    with pytest.raises(ExceptionGroup) as caught:
        async with Pool(Stubborn, size=1) as pool:
            await pool.run("a")
    assert isinstance(caught.value.exceptions[0], TimeoutError)


async def test_bad_use_is_refused_by_name(agent: Member):
    with pytest.raises(ValueError, match="size must be at least 1"):
        Pool(agent, size=0)
    with pytest.raises(TypeError, match="an agent or a factory, not int"):
        Pool(3, size=1)
    with pytest.raises(RuntimeError, match="not open"):
        await Pool(agent, size=1).run("a")

from collections.abc import Iterator
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine.patterns import balanced, in_batches, map_chunks, stages

pytestmark = pytest.mark.anyio


async def double(item: int) -> int:
    await checkpoint()
    return item * 2


async def refuse(item: int) -> int:
    await checkpoint()
    raise LookupError(item)


async def test_a_batch_begins_when_the_one_before_is_done():
    log: list[str] = []

    async def work(item: int) -> int:
        log.append(f"begin {item}")
        for _ in range(5 - item):
            await checkpoint()
        log.append(f"end {item}")
        return item

    assert await in_batches(range(5), work, size=2) == [0, 1, 2, 3, 4]
    for begun, before in ((2, (0, 1)), (3, (0, 1)), (4, (2, 3))):
        for item in before:
            assert log.index(f"end {item}") < log.index(f"begin {begun}")


async def test_after_each_batch_its_results_are_told():
    batches, seen = [], []

    async def keep(results: list[int]) -> None:
        batches.append(results)

    def tell(done: int, total: int) -> None:
        seen.append((done, total))

    await in_batches(range(5), double, size=2, after_each=keep, progress=tell)
    assert batches == [[0, 2], [4, 6], [8]]
    assert seen == [(n, 5) for n in range(1, 6)]


async def test_an_item_flows_on_while_others_are_in_an_earlier_stage():
    held = anyio.Event()
    log: list[str] = []

    async def analyze(item: str) -> str:
        if item == "slow":
            await held.wait()
        return item

    async def fix(item: str) -> str:
        log.append(item)
        if item == "quick":
            held.set()  # only a pipeline gets here: by whole stages, `slow` would wait forever
        return item.upper()

    assert await stages(["slow", "quick"], analyze, fix) == ["SLOW", "QUICK"]
    assert log == ["quick", "slow"]


async def test_stages_bounds_the_items_on_their_way():
    running, most = 0, 0

    async def step(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await checkpoint()
        running -= 1
        return item + 1

    assert await stages(range(7), step, step, step, limit=3) == list(range(3, 10))
    assert most == 3


async def test_balanced_by_load_gives_to_whoever_is_free():
    shares: dict[str, list[int]] = {"quick": [], "slow": []}
    others_are_done = anyio.Event()

    async def work(name: str, item: int) -> str:
        shares[name].append(item)
        if name == "slow":
            await others_are_done.wait()
        elif item == 5:
            others_are_done.set()
        return f"{name}:{item}"

    members = {"slow": partial(work, "slow"), "quick": partial(work, "quick")}
    answers = await balanced(members, range(6))
    assert shares == {"slow": [0], "quick": [1, 2, 3, 4, 5]}
    assert answers[:2] == ["slow:0", "quick:1"]


async def test_balanced_round_robin_deals_in_turn():
    shares: dict[str, list[int]] = {"a": [], "b": []}

    async def work(name: str, item: int) -> int:
        shares[name].append(item)
        await checkpoint()
        return item

    members = {name: partial(work, name) for name in shares}
    assert await balanced(members, range(5), by="round_robin") == [0, 1, 2, 3, 4]
    assert shares == {"a": [0, 2, 4], "b": [1, 3]}


@pytest.mark.parametrize("by", ["load", "round_robin"])
async def test_balanced_bounds_each_member(by: Any):
    running = {"a": 0, "b": 0}
    most = {"a": 0, "b": 0}

    async def work(name: str, item: int) -> None:
        running[name] += 1
        most[name] = max(most[name], running[name])
        for _ in range(item % 3):
            await checkpoint()
        running[name] -= 1

    await balanced({n: partial(work, n) for n in running}, range(20), by=by, limit=2)
    assert most == {"a": 2, "b": 2}


async def test_map_chunks_takes_items_only_as_they_are_needed():
    taken = []

    def endless() -> Iterator[int]:
        for item in range(10**9):
            taken.append(item)
            yield item

    chunks = []
    async for chunk in map_chunks(endless(), double, size=3, limit=2):
        chunks.append(chunk)
        if len(chunks) == 2:
            break
    assert chunks == [[0, 2, 4], [6, 8, 10]]
    assert taken == [0, 1, 2, 3, 4, 5]


async def test_map_chunks_ends_with_a_short_chunk_or_none():
    assert [chunk async for chunk in map_chunks(range(5), double, size=2)] == [[0, 2], [4, 6], [8]]
    assert [chunk async for chunk in map_chunks([], double, size=2)] == []


async def test_map_chunks_has_no_next_chunk_after_an_error_or_a_close():
    chunks = map_chunks(range(9), refuse, size=3)
    with pytest.raises(LookupError):
        await anext(chunks)
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)
    async with aclosing(map_chunks(range(9), double, size=3)) as closing:
        assert await anext(closing) == [0, 2, 4]
    with pytest.raises(StopAsyncIteration):
        await anext(closing)


async def test_the_first_error_is_raised_bare():
    with pytest.raises(LookupError):
        await in_batches([1, 2], refuse, size=2)
    with pytest.raises(LookupError):
        await stages([1, 2], double, refuse)
    for by in ("load", "round_robin"):
        with pytest.raises(LookupError):
            await balanced({"a": refuse, "b": double}, range(4), by=by)


async def test_empty_input_is_fine():
    assert await in_batches([], double, size=2) == []
    assert await stages([], double) == []
    assert await stages([1, 2]) == [1, 2]
    assert await balanced({"a": double}, []) == []


async def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ValueError, match="size must be at least 1"):
        await in_batches([1], double, size=0)
    with pytest.raises(ValueError, match="size must be at least 1"):
        map_chunks([1], double, size=0)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        await stages([1], double, limit=0)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        await balanced({"a": double}, [1], limit=0)
    with pytest.raises(ValueError, match="no member"):
        await balanced({}, [1])
    with pytest.raises(ValueError, match="'load' or 'round_robin'"):
        await balanced({"a": double}, [1], by="luck")  # type: ignore[arg-type]

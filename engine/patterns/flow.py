"""Many items through work: in batches, through stages, over named members, or chunk by chunk."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, Generic, Literal, Self, TypeVar, cast

from engine.patterns.bounded import Progress, checked_count, checked_limit, counted, run_bounded
from engine.patterns.together import gather

T = TypeVar("T")
R = TypeVar("R")


async def in_batches(
    items: Iterable[T],
    work: Callable[[T], Awaitable[R]],
    *,
    size: int,
    after_each: Callable[[list[R]], Awaitable[object]] | None = None,
    progress: Progress | None = None,
) -> list[R]:
    """Return all results in input order; a batch starts when the previous one is done.

    Use it if something must happen between batches: `after_each` gets the results of a batch. Use
    it also if items of different batches must not overlap. To limit only concurrency, `gather(...,
    limit=size)` is faster: it does not wait for the slowest of a batch.
    """
    listed = list(items)
    checked_count(size, "size")
    tell = counted(len(listed), progress)
    results: list[R] = []
    for start in range(0, len(listed), size):
        batch = [partial(work, item) for item in listed[start : start + size]]
        done = await gather(batch, progress=lambda _done, _total: tell())
        results += done
        if after_each is not None:
            await after_each(done)
    return results


async def stages(
    items: Iterable[T],
    *steps: Callable[[Any], Awaitable[Any]],
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Run each item through all steps; return the results in input order.

    An item continues with its next step as soon as it has finished one, independently of the
    others. At most `limit` items are in progress at once. The first error cancels the rest. Without
    steps, the items are the results.
    """
    listed, limit = list(items), checked_limit(limit)

    async def journey(item: Any) -> Any:
        for step in steps:
            item = await step(item)
        return item

    return await gather([partial(journey, item) for item in listed], limit=limit, progress=progress)


async def balanced(
    members: Mapping[str, Callable[[T], Awaitable[R]]],
    items: Iterable[T],
    *,
    by: Literal["load", "round_robin"] = "load",
    limit: int = 1,
    progress: Progress | None = None,
) -> list[R]:
    """Return all results in input order; distribute the items over named members.

    Args:
        members: the async functions that do the work, by name.
        items: the items of work.
        by: `load` gives the next item to the member with the least work. `round_robin` assigns the
            items in turn, in advance.
        limit: how many items each member may have at once.
        progress: called with (done, total) after each one.
    """
    listed, _ = list(items), checked_count(limit, "limit")
    if by not in ("load", "round_robin"):
        raise ValueError(f"by must be 'load' or 'round_robin', not {by!r}")
    if not members:
        raise ValueError("the pool has no members")
    results: list[R | None] = [None] * len(listed)
    tell = counted(len(listed), progress)
    work = list(members.values())

    async def give(member: int, index: int) -> None:
        results[index] = await work[member](listed[index])
        tell()

    if by == "load":
        loads = _Loads(len(work))

        async def job(index: int) -> None:
            with loads.least() as member:
                await give(member, index)

        await run_bounded(len(listed), job, limit=limit * len(work))
    else:

        async def queue(member: int) -> None:
            own = range(member, len(listed), len(work))
            await run_bounded(len(own), lambda at: give(member, own[at]), limit=limit)

        await run_bounded(len(work), queue)
    return cast("list[R]", results)  # every place is filled, or an error was raised above


class _Loads:
    """The load of each: the least busy comes first, then who was given least so far."""

    def __init__(self, members: int) -> None:
        self._busy = [0] * members
        self._given = [0] * members

    @contextmanager
    def least(self) -> Iterator[int]:
        member = min(range(len(self._busy)), key=lambda m: (self._busy[m], self._given[m]))
        self._busy[member] += 1
        self._given[member] += 1
        try:
            yield member
        finally:
            self._busy[member] -= 1


def map_chunks(
    items: Iterable[T],
    work: Callable[[T], Awaitable[R]],
    *,
    size: int,
    limit: int | None = None,
) -> "Chunks[T, R]":
    """Yield results in input order, `size` at a time; hold only one chunk in memory.

    It takes items from the iterable when it needs them. Nothing runs while the body of your loop
    runs, so you can leave the loop at any point, also with `break`, and there is nothing to close.
    """
    return Chunks(items, work, checked_count(size, "size"), checked_limit(limit))


class Chunks(Generic[T, R]):
    """The chunks of `map_chunks`; loop over them once, with one `async for`.

    A class rather than an async generator: one that is abandoned is finalized at some later time by
    the garbage collector, which trio reports as a leak.
    """

    def __init__(
        self,
        items: Iterable[T],
        work: Callable[[T], Awaitable[R]],
        size: int,
        limit: int | None,
    ) -> None:
        self._items = iter(items)
        self._work = work
        self._size = size
        self._limit = limit

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[R]:
        chunk = list(islice(self._items, self._size))
        if not chunk:
            raise StopAsyncIteration
        try:
            return await gather([partial(self._work, item) for item in chunk], limit=self._limit)
        except BaseException:
            self._items = iter(())  # as with a generator: after an error there is no next chunk
            raise

    async def aclose(self) -> None:
        """End it here, for those who write `async with aclosing(...)`."""
        self._items = iter(())

"""The base of every pattern: n jobs, at most `limit` at a time, all or the first error.

Bounded by a fixed crew that takes the next job when it is free, never by chunks: a chunk waits for
its slowest member. It does not know what the jobs give back.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

import anyio
import anyio.lowlevel

from engine.patterns.outcome import stray

T = TypeVar("T")

Work: TypeAlias = Callable[[], Awaitable[T]]
"""A piece of concurrent work: an async function without arguments."""
Progress: TypeAlias = Callable[[int, int], object]
"""Called with (done, total) after each piece of work, in the task that runs the work."""


async def run_bounded(
    count: int, job: Callable[[int], Awaitable[object]], *, limit: int | None = None
) -> None:
    """Run `job(0)` … `job(count - 1)`, begun in that order.

    Raises:
        Exception: the first error of any job, bare, after all others were cancelled. What they
            raised while they were being cancelled is added to it as notes.
    """
    crew_size = count if limit is None else min(limit, count)
    if crew_size == 0:
        await anyio.lowlevel.checkpoint()
        return
    crew = _Crew(job)
    async with anyio.create_task_group() as group:
        crew.stop = group.cancel_scope.cancel
        if crew_size == count:
            for index in range(count):
                group.start_soon(crew.do, index)
        else:
            waiting = iter(range(count))
            for _ in range(crew_size):
                group.start_soon(crew.do_all, waiting)
    if crew.errors:
        raise_first(crew.errors)


async def run_placed(
    count: int, job: Callable[[int], Awaitable[object]], *, places: anyio.Semaphore
) -> None:
    """Like `run_bounded`, but a job may give its place back and take one again while it runs.

    Each job begins with a place taken for it, in order, and has to release it.
    """
    crew = _Crew(job)
    async with anyio.create_task_group() as group:
        crew.stop = group.cancel_scope.cancel
        for index in range(count):
            await places.acquire()
            group.start_soon(crew.do, index)
    if crew.errors:
        raise_first(crew.errors)


class _Crew:
    """The tasks of one run: what they do, and the errors they met."""

    stop: Callable[[], None]

    def __init__(self, job: Callable[[int], Awaitable[object]]) -> None:
        self._job = job
        self.errors: list[Exception] = []

    async def do(self, index: int) -> None:
        if self.errors:
            return  # a task that is cancelled before its start still runs up to its first await
        try:
            await self._job(index)
        except Exception as error:  # noqa: BLE001 - raised bare once the task group has ended
            self._fail(error)
        except BaseException as error:
            if not (failure := stray(error)):
                raise
            self._fail(failure)

    def _fail(self, error: Exception) -> None:
        self.errors.append(error)
        self.stop()

    async def do_all(self, waiting: Iterator[int]) -> None:
        """Take the next job as soon as the last one is done; all of the crew share `waiting`."""
        for index in waiting:
            await anyio.lowlevel.checkpoint_if_cancelled()
            await self.do(index)


def raise_first(errors: list[Exception]) -> None:
    """Raise the first of `errors`; the others become notes of it.

    The list is emptied, because an error holds its traceback, whose frames hold the list.
    """
    first, *others = errors
    errors.clear()
    for other in others:
        first.add_note(f"while this error stopped the others, one of them also raised {other!r}")
    try:
        raise first
    finally:
        del first, others


def counted(total: int, progress: Progress | None) -> Callable[[], None]:
    """A function to call after each piece of work; it tells `progress` how many are done."""
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tell


def checked_limit(limit: int | None) -> int | None:
    """The limit, if it is one."""
    if limit is not None:
        checked_count(limit, "limit")
    return limit


def checked_count(number: int, called: str) -> int:
    """The number, if it is at least 1."""
    if number < 1:
        raise ValueError(f"{called} must be at least 1, not {number}")
    return number


def checked_works(works: Iterable[Work[T]]) -> list[Work[T]]:
    """The works as a list, if each can be called.

    A coroutine in their place (`gather([f()])` for `gather([f])`) is the usual slip.
    """
    listed = list(works)
    for index, work in enumerate(listed):
        if not callable(work):
            raise TypeError(
                f"work {index} is {type(work).__name__}, not a function: pass `f`, not `f()`"
            )
    return listed

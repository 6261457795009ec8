"""Several pieces of work side by side: all of them, each for itself, or the first that succeed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar, cast

import anyio

from engine.patterns.bounded import (
    Progress,
    Work,
    checked_count,
    checked_limit,
    checked_works,
    counted,
    run_bounded,
)
from engine.patterns.outcome import Failure, Outcome, Success, attempt

T = TypeVar("T")
R = TypeVar("R")


async def gather(
    works: Iterable[Work[T]], *, limit: int | None = None, progress: Progress | None = None
) -> list[T]:
    """Return all results in input order; the first error cancels the rest and is raised.

    Args:
        works: zero-argument async callables.
        limit: how many may run at once; None means all.
        progress: called with (done, total) after each one.
    """
    todo, limit = checked_works(works), checked_limit(limit)
    results: list[T | None] = [None] * len(todo)
    tell = counted(len(todo), progress)

    async def job(index: int) -> None:
        results[index] = await todo[index]()
        tell()

    await run_bounded(len(todo), job, limit=limit)
    return cast("list[T]", results)  # every place is filled, or an error was raised above


async def settled(
    works: Iterable[Work[T]],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> list[Outcome[T]]:
    """Return the outcome of each, in input order; a failure does not affect the others.

    Args:
        works: zero-argument async callables.
        limit: how many may run at once; None means all.
        progress: called with (done, total) after each one.
        seconds: time for all together. Work that has not ended by then is cancelled, and becomes a
            `Failure` with a `TimeoutError`. Work that has ended keeps its outcome.
    """
    todo, limit = checked_works(works), checked_limit(limit)
    outcomes: list[Outcome[T] | None] = [None] * len(todo)
    tell = counted(len(todo), progress)

    async def job(index: int) -> None:
        outcomes[index] = await attempt(todo[index], index)
        tell()

    with anyio.move_on_after(seconds):
        await run_bounded(len(todo), job, limit=limit)
    return [
        Failure(TimeoutError(f"not done within {seconds} s"), index) if outcome is None else outcome
        for index, outcome in enumerate(outcomes)
    ]


async def first(
    n: int,
    works: Iterable[Work[T]],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[T]:
    """Return the first `n` results, in order of arrival; cancel the others.

    Raises:
        ValueError: fewer than `n` works, or `n` below 1.
        ExceptionGroup: too many failed for `n` to succeed; the group holds their errors.
    """
    todo, limit = checked_works(works), checked_limit(limit)
    if checked_count(n, "n") > len(todo):
        raise ValueError(f"n must be at most {len(todo)}, not {n}")
    wins: list[T] = []
    errors: list[Exception] = []
    tell = counted(len(todo), progress)

    async def job(index: int) -> None:
        outcome = None if decided.cancel_called else await attempt(todo[index], index)
        if outcome is None or decided.cancel_called:
            return  # it never began, or ended while it was being cancelled
        match outcome:
            case Success(value):
                wins.append(value)
            case Failure(error):
                errors.append(error)
        tell()
        if len(wins) == n or len(errors) > len(todo) - n:
            decided.cancel()

    with anyio.CancelScope() as decided:
        await run_bounded(len(todo), job, limit=limit)
    if len(wins) < n:
        raise ExceptionGroup(f"{len(errors)} of {len(todo)} failed, {n} had to succeed", errors)
    return wins


async def race(
    works: Iterable[Work[T]], *, limit: int | None = None, progress: Progress | None = None
) -> T:
    """Return the first result; cancel the others.

    Raises:
        ValueError: there is no work.
        ExceptionGroup: all failed; the group holds their errors.
    """
    (winner,) = await first(1, works, limit=limit, progress=progress)
    return winner


async def fan_in(
    works: Iterable[Work[T]],
    synthesize: Callable[[Sequence[Outcome[T]]], Awaitable[R]],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> R:
    """Pass all outcomes in input order, failures too, to `synthesize`; return its result."""
    return await synthesize(await settled(works, limit=limit, progress=progress))

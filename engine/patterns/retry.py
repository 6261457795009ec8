"""Work that gets a second chance, and work that gets only so long."""

import random
from collections.abc import Iterable
from typing import TypeVar

import anyio

from engine.patterns.bounded import (
    Progress,
    Work,
    checked_count,
    checked_limit,
    checked_works,
    counted,
    run_placed,
)
from engine.patterns.outcome import Failure, Outcome, Success, attempt
from engine.policies import Backoff

T = TypeVar("T")


def wait_s(growth: Backoff, failed: int, *, base_s: float, max_s: float, jitter: float) -> float:
    """Return the seconds to wait after `failed` attempts.

    `jitter` is the share by which they vary either way, so that many that failed together do not
    come back together.
    """
    spread = random.uniform(-jitter, jitter)  # noqa: S311 - spreads load, guards no secret
    return min(base_s * growth.growth(failed), max_s) * (1 + spread)


async def with_retry(
    work: Work[T],
    *,
    attempts: int = 3,
    backoff: Backoff | str = Backoff.EXPONENTIAL,
    base_s: float = 1.0,
    max_s: float = 60.0,
    jitter: float = 0.1,
) -> T:
    """Return the result of the first attempt that succeeds, or raise the last error.

    Args:
        work: a zero-argument async callable, called for each attempt.
        attempts: the maximum number of attempts, including the first.
        backoff: `fixed`, `linear` or `exponential`.
        base_s: the first wait.
        max_s: the longest wait, without jitter.
        jitter: the fraction, 0 to 1, by which each wait varies.
    """
    (outcome,) = await retry_failed(
        [work], attempts=attempts, backoff=backoff, base_s=base_s, max_s=max_s, jitter=jitter
    )
    match outcome:
        case Success(value):
            return value
        case Failure(error):
            raise error


async def retry_failed(  # noqa: PLR0913 - the same words as `with_retry`, and those of `settled`
    works: Iterable[Work[T]],
    *,
    attempts: int = 3,
    backoff: Backoff | str = Backoff.EXPONENTIAL,
    base_s: float = 1.0,
    max_s: float = 60.0,
    jitter: float = 0.1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome[T]]:
    """Retry only the failed work; return the outcome of each, in input order.

    Each one waits on its own, not for a round of the others. While it waits, it does not count for
    `limit`.
    """
    todo, limit = checked_works(works), checked_limit(limit)
    checked_count(attempts, "attempts")
    growth = Backoff(backoff)
    if base_s < 0 or max_s < 0 or not 0 <= jitter <= 1:
        raise ValueError(
            f"these waits are not valid: base_s={base_s}, max_s={max_s}, jitter={jitter}"
        )
    places = anyio.Semaphore(limit or max(1, len(todo)))
    outcomes: list[Outcome[T]] = [Failure(RuntimeError("never ran"), i) for i in range(len(todo))]
    tell = counted(len(todo), progress)

    async def job(index: int) -> None:
        for number in range(1, attempts + 1):
            try:
                outcomes[index] = await attempt(todo[index], index, number)
            finally:
                places.release()
            if isinstance(outcomes[index], Success) or number == attempts:
                break
            wait = wait_s(growth, number, base_s=base_s, max_s=max_s, jitter=jitter)
            await anyio.sleep(wait)
            await places.acquire()
        tell()

    await run_placed(len(todo), job, places=places)
    return outcomes


async def with_timeout(work: Work[T], *, seconds: float) -> T:
    """Return the result of `work`, or cancel it after `seconds`.

    For each of many: `gather([partial(with_timeout, f, seconds=60) for f in works])`. For all
    together: `with_timeout(partial(gather, works), seconds=600)`. To keep finished results:
    `settled(works, seconds=600)`.

    Raises:
        TimeoutError: it took longer.
        ValueError: `seconds` is not a valid duration.
    """
    if not seconds >= 0:
        raise ValueError(f"seconds must be at least 0, not {seconds}")
    with anyio.fail_after(seconds):
        return await work()

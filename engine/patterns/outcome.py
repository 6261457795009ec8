"""The end of one piece of work: `Success` with its value, or `Failure` with its error.

Cancellation is neither: it is never turned into a value, it goes through. A stray one is a failure:
on asyncio a library may cancel the future that work waits for. A task group takes the task that
ends so for one that was meant to be cancelled, and says nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeAlias, TypeVar

import anyio

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Success(Generic[T_co]):
    """A success: `value` is the result, `index` its place in the input."""

    value: T_co
    index: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: `error` is the last exception, `index` its place in the input."""

    error: Exception
    index: int = 0
    attempts: int = 1


Outcome: TypeAlias = Success[T] | Failure
"""The end of one piece of concurrent work."""


class StrayCancellation(Exception):
    """Work ended by a cancellation that nobody asked for who runs it."""

    def __init__(self) -> None:
        super().__init__("the work raised a cancellation that nobody requested")


def stray(error: BaseException) -> Exception | None:
    """The failure that `error` is, if it is a cancellation and none of our scopes is cancelled."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return None
    if anyio.current_effective_deadline() == -inf:
        return None
    failure = StrayCancellation()
    failure.__cause__ = error
    return failure


async def attempt(work: Callable[[], Awaitable[T]], index: int, number: int = 1) -> Outcome[T]:
    """Run `work`; return its end as a value. Cancellation and interpreter exits go through."""
    try:
        return Success(await work(), index, number)
    except Exception as error:  # noqa: BLE001 - whatever foreign work raises is its outcome
        return Failure(error, index, number)
    except BaseException as error:
        if failure := stray(error):
            return Failure(failure, index, number)
        raise

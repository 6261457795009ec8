"""How one piece of work ended: `Success` with its value, or `Failure` with its error.

Cancellation is neither: it is never turned into a value, it goes through.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Success(Generic[T_co]):
    """It went well: `value` is the answer, `index` its place in the input."""

    value: T_co
    index: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """It went wrong: `error` is the last exception, `index` its place in the input."""

    error: Exception
    index: int = 0
    attempts: int = 1


Outcome: TypeAlias = Success[T] | Failure


async def attempt(work: Callable[[], Awaitable[T]], index: int, number: int = 1) -> Outcome[T]:
    """How `work` ended, as a value; cancellation and the interpreter's own exits go through."""
    try:
        return Success(await work(), index, number)
    except Exception as error:  # noqa: BLE001 - whatever foreign work raises is its outcome
        return Failure(error, index, number)

"""Work in the background of a task group that holds more than this work, such as an engine's.

An error that leaves a task ends its whole group. So a full disk, a process that is gone or a
refusal of ours ends only the work that met it, and whoever started that work shows it. A mistake
of ours still ends everything: nobody can say what it left behind.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from engine.errors import EngineBug, EngineError

_OF_THE_WORLD = (EngineError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Errors that say that something around this program failed, or was refused."""

Failed: TypeAlias = Callable[[Exception], object]
"""Shows a failure in words; None stands where something else shows it or nobody waits for it."""


class Background:
    """Starts work whose failure ends nothing else in its task group."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks

    def start_soon(
        self, act: Callable[..., Awaitable[object]], *args: object, failed: Failed | None
    ) -> None:
        """Start work; `failed` hears why it failed."""
        self._tasks.start_soon(contained, partial(act, *args), failed)


async def contained(act: Callable[[], Awaitable[object]], failed: Failed | None) -> None:
    """Do something; pass its failure on as a value, and raise what is a mistake of ours."""
    try:
        await act()
    except (*_OF_THE_WORLD, ExceptionGroup) as error:
        failure = failure_in(error)
        if failure is None:
            raise
        if failed is not None:
            failed(failure)


def failure_in(error: Exception) -> Exception | None:
    """Return the first failure in an error or a group of them; None if any is a mistake of ours."""
    if isinstance(error, ExceptionGroup):
        found = [failure_in(one) for one in error.exceptions]
        return None if None in found else found[0]
    is_ours = isinstance(error, EngineBug) or not isinstance(error, _OF_THE_WORLD)
    return None if is_ours else error

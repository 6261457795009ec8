"""A few members that do many pieces of work in turn, made when first needed and closed at the end.

It does not know what a member is: whoever opens the pool says how one is made, used and closed.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Generic, Self, TypeVar

import anyio

from engine.patterns.bounded import checked_count
from engine.patterns.outcome import Failure
from engine.patterns.together import settled

M = TypeVar("M")

CLOSE_SECONDS = 30.0


class Pool(Generic[M]):
    """A pool of at most `size` members that are reused.

    `Pool(agent, size=3)` works with forks of `agent`. `Pool(factory, size=3)` works with the
    results of `factory()`, awaited if needed. `run` calls the `prompt` of a member, or the member
    itself; `member()` lends you one. A member whose work failed or was cancelled is closed and
    replaced, because its state is unknown. The pool closes its members with their `aclose`, if they
    have one, even after an error.
    """

    def __init__(self, source: Callable[[], M | Awaitable[M]] | Any, *, size: int) -> None:
        self._make: Callable[[], Any] = _maker(source)
        self._places = anyio.Semaphore(checked_count(size, "size"))
        self._idle: list[M] = []
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        self._is_open = False
        leaving, self._idle = self._idle, []
        failures = await _close(leaving)
        if not failures:
            return
        if error is None:
            raise ExceptionGroup("members of the pool could not be closed", failures)
        for failure in failures:
            error.add_note(f"a member of the pool could not be closed: {failure!r}")

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for a free member, and call it with these arguments."""
        async with self.member() as member:
            use: Any = getattr(member, "prompt", member)
            return await use(*args, **kwargs)

    @asynccontextmanager
    async def member(self) -> AsyncIterator[M]:
        """Yield a free member, which is yours until the block ends."""
        async with self._places:
            member = await self._take()
            try:
                yield member
            except BaseException as error:
                for failure in await _close([member]):
                    error.add_note(f"a member of the pool could not be closed: {failure!r}")
                raise
            if self._is_open:
                self._idle.append(member)
            elif failures := await _close([member]):  # the pool was left while this one was lent
                raise ExceptionGroup("a member of the pool could not be closed", failures)

    async def _take(self) -> M:
        if not self._is_open:
            raise RuntimeError("the pool is not open: use it within `async with Pool(...)`")
        if self._idle:
            return self._idle.pop()
        made = self._make()
        member: M = await made if inspect.isawaitable(made) else made
        return member


def _maker(source: Any) -> Callable[[], Any]:
    make: Callable[[], Any] | None = getattr(source, "fork", source)
    if callable(make):
        return make
    raise TypeError(f"a pool needs an agent or a factory, not {type(source).__name__}")


async def _close(members: list[Any]) -> list[Exception]:
    """Close them all, even under cancellation, but not forever; what went wrong is returned."""
    closers = [partial(_aclose, member) for member in members if hasattr(member, "aclose")]
    if not closers:
        return []
    with anyio.CancelScope(shield=True):
        ended = await settled(closers, seconds=CLOSE_SECONDS)
    return [outcome.error for outcome in ended if isinstance(outcome, Failure)]


async def _aclose(member: Any) -> None:
    closing = member.aclose()
    if inspect.isawaitable(closing):
        await closing

"""The place of an agent's engine: one that was given to it, or one shared by a repository."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from engine.api import Engine, engine_key
from engine.library.loops import LoopThread

T = TypeVar("T")

CLOSING_S = 60.0
"""The time that even a cancelled caller waits until everything is put away."""

Act = Callable[[Engine], Awaitable[T]]
Back = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls something in the loop of whoever took the seat, and awaits it where it is to be awaited."""


class Seat(Protocol):
    """A place beside an engine, taken when first needed and given back when closed."""

    async def do(self, act: Act[T]) -> T:
        """Do the act on the engine, in the engine's own loop."""

    def back(self) -> AbstractAsyncContextManager[Back]:
        """Open the way from the engine's loop back to the caller's, for the caller's functions."""

    def another(self) -> "Seat":
        """Return a seat beside the same engine, for a fork."""

    async def leave(self) -> None:
        """Give it back; the engine is closed with the last one, if it was opened for them."""


class GivenSeat:
    """Beside an engine of the caller's, in the caller's own loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def do(self, act: Act[T]) -> T:
        """Do it here and now."""
        return await act(self._engine)

    @asynccontextmanager
    async def back(self) -> AsyncIterator[Back]:
        """Call it here: there is but one loop."""
        yield called

    def another(self) -> "GivenSeat":
        """Return a seat beside the same engine."""
        return GivenSeat(self._engine)

    async def leave(self) -> None:
        """Do nothing: the engine is the caller's to close."""


class LoopSeat:
    """Beside an engine in a thread of its own, which somebody else will close."""

    def __init__(self, engine: LoopThread[Engine]) -> None:
        self._engine = engine

    async def do(self, act: Act[T]) -> T:
        """Do it in the engine's thread, while its loop and the caller's both go on."""
        return await self._engine.call(act)

    @asynccontextmanager
    async def back(self) -> AsyncIterator[Back]:
        """Cross to the caller's thread; the engine goes on meanwhile."""
        async with BlockingPortal() as portal:
            yield partial(portal.call_async, called)

    def another(self) -> "LoopSeat":
        """Return a seat beside the same engine."""
        return self

    async def leave(self) -> None:
        """Do nothing: the engine is another's to close."""


class SharedSeat:
    """Beside the engine that all agents of a repository share in this process.

    That engine lives in a thread with a loop of its own, so that it belongs to no caller's task:
    an agent may be used from any loop, asyncio's or trio's, and closed by another task than the
    one that used it first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._engine: LoopThread[Engine] | None = None

    async def do(self, act: Act[T]) -> T:
        """Do it in the engine's thread, while its loop and the caller's both go on."""
        engine = self._engine
        if engine is None or not engine.is_alive:
            engine = await self._take(engine)
        try:
            await engine.wait_open()
        except Exception:  # however it failed to open, nobody else closes what was taken here
            await self._give_back(engine)
            raise
        return await engine.call(act)

    async def _take(self, dead: LoopThread[Engine] | None) -> LoopThread[Engine]:
        if dead is not None:
            await self._give_back(dead)
        key = await engine_key(self._folder)
        hold = partial(_ENGINES.hold, key, self._folder)
        with anyio.CancelScope(shield=True):
            engine = await anyio.to_thread.run_sync(hold)
            if self._engine is not None:  # another task of the same agent was faster
                await anyio.to_thread.run_sync(_ENGINES.drop, engine)
                return self._engine
        self._engine = engine
        return engine

    async def _give_back(self, engine: LoopThread[Engine]) -> None:
        """Leave it, unless another task of the same agent has done so."""
        if self._engine is engine:
            await self.leave()

    @asynccontextmanager
    async def back(self) -> AsyncIterator[Back]:
        """Cross to the caller's thread; the engine goes on meanwhile."""
        async with BlockingPortal() as portal:
            yield partial(portal.call_async, called)

    def another(self) -> "SharedSeat":
        """Return a seat beside the engine of the same repository."""
        return SharedSeat(self._folder)

    async def leave(self) -> None:
        """Give the seat back; the last one to leave closes the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_ENGINES.drop, engine)


def seat_for(engine: Engine | Seat | None, repo: str | PathLike[str]) -> Seat:
    """Return a seat beside the engine given, or beside the one that a repository's agents share."""
    if engine is None:
        return SharedSeat(Path(repo))
    return GivenSeat(engine) if isinstance(engine, Engine) else engine


async def called(function: Callable[[], Any]) -> Any:
    """Return what a function gives, awaited where it is to be awaited."""
    made = function()
    return await made if isinstance(made, Awaitable) else made


class _Engines:
    """The engines that agents of this process share, by the state folder of their repository."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, LoopThread[Engine]] = {}
        self._holders: dict[LoopThread[Engine], int] = {}

    def hold(self, key: str, folder: Path) -> LoopThread[Engine]:
        """Return the repository's engine, begun if nobody has it open."""
        with self._lock:
            engine = self._newest.get(key)
            if engine is None or not engine.is_alive or not self._holders.get(engine):
                # The one before may still be closing, and there is one engine to a repository.
                engine = LoopThread(partial(Engine.open, folder), after=engine)
                self._newest[key] = engine
            self._holders[engine] = self._holders.get(engine, 0) + 1
            return engine

    def drop(self, engine: LoopThread[Engine]) -> None:
        """Release it; it is closed with its last holder."""
        with self._lock:
            left = self._holders[engine] - 1
            if left:
                self._holders[engine] = left
                return
            del self._holders[engine]
        engine.close()
        with self._lock:  # whoever comes now begins another one, and need not wait for this
            self._newest = {key: kept for key, kept in self._newest.items() if kept is not engine}


_ENGINES = _Engines()

"""Event loops in threads of their own, for what must outlive the caller's loop or has none.

An agent that was never opened explicitly, and programs without a loop (scripts, notebooks), are
served by such a thread. It knows nothing of agents.
"""

import atexit
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from engine.api import plain_errors
from engine.errors import EngineError

T = TypeVar("T")
R = TypeVar("R")

EXIT_S = 15.0
"""The time that the end of the program gives its threads to put things away."""


class LoopEnded(EngineError):
    """The thread's loop has ended, and with it what was asked of it."""

    hint = "Open a new one; `plait resume` resumes unfinished runs."


class LoopThread(Generic[R]):
    """A thread whose event loop holds one thing open, until it is closed."""

    def __init__(
        self, opened: Callable[[], AbstractAsyncContextManager[R]], *, after: "LoopThread[R] | None"
    ) -> None:
        """Begin to open it.

        Args:
            opened: Opens the thing, in the thread's loop.
            after: Another thread that must have ended before.
        """
        self._opened = opened
        self._after = after
        self._ready: Future[tuple[BlockingPortal, R]] = Future()
        self._failure: BaseException | None = None
        self._entrance = threading.Lock()
        self._is_shut = False
        self._coming: set[object] = set()
        self._stop: anyio.Event
        self._calls: set[anyio.CancelScope] = set()
        self._calls_ended = anyio.Event()
        self._thread = threading.Thread(target=self._run, name="plait", daemon=True)
        self._thread.start()
        _living.add(self)

    def _run(self) -> None:
        if self._after is not None:
            self._after.join()
            self._after = None
        try:
            anyio.run(self._hold)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for an answer
            self._failure = error
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _hold(self) -> None:
        self._stop = anyio.Event()
        with plain_errors():
            async with BlockingPortal() as portal:
                try:
                    async with self._opened() as held:
                        self._ready.set_result((portal, held))
                        await self._stop.wait()
                        for scope in self._calls:  # they end before what they work with is closed
                            scope.cancel()
                        await self._calls_ended.wait()
                finally:
                    await self._shut()

    async def _shut(self) -> None:
        """Let nobody in any more, and wait for those who are on their way.

        What is handed to a loop that has just run for the last time is never answered.
        """
        with self._entrance:
            self._is_shut = True
        with anyio.CancelScope(shield=True):
            while self._coming:  # noqa: ASYNC110 - they come from other threads, in no time
                await anyio.sleep(0.001)

    @contextmanager
    def _entering(self) -> Iterator[object]:
        """Keep the loop from ending before the pass that this yields is handed in."""
        a_pass = object()
        with self._entrance:
            if self._is_shut:
                raise self._ended()
            self._coming.add(a_pass)
        try:
            yield a_pass
        finally:
            self._coming.discard(a_pass)

    async def _track(self, a_pass: object, function: Callable[[R], Awaitable[T]], held: R) -> T:
        """Call it, unless the thread is closed before it comes to its end."""
        self._coming.discard(a_pass)
        if self._stop.is_set():
            raise LoopEnded("the engine was closed")
        scope = anyio.CancelScope()
        self._calls.add(scope)
        self._calls_ended = anyio.Event()
        try:
            with scope:
                return await function(held)
        finally:
            self._calls.discard(scope)
            if not self._calls:
                self._calls_ended.set()
        raise LoopEnded("the engine was closed")

    def _begin_end(self) -> None:
        self._stop.set()
        if not self._calls:
            self._calls_ended.set()

    @property
    def is_alive(self) -> bool:
        """Return if it has not ended, or is only about to begin."""
        return self._thread.is_alive()

    async def wait_open(self) -> None:
        """Return when the thing is open.

        Raises:
            Exception: It could not be opened.
        """
        if not self._ready.done():
            await anyio.to_thread.run_sync(self._ready.exception, abandon_on_cancel=True)
        self._ready.result()

    async def call(self, function: Callable[[R], Awaitable[T]]) -> T:
        """Call the function with the thing, in the thread's loop; cancelled there as here.

        Raises:
            LoopEnded: The loop ended meanwhile.
        """
        portal, held = self._ready.result(timeout=0)
        with self._entering() as a_pass:
            try:
                return await portal.call_async(self._track, a_pass, function, held)
            except (CancelledError, RuntimeError) as error:
                if not self._is_shut and not isinstance(error, CancelledError):
                    raise
                raise self._ended() from error

    def wait(self, function: Callable[[R], Awaitable[T]]) -> T:
        """Call it from a thread without a loop; an interrupt cancels it and waits for that."""
        portal, held = self._ready.result()
        ended = threading.Event()

        async def work(a_pass: object) -> T:
            try:
                return await self._track(a_pass, function, held)
            finally:
                ended.set()

        with self._entering() as a_pass:
            future = portal.start_task_soon(work, a_pass)
        try:
            return future.result()
        except CancelledError as error:
            raise self._ended() from error
        except BaseException:
            if not future.done() and future.cancel():
                ended.wait()
            raise

    def close(self, seconds: float | None = None) -> None:
        """Close the thing and end the thread; what is asked of it still is cancelled."""
        try:
            portal, _ = self._ready.result(seconds)
            with self._entering():
                portal.start_task_soon(self._begin_end)
        except BaseException:  # noqa: BLE001, S110 - it has ended, or never opened: as is wanted
            pass
        self.join(seconds)

    def _ended(self) -> LoopEnded:
        return LoopEnded(f"the engine has ended: {self._failure or 'it was closed'}")

    def join(self, seconds: float | None = None) -> None:
        """Wait until it has ended."""
        self._thread.join(seconds)

    @property
    def failure(self) -> BaseException | None:
        """Return the error that ended it, if nobody closed it."""
        return self._failure


_living: "WeakSet[LoopThread[Any]]" = WeakSet()


@atexit.register
def _close_all() -> None:
    """Close at the end of the program what it forgot to close."""
    for thread in list(_living):
        thread.close(EXIT_S)


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    """Hold nothing open: a loop alone."""
    yield

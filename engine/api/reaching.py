"""Reaching the engine of a folder: the one that lives, or one opened for it.

Who only reaches one that lives loads none of what an engine works with.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from os import PathLike, environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from engine.api.errors_out import plain_errors
from engine.errors import EngineError
from engine.remote.client import RemoteEngine, living_engine
from engine.remote.spawn import spawn_engine
from engine.supervisor.place import Place, find_place

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from engine.api.engine import Engine
    from engine.supervisor.port import EnginePort

_AGAIN_S = 1.0


@asynccontextmanager
async def reach(
    folder: str | PathLike[str] = ".", *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[EnginePort, bool]]:
    """The engine that lives for a folder, or one opened for the occasion; whether it lived."""
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    with plain_errors():
        async with AsyncExitStack() as stack:
            socket = await living_engine(place.layout)
            if socket is not None:
                try:
                    remote = await stack.enter_async_context(RemoteEngine.connect(socket))
                except OSError:
                    remote = None
                if remote is not None:
                    yield remote, True
                    return
            rooms = await anyio.to_thread.run_sync(import_module, "engine.api.engine")
            opened: AbstractAsyncContextManager[Engine] = rooms.Engine.open(folder, environment=env)
            engine = await stack.enter_async_context(opened)
            yield engine.port, False


@asynccontextmanager
async def attach(
    folder: str | PathLike[str] = ".", *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[EnginePort]:
    """The detached engine of a folder, started if none lives; it goes on when this ends.

    Where that engine is killed another one is started, which takes its runs up; what is asked in
    between raises EngineGone.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    with plain_errors():
        async with anyio.create_task_group() as tasks:
            attached = _Attached(place, env)
            await tasks.start(attached.keep)
            try:
                yield cast("EnginePort", attached)
            finally:
                tasks.cancel_scope.cancel()


class _Attached:
    """The port of whichever engine lives."""

    def __init__(self, place: Place, env: Mapping[str, str]) -> None:
        self._place = place
        self._env = env
        self._remote: RemoteEngine | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    async def keep(self, task_status: TaskStatus[None]) -> None:
        """Stay connected; what fails later than the first time is tried again."""
        while True:
            try:
                await self._connected(task_status)
            except (EngineError, OSError):
                if self._remote is None:
                    raise
                await anyio.sleep(_AGAIN_S)

    async def _connected(self, task_status: TaskStatus[None]) -> None:
        async with AsyncExitStack() as stack:
            socket = await living_engine(self._place.layout)
            try:
                if socket is None:
                    raise FileNotFoundError(self._place.layout.engine_json)
                remote = await stack.enter_async_context(RemoteEngine.connect(socket))
            except OSError:
                socket = await spawn_engine(self._place.project, self._place.layout, self._env)
                remote = await stack.enter_async_context(RemoteEngine.connect(socket))
            is_first, self._remote = self._remote is None, remote
            if is_first:
                task_status.started()
            await remote.gone.wait()


async def engine_key(folder: str | PathLike[str] = ".") -> str:
    """What two folders have in common exactly where one engine works for both.

    Raises:
        WorkspaceError: There is no such folder, or its repository cannot be used.
    """
    return str((await find_place(Path(folder), dict(environ))).layout.root)

"""Reaching the engine of a folder: the one that lives, or one opened for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike, environ
from pathlib import Path

from engine.api.engine import Engine
from engine.api.errors_out import plain_errors
from engine.remote.client import RemoteEngine, living_engine
from engine.remote.spawn import spawn_engine
from engine.supervisor.place import find_place
from engine.supervisor.port import EnginePort


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
            engine = await stack.enter_async_context(Engine.open(folder, environment=env))
            yield engine.port, False


@asynccontextmanager
async def attach(
    folder: str | PathLike[str] = ".", *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[EnginePort]:
    """The detached engine of a folder, started if none lives; it goes on when this ends."""
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    with plain_errors():
        async with AsyncExitStack() as stack:
            socket = await living_engine(place.layout)
            try:
                if socket is None:
                    raise FileNotFoundError(place.layout.engine_json)
                remote = await stack.enter_async_context(RemoteEngine.connect(socket))
            except OSError:
                socket = await spawn_engine(place.project, place.layout, env)
                remote = await stack.enter_async_context(RemoteEngine.connect(socket))
            yield remote


async def engine_key(folder: str | PathLike[str] = ".") -> str:
    """What two folders have in common exactly where one engine works for both.

    Raises:
        WorkspaceError: There is no such folder, or its repository cannot be used.
    """
    return str((await find_place(Path(folder), dict(environ))).layout.root)

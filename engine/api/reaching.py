"""Connect to the engine of a folder: the one that runs, or one opened for it.

A client of an engine that runs imports none of an engine's own modules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from importlib import import_module
from os import PathLike, environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from engine.api.errors_out import plain_errors
from engine.errors import EngineError, LockHeld
from engine.messages.questions import ResumeRun
from engine.messages.roles import Role
from engine.port.client import RemoteEngine, living_engine
from engine.port.spawn import spawn_engine
from engine.site.place import Place, find_place

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from engine.api.engine import Engine
    from engine.port.port import EnginePort
    from engine.run.past import Past

_AGAIN_S = 1.0
_HANDOVER_S = 10.0


@asynccontextmanager
async def reach(
    folder: str | PathLike[str] = ".", *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[EnginePort, bool]]:
    """Reach the engine that lives for a folder, or open one; say whether it lived.

    One that is about to leave, or to listen, is waited for. Other processes may have brought runs
    into the one that was opened: when it closes their agents are left running, and a detached
    engine takes them up.

    Raises:
        LockHeld: An engine works there that nobody can talk to.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    guests: list[str] = []
    with plain_errors():
        async with AsyncExitStack() as stack:
            stack.push_async_callback(_hand_over, place, env, guests)
            found = await _found(stack, place, env)
            if isinstance(found, RemoteEngine):
                yield found, True
                return
            try:
                yield found.port, False
            finally:
                guests.extend(found.guests)


@asynccontextmanager
async def look(
    folder: str | PathLike[str] = ".", *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[EnginePort | Past, bool]]:
    """Reach the engine that lives for a folder, or only the journals of its runs; say which.

    Journals answer `ListRuns` and `ReadRun`. An engine that is about to listen, or to leave, may
    be missed.
    """
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    with plain_errors():
        async with AsyncExitStack() as stack:
            address = await living_engine(place.layout)
            remote: RemoteEngine | None = None
            if address is not None:
                with suppress(OSError):
                    remote = await stack.enter_async_context(RemoteEngine.connect(address))
            if remote is not None:
                yield remote, True
                return
            past = await anyio.to_thread.run_sync(import_module, "engine.run.past")
            yield past.Past(place.store, place.layout), False


async def _found(
    stack: AsyncExitStack, place: Place, env: Mapping[str, str]
) -> RemoteEngine | Engine:
    """Return the engine that lives, or one opened now, also while one engine follows another."""
    deadline = anyio.current_time() + _HANDOVER_S
    while True:
        address = await living_engine(place.layout)
        if address is not None:
            with suppress(OSError):
                return await stack.enter_async_context(RemoteEngine.connect(address))
        rooms = await anyio.to_thread.run_sync(import_module, "engine.api.engine")
        opened: AbstractAsyncContextManager[Engine] = rooms.Engine.open(
            place.project, environment=env
        )
        try:
            return await stack.enter_async_context(opened)
        except LockHeld:
            if anyio.current_time() > deadline:
                raise
        await anyio.sleep(_HANDOVER_S / 100)


async def _hand_over(place: Place, env: Mapping[str, str], runs: Sequence[str]) -> None:
    """Let a detached engine continue what others had brought into the one that closed.

    Where none can be started, whoever follows such a run takes it up, or the next command does.
    """
    if not runs:
        return
    with anyio.CancelScope(shield=True), suppress(EngineError, OSError):
        address = await spawn_engine(place.project, place.layout, env, runs=runs)
        async with RemoteEngine.connect(address) as remote:
            for run in runs:  # one of the others may have been faster with an engine of its own
                await remote.ask(ResumeRun(run))


@asynccontextmanager
async def attach(
    folder: str | PathLike[str] = ".",
    *,
    environment: Mapping[str, str] | None = None,
    role: Role = Role.OWNER,
) -> AsyncIterator[EnginePort]:
    """Reach a folder's detached engine, started if none lives; it goes on when this ends.

    Where that engine is killed another one is started, which takes its runs up; what is asked in
    between raises EngineGone. The engine refuses every command of a watcher.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    with plain_errors():
        async with anyio.create_task_group() as tasks:
            attached = _Attached(place, env, role)
            await tasks.start(attached.keep)
            try:
                yield cast("EnginePort", attached)
            finally:
                tasks.cancel_scope.cancel()


class _Attached:
    """The port of whichever engine lives."""

    def __init__(self, place: Place, env: Mapping[str, str], role: Role) -> None:
        self._place = place
        self._env = env
        self._role = role
        self._remote: RemoteEngine | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    async def keep(self, task_status: TaskStatus[None]) -> None:
        """Stay connected; retry failures after the first connection."""
        while True:
            try:
                await self._connected(task_status)
            except (EngineError, OSError):
                if self._remote is None:
                    raise
                await anyio.sleep(_AGAIN_S)

    async def _connected(self, task_status: TaskStatus[None]) -> None:
        async with AsyncExitStack() as stack:
            address = await living_engine(self._place.layout)
            try:
                if address is None:
                    raise FileNotFoundError(self._place.layout.engine_json)
                connecting = RemoteEngine.connect(address, self._role)
                remote = await stack.enter_async_context(connecting)
            except OSError:
                address = await spawn_engine(self._place.project, self._place.layout, self._env)
                connecting = RemoteEngine.connect(address, self._role)
                remote = await stack.enter_async_context(connecting)
            is_first, self._remote = self._remote is None, remote
            if is_first:
                task_status.started()
            await remote.gone.wait()


async def engine_key(folder: str | PathLike[str] = ".") -> str:
    """Return a key that two folders share exactly if one engine works for both.

    Raises:
        WorkspaceError: There is no such folder, or its repository cannot be used.
    """
    return str((await find_place(Path(folder), dict(environ))).layout.root)

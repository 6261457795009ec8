"""The door of an engine: a socket on which consoles and second shells see and steer it."""

import errno
import json
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import anyio.to_thread
from anyio.abc import Listener, SocketStream, TaskGroup

from engine.errors import EngineBug, EngineError
from engine.remote.protocol import VERSION, ProtocolError, Wire, peer_uid
from engine.store.codec import JsonValue, dump, dump_as, load
from engine.store.files import write_atomically
from engine.store.layout import Layout
from engine.supervisor.coordinator import Coordinator

_SOCKET = "engine.sock"
_STARTING_S = 600.0
"""An engine that is younger may not listen yet."""


class Door:
    """Where an engine listens; opened once there is an engine behind it."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self._layout = layout
        self.socket = str(folder / _SOCKET)
        self.asked_to_leave = anyio.Event()
        self.clients = 0

    def leave(self) -> None:
        """A client has gone."""
        self.clients -= 1

    async def open(self, coordinator: Coordinator, tasks: TaskGroup) -> None:
        """Listen, and say where in `engine.json`."""
        listener = await anyio.create_unix_listener(self.socket, mode=0o600)
        who = {"pid": os.getpid(), "socket": self.socket, "v": VERSION}
        write = partial(write_atomically, self._layout.engine_json, json.dumps(who).encode())
        await anyio.to_thread.run_sync(write)
        talk = partial(_talk, coordinator, self)
        tasks.start_soon(_serve, listener, talk)


async def _serve(
    listener: Listener[SocketStream], talk: Callable[[SocketStream], Awaitable[None]]
) -> None:
    async with listener:
        await listener.serve(talk)


@asynccontextmanager
async def serving(layout: Layout, environ: Mapping[str, str]) -> AsyncIterator[Door]:
    """A door, and afterwards no trace of it."""
    folder = await anyio.to_thread.run_sync(_socket_folder, environ)
    door = Door(layout, folder)
    try:
        yield door
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_forget, layout, door.socket)


def _socket_folder(environ: Mapping[str, str]) -> Path:
    """A folder for this user alone with a path short enough for a socket (107 bytes)."""
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere")
    own = Path(tempfile.gettempdir()) / f"plait-{os.getuid()}"
    base = runtime / "plait" if runtime.is_dir() else own
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = base.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EngineError(
            f"{base} can be entered by others", hint=f"Remove it, or `chmod 700 {base}`."
        )
    _sweep(base)
    folder = base / secrets.token_hex(4)
    folder.mkdir(mode=0o700)
    return folder


def _sweep(base: Path) -> None:
    """Remove the folders of engines that were killed: nobody listens in them any more."""
    old = time.time() - _STARTING_S
    for folder in base.iterdir():
        with suppress(OSError):
            if folder.stat().st_mtime < old and not _is_heard(folder / _SOCKET):
                shutil.rmtree(folder)


def _is_heard(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        return probe.connect_ex(str(path)) not in {errno.ENOENT, errno.ECONNREFUSED}


def _forget(layout: Layout, path: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(layout.engine_json.read_bytes()).get("socket") == path:
            layout.engine_json.unlink()
    shutil.rmtree(Path(path).parent, ignore_errors=True)


async def _talk(coordinator: Coordinator, door: Door, stream: SocketStream) -> None:
    """One conversation; what goes wrong in it ends it and nothing else."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stream)
        if peer_uid(stream) != os.getuid():
            return
        wire = Wire(stream)
        door.clients += 1
        stack.callback(door.leave)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, EngineError):
            await wire.send({"v": VERSION, "plait": "engine", "pid": os.getpid()})
            async with anyio.create_task_group() as tasks:
                conversation = _Conversation(coordinator, door, wire)
                # Caught in here: what leaves a task group is a group, which nobody outside expects.
                with suppress(ProtocolError):
                    async for message in wire.messages():
                        tasks.start_soon(conversation.hear, message)
                tasks.cancel_scope.cancel()


_MAY_BE_ASKED = frozenset(
    {
        *("start", "resume", "command", "snapshot", "view", "report", "log", "diff", "enter"),
        *("conflicts", "resolve", "check", "check_batch", "landing_order"),
        *("candidates", "compare", "moments", "leave_out", "weave"),
        *("history", "clean", "trash", "restore", "wait_idle"),
    }
)
"""What of the coordinator is asked by its own name and answered as its type hints say."""


@cache
def _hints(name: str) -> Mapping[str, Any]:
    return get_type_hints(getattr(Coordinator, name))


class _Conversation:
    """What one client may ask."""

    def __init__(self, coordinator: Coordinator, door: Door, wire: Wire) -> None:
        self._coordinator = coordinator
        self._door = door
        self._wire = wire

    async def hear(self, message: dict[str, Any]) -> None:
        """Answer one request."""
        number = message.get("id")
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                if message.get("do") == "events":
                    await self._tell_events(message)
                    return
                await self._wire.send({"id": number, "ok": await self._answer(message)})
            except EngineBug:
                raise
            except Exception as error:  # noqa: BLE001 - a question that fails ends no engine
                await self._wire.send({"id": number, **_told(error)})

    async def _tell_events(self, message: dict[str, Any]) -> None:
        number, run = message.get("id"), message.get("run")
        stream = self._coordinator.events(int(message.get("after", 0)), run=run)
        async for told in stream:
            await self._wire.send({"id": number, "item": dump(told)})
        await self._wire.send({"id": number, "end": True})

    async def _answer(self, message: dict[str, Any]) -> JsonValue:
        name = message.get("do")
        if name == "leave":
            self._door.asked_to_leave.set()
            return None
        if name not in _MAY_BE_ASKED:
            raise EngineError(f"nobody knows how to {name!r}")
        hints = _hints(name)
        given = {key: load(hints[key], message[key]) for key in hints.keys() & message.keys()}
        answer = await getattr(self._coordinator, name)(**given)
        return dump_as(hints["return"], answer)


def _told(error: Exception) -> dict[str, str]:
    """An error as the other side raises it; one in a group as itself."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    kind, hint = type(error).__name__, getattr(error, "hint", "")
    return {"error": str(error), "hint": hint, "kind": kind}

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
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import Listener, SocketStream, TaskGroup

from engine.commands import Command, ResolutionAction
from engine.errors import EngineBug, EngineError
from engine.plan.model import Plan
from engine.remote.protocol import VERSION, ProtocolError, Wire, peer_uid
from engine.store.codec import dump, load
from engine.store.files import write_atomically
from engine.store.layout import Layout
from engine.supervisor.coordinator import Coordinator
from engine.supervisor.merging.queue import LandingOrder

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


class _Conversation:
    """What one client may ask."""

    def __init__(self, coordinator: Coordinator, door: Door, wire: Wire) -> None:
        self._coordinator = coordinator
        self._door = door
        self._wire = wire
        self._asks: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "command": self._command,
            "snapshot": self._snapshot,
            "log": self._log,
            "start": self._start,
            "resume": self._resume,
            "view": self._view,
            "report": self._report,
            "diff": self._diff,
            "enter": self._enter,
            "conflicts": self._conflicts,
            "resolve": self._resolve,
            "check": self._check,
            "landing_order": self._landing_order,
            "check_batch": self._check_batch,
            "candidates": self._candidates,
            "compare": self._compare,
            "leave_out": self._leave_out,
            "weave": self._weave,
            "history": self._history,
            "clean": self._clean,
            "trash": self._trash,
            "restore": self._restore,
            "wait_idle": self._wait_idle,
            "leave": self._leave,
        }

    async def hear(self, message: dict[str, Any]) -> None:
        """Answer one request."""
        number = message.get("id")
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                if message.get("do") == "events":
                    await self._events(message)
                    return
                ask = self._asks.get(str(message.get("do")))
                if ask is None:
                    raise EngineError(f"nobody knows how to {message.get('do')!r}")
                await self._wire.send({"id": number, "ok": await ask(message)})
            except EngineBug:
                raise
            except Exception as error:  # noqa: BLE001 - a question that fails ends no engine
                await self._wire.send({"id": number, **_told(error)})

    async def _events(self, message: dict[str, Any]) -> None:
        number, run = message.get("id"), message.get("run")
        stream = self._coordinator.events(int(message.get("after", 0)), run=run)
        async for told in stream:
            await self._wire.send({"id": number, "item": dump(told)})
        await self._wire.send({"id": number, "end": True})

    async def _command(self, message: dict[str, Any]) -> Any:
        return dump(await self._coordinator.command(load(Command, message["command"])))

    async def _snapshot(self, message: dict[str, Any]) -> Any:
        del message
        return dump(await self._coordinator.snapshot())

    async def _log(self, message: dict[str, Any]) -> Any:
        chunk = await self._coordinator.log(
            str(message["run"]), str(message["worker"]), message.get("attempt"), message["after"]
        )
        return dump(chunk)

    async def _start(self, message: dict[str, Any]) -> Any:
        return await self._coordinator.start(load(Plan, message["plan"]))

    async def _resume(self, message: dict[str, Any]) -> Any:
        return await self._coordinator.resume(str(message["run"]))

    async def _view(self, message: dict[str, Any]) -> Any:
        return dump(await self._coordinator.view(str(message["run"])))

    async def _report(self, message: dict[str, Any]) -> Any:
        return dump(await self._coordinator.report(str(message["run"])))

    async def _diff(self, message: dict[str, Any]) -> Any:
        run, worker = str(message["run"]), str(message["worker"])
        more = {key: message[key] for key in ("against", "context") if key in message}
        return dump(await self._coordinator.diff(run, worker, message.get("attempt"), **more))

    async def _enter(self, message: dict[str, Any]) -> Any:
        run, worker = str(message["run"]), str(message["worker"])
        return dump(await self._coordinator.enter(run, worker))

    async def _conflicts(self, message: dict[str, Any]) -> Any:
        run, worker = str(message["run"]), str(message["worker"])
        return dump(await self._coordinator.conflicts(run, worker, str(message.get("path", ""))))

    async def _resolve(self, message: dict[str, Any]) -> Any:
        run, worker = str(message["run"]), str(message["worker"])
        action = load(ResolutionAction, message["action"])
        return dump(await self._coordinator.resolve(run, worker, action))

    async def _check(self, message: dict[str, Any]) -> Any:
        run, worker = str(message["run"]), str(message["worker"])
        is_own = bool(message.get("is_own"))
        return dump(await self._coordinator.check(run, worker, is_own=is_own))

    async def _landing_order(self, message: dict[str, Any]) -> Any:
        by, workers = LandingOrder(message["by"]), list(map(str, message["workers"]))
        found = await self._coordinator.landing_order(str(message["run"]), workers, by)
        return [dump(planned) for planned in found]

    async def _check_batch(self, message: dict[str, Any]) -> Any:
        run, workers = str(message["run"]), list(map(str, message["workers"]))
        return dump(await self._coordinator.check_batch(run, workers))

    async def _clean(self, message: dict[str, Any]) -> Any:
        is_asked = bool(message.get("dry_run"))
        return [dump(item) for item in await self._coordinator.clean(dry_run=is_asked)]

    async def _trash(self, message: dict[str, Any]) -> Any:
        del message
        return [dump(item) for item in await self._coordinator.trash()]

    async def _restore(self, message: dict[str, Any]) -> Any:
        return await self._coordinator.restore(str(message["name"]))

    async def _candidates(self, message: dict[str, Any]) -> Any:
        run, step = str(message["run"]), str(message["step"])
        return dump(await self._coordinator.candidates(run, step))

    async def _compare(self, message: dict[str, Any]) -> Any:
        run, one, other = str(message["run"]), str(message["one"]), str(message["other"])
        return dump(await self._coordinator.compare(run, one, other))

    async def _leave_out(self, message: dict[str, Any]) -> Any:
        run, worker, hunks = str(message["run"]), str(message["worker"]), message["hunks"]
        return dump(await self._coordinator.leave_out(run, worker, list(map(str, hunks))))

    async def _weave(self, message: dict[str, Any]) -> Any:
        run, step, hunks = str(message["run"]), str(message["step"]), message["hunks"]
        return dump(await self._coordinator.weave(run, step, list(map(str, hunks))))

    async def _history(self, message: dict[str, Any]) -> Any:
        del message
        return [dump(summary) for summary in await self._coordinator.history()]

    async def _wait_idle(self, message: dict[str, Any]) -> Any:
        del message
        await self._coordinator.wait_idle()
        return True

    async def _leave(self, message: dict[str, Any]) -> Any:
        del message
        self._door.asked_to_leave.set()
        return True


def _told(error: Exception) -> dict[str, str]:
    """An error as the other side raises it; one in a group as itself."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    kind, hint = type(error).__name__, getattr(error, "hint", "")
    return {"error": str(error), "hint": hint, "kind": kind}

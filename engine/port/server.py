"""The door of an engine: a socket on which consoles and second shells see and steer it.

A worker must not steer the engine it works for. Its keeper is an ancestor of all its processes,
because keepers adopt the orphans below them. So the line from a peer up to the first process is
walked, and a keeper on it that is not above the engine too means a worker. (An engine that itself
runs inside another engine's worker serves that worker.) What cannot be seen is refused.
"""

import errno
import json
import os
import re
import select
import shutil
import socket
import stat
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from engine.errors import EngineBug, EngineError
from engine.keeper import proc
from engine.keeper.program import NAME as KEEPER
from engine.keeper.zygote import NAME as ZYGOTE
from engine.messages.commands import Command, Refused, Reply
from engine.messages.questions import Ask, LeaveEngine, answer_type, question_kinds
from engine.messages.roles import Role
from engine.patterns.background import Background, contained
from engine.port import capability
from engine.port.capability import VERSION
from engine.port.protocol import (
    GREETING_S,
    LONGEST_GREETING,
    LONGEST_LINE,
    NotAdmitted,
    ProtocolError,
    Wire,
    error_said,
)
from engine.redaction import Redactor
from engine.run.coordinator import Coordinator
from engine.site.secrets_of import known_secrets
from engine.speaking import speaker_of, speaking
from engine.store.codec import JsonValue, dump, dump_as, load
from engine.store.files import write_atomically
from engine.store.layout import Layout
from engine.values import dataclass

_SOCKET = "engine.sock"
_PREFIX = "plait-"
_LONGEST_PATH = 107
_STARTING_S = 600.0
"""An engine that is younger may not listen yet."""
_AGAIN_S = 0.5
"""So long nobody is let in after that failed: no descriptor was free, for example."""
_MOST_AT_ONCE = 256
"""Questions of one client that are being answered; more are not read before."""
_STRANGER = {
    "error": "this client does not know the engine's key",
    "hint": "Only the user who started the engine can use it, and only outside a sandbox.",
}
_KEPT = {
    "error": "agents cannot use the engine that runs them",
    "hint": "Use a shell outside the agent.",
}
_ONLY_OWNERS = "`plait attach` without --watch opens a console that can change things."
_PEER = struct.Struct("3i")
_SO_PEERPIDFD = 77  # Linux 6.5; the number is the same on every machine that plait runs on
_TRIES = 5
_MOST_ANCESTORS = 1000


RunsCommand = Callable[[Mapping[str, Any]], Awaitable[JsonValue]]
"""Runs a command line that a shell sent; null where the shell must run it itself."""


class Door:
    """The socket on which an engine listens; opened once there is an engine behind it.

    Attributes:
        runs_command: Where the program around this engine runs command lines for shells.
    """

    def __init__(self, layout: Layout, folder: Path) -> None:
        self._layout = layout
        self._key = b""
        self.socket = str(folder / _SOCKET)
        self.asked_to_leave = anyio.Event()
        self.clients = 0
        self.runs_command: RunsCommand | None = None

    def leave(self) -> None:
        """A client has gone."""
        self.clients -= 1

    async def open(self, coordinator: Coordinator, tasks: TaskGroup) -> None:
        """Listen, and say where in `engine.json`."""
        listener = await anyio.create_unix_listener(self.socket, mode=0o600)
        await anyio.to_thread.run_sync(self._publish)
        talk = partial(_talk, coordinator, self)
        Background(tasks).start_soon(_serve, listener, talk, failed=None)  # it never gives up

    def _publish(self) -> None:
        """Write the key before the address: whoever finds the address finds the key."""
        self._key = capability.write_key(self._layout.engine_key)
        who = {"pid": os.getpid(), "socket": self.socket, "v": VERSION}
        write_atomically(self._layout.engine_json, json.dumps(who).encode())

    async def greet(self, wire: Wire, messages: AsyncIterator[dict[str, Any]]) -> Role | None:
        """Return the role that a client has proved to be allowed; None where it has not."""
        nonce = capability.new_nonce()
        hello = {"v": VERSION, "plait": "engine", "pid": os.getpid(), "nonce": nonce}
        await wire.send(hello)
        said: dict[str, Any] | None = None
        with anyio.move_on_after(GREETING_S), suppress(ProtocolError):
            said = await anext(messages, None)
        if said is None:
            return None
        if said.get("v") != VERSION:
            await wire.send({"error": f"this engine speaks version {VERSION}", "v": VERSION})
            return None
        with suppress(ValueError):
            role = Role(str(said.get("role")))
            nonces = nonce, str(said.get("nonce"))
            wanted = capability.proof(self._key, role, capability.CLIENT, nonces)
            if capability.is_proof(said.get("proof"), wanted):
                mine = capability.proof(self._key, role, capability.ENGINE, nonces)
                await wire.send({"role": str(role), "proof": mine})
                return role
        await wire.send(_STRANGER)
        return None


async def _serve(
    listener: Listener[SocketStream], talk: Callable[[SocketStream], Awaitable[None]]
) -> None:
    async def alone(stream: SocketStream) -> None:
        await contained(partial(talk, stream), None)

    async with listener, anyio.create_task_group() as talks:
        while True:
            with suppress(anyio.BrokenResourceError):
                await listener.serve(alone, talks)
            await anyio.sleep(_AGAIN_S)


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
    """Make a folder for this user alone with a path short enough for a socket.

    Its name cannot be guessed, so nobody can have put anything in its place.
    """
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere")
    bases = [runtime] if _is_private(runtime) else []
    for base in (*bases, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  the name is secret
        with suppress(OSError):
            _sweep(base)
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
            if len(os.fsencode(folder / _SOCKET)) <= _LONGEST_PATH:
                return folder
            folder.rmdir()
    raise EngineError(
        "there is no folder for the engine's socket",
        hint="Free some space in TMPDIR, or set it to a folder with a short path.",
    )


def _is_private(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )


def _sweep(base: Path) -> None:
    """Remove the folders of engines that were killed: nobody listens in them any more.

    Only a folder of ours that holds nothing but such a socket is one.
    """
    old = time.time() - _STARTING_S
    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _is_private(folder) and folder.stat().st_mtime < old:
                _remove(folder)


def _remove(folder: Path) -> None:
    names = os.listdir(folder)  # noqa: PTH208  names are what is compared
    if names not in ([], [_SOCKET]) or _is_heard(folder / _SOCKET):
        return
    (folder / _SOCKET).unlink(missing_ok=True)
    folder.rmdir()


def _is_heard(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        return probe.connect_ex(str(path)) not in {errno.ENOENT, errno.ECONNREFUSED}


def _forget(layout: Layout, path: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(layout.engine_json.read_bytes()).get("socket") == path:
            layout.engine_json.unlink()
            layout.engine_key.unlink()
    shutil.rmtree(Path(path).parent, ignore_errors=True)


async def _talk(coordinator: Coordinator, door: Door, stream: SocketStream) -> None:
    """Hold one conversation; what goes wrong in it ends it and nothing else."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stream)
        peer = Peer.of(stream)
        stack.callback(peer.close)
        wire = Wire(stream)
        stack.enter_context(suppress(anyio.BrokenResourceError, anyio.ClosedResourceError))
        if peer.uid != os.getuid():
            await wire.send(_STRANGER)
            return
        if await anyio.to_thread.run_sync(peer.is_kept):
            await wire.send(_KEPT)
            return
        wire.longest = LONGEST_GREETING
        messages = wire.messages()
        role = await door.greet(wire, messages)
        if role is None:
            return
        wire.longest = LONGEST_LINE
        door.clients += 1
        stack.callback(door.leave)
        said_by = await anyio.to_thread.run_sync(speaker_of, peer.pid, peer.uid, role)
        stack.enter_context(speaking(said_by))
        await _converse(_Conversation(coordinator, door, wire, role), messages)


async def _converse(conversation: "_Conversation", messages: AsyncIterator[dict[str, Any]]) -> None:
    """Answer every message, some at once; one that is too much waits in the socket."""
    room = anyio.Semaphore(_MOST_AT_ONCE)

    async def hear(message: dict[str, Any]) -> None:
        try:
            await conversation.hear(message)
        finally:
            room.release()

    async with anyio.create_task_group() as tasks:
        # Caught in here: what leaves a task group is a group, which nobody outside expects.
        with suppress(ProtocolError):
            async for message in messages:
                await room.acquire()
                tasks.start_soon(hear, message)
        tasks.cancel_scope.cancel()


def _may(role: Role, *, changes: bool) -> bool:
    """Say if a role may ask for something; a watcher may not change anything."""
    match role:
        case Role.OWNER:
            return True
        case Role.WATCHER:
            return not changes
        case Role.AGENT:
            return False


class _Conversation:
    """The questions of one client, answered as its role allows."""

    def __init__(self, coordinator: Coordinator, door: Door, wire: Wire, role: Role) -> None:
        self._coordinator = coordinator
        self._door = door
        self._wire = wire
        self._role = role
        self._redactors: dict[tuple[str, ...], Redactor] = {}

    async def hear(self, message: dict[str, Any]) -> None:
        """Answer one request."""
        number = message.get("id")
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                if message.get("do") == "events":
                    self._admit("events", changes=False)
                    await self._tell_events(message)
                else:
                    answer = await self._shown(await self._answer(message))
                    await self._wire.send({"id": number, "ok": answer})
            except EngineBug:
                raise
            except Exception as error:  # noqa: BLE001 - a question that fails ends no engine
                await self._wire.send({"id": number, **error_said(error)})

    def _admit(self, deed: str, *, changes: bool) -> None:
        """Let this client ask for something.

        Raises:
            NotAdmitted: Its role does not allow that.
        """
        if not _may(self._role, changes=changes):
            said = f"this client is a {self._role}, so it cannot {deed}"
            raise NotAdmitted(said, hint=_ONLY_OWNERS)

    async def _tell_events(self, message: dict[str, Any]) -> None:
        number, run = message.get("id"), message.get("run")
        after, is_shown = int(message.get("after", 0)), message.get("views") is True
        begin = self._coordinator.watch if is_shown else self._coordinator.events
        async for told in begin(after, run=run):
            await self._wire.send({"id": number, "item": await self._shown(dump(told))})
        await self._wire.send({"id": number, "end": True})

    async def _shown(self, answer: JsonValue) -> JsonValue:
        """Return an answer as this client may see it: a watcher sees no secrets."""
        if self._role is Role.OWNER:
            return answer
        runs = self._coordinator.runs.living
        if tuple(runs) not in self._redactors:
            plans = [live.state.plan for live in runs.values()]
            known = known_secrets(plans, self._coordinator.runs.tools.environ)
            self._redactors = {tuple(runs): Redactor(known)}
        redactor = self._redactors[tuple(runs)]
        shown: JsonValue = await anyio.to_thread.run_sync(redactor.json, answer)
        return shown

    async def _answer(self, message: dict[str, Any]) -> JsonValue:
        match message.get("do"):
            case "command":
                return dump_as(Reply, await self._command(message))
            case "ask":
                return await self._ask(message)
            case "run" if self._door.runs_command is not None:
                self._admit("run commands", changes=True)
                return await self._door.runs_command(message)
            case other:
                raise EngineError(f"unknown command {other!r}")

    async def _command(self, message: dict[str, Any]) -> Reply:
        try:
            self._admit("command", changes=True)
        except NotAdmitted as refusal:
            return Refused(str(refusal), hint=refusal.hint)
        return await self._coordinator.command(load(Command, message["command"]))

    async def _ask(self, message: dict[str, Any]) -> JsonValue:
        said = message.get("question")
        name = said.get("type") if isinstance(said, dict) else said
        kind = question_kinds().get(str(name))
        if kind is None:
            raise EngineError(f"unknown question {name!r}")
        self._admit(_in_words(kind), changes=kind.changes)
        question = load(kind, message["question"])
        if isinstance(question, LeaveEngine):
            self._door.asked_to_leave.set()
            return None
        return dump_as(answer_type(kind), await self._coordinator.ask(question))


def _in_words(kind: type[Ask[Any]]) -> str:
    """Return the name of a kind of question as words: `CleanUp` is `clean up`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Whoever connected, as the kernel noted it at that moment.

    Attributes:
        pidfd: Holds the process, so that its number cannot come to mean another; -1 where the
            kernel gives none for a process that has ended already.
    """

    pid: int
    uid: int
    pidfd: int

    @classmethod
    def of(cls, stream: SocketStream) -> Self:
        """Return the peer of a connection; `close` gives it back."""
        raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610  anyio's, not Django's
        data = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, uid, _ = _PEER.unpack(data)
        return cls(pid=pid, uid=uid, pidfd=_pidfd(raw, pid))

    def close(self) -> None:
        """Let the process go."""
        if self.pidfd >= 0:
            os.close(self.pidfd)

    def is_kept(self) -> bool:
        """Return True if the process is a worker's, or cannot be proved not to be.

        It reads /proc, so it belongs in a thread.
        """
        if self.pid <= 0 or self.pidfd < 0:
            return True
        own = {process.pid for process in _line(os.getpid()) or ()}
        above = _line(self.pid)
        return above is None or self._has_ended() or any(_is_keeper(p, own) for p in above)

    def _has_ended(self) -> bool:
        """Return True if the number may mean another process by now."""
        waiting = select.poll()
        waiting.register(self.pidfd, select.POLLIN)
        return bool(waiting.poll(0))


def _pidfd(raw: socket.socket, pid: int) -> int:
    try:
        return raw.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass
    try:  # an older kernel: the process may have been exchanged since it connected, hardly before
        return os.pidfd_open(pid)
    except OSError:
        return -1


def _is_keeper(process: proc.Process, spared: set[int]) -> bool:
    return process.name in {KEEPER, ZYGOTE} and process.pid not in spared


def _line(pid: int) -> list[proc.Process] | None:
    """Return a process and all above it; None where the line cannot be seen whole."""
    for _ in range(_TRIES):
        line = _walk(pid)
        if line is not None:
            return line
    return None


def _walk(pid: int) -> list[proc.Process] | None:
    line: list[proc.Process] = []
    while pid > 0 and len(line) < _MOST_ANCESTORS:
        process = proc.look(pid)
        if process is None:
            return line if line and _is_hidden(pid) else None
        # A parent that began after its child is another process under the number of one that ended.
        if line and process.start > line[-1].start:
            return None
        line.append(process)
        pid = process.parent
    return line


def _is_hidden(pid: int) -> bool:
    """Return True if a process of another user, which is no keeper of ours, hides its /proc."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False

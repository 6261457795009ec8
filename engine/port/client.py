"""An engine in another process, seen through its socket: the same port as one in this process.

A console waits for this module before it shows its first worker, so what only some answers are made
of is loaded with the first such answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from engine.errors import EngineError
from engine.messages.commands import Command, Reply
from engine.messages.events import Told
from engine.messages.patches import Show, ViewPatch
from engine.messages.questions import A, Ask, answer_type
from engine.messages.roles import Role
from engine.port import capability
from engine.port.capability import VERSION
from engine.port.protocol import PATIENCE_S, NotAdmitted, ProtocolError, Wire, error_heard
from engine.store.codec import dump, load
from engine.store.layout import Layout
from engine.values import dataclass

if TYPE_CHECKING:
    from engine.messages.merging import (
        ConflictFileView,
        ConflictView,
    )


@dataclass(frozen=True)
class Address:
    """The socket of an engine, the file with the key that its clients must know, its process."""

    socket: str
    key: Path
    pid: int | None = None


class EngineGone(EngineError):
    """The engine ended while it was being talked to."""

    hint = "Its journal is complete; any command or console resumes its runs."


class EngineSilent(EngineError):
    """The engine lives and does not answer: it is busy, or stands still."""


class RemoteEngine:
    """An engine at the other end of a socket."""

    def __init__(self, wire: Wire, tasks: TaskGroup, pid: int) -> None:
        self._wire = wire
        self._tasks = tasks
        self.pid = pid
        self._number = 0
        self._files: dict[str, tuple[object, ConflictFileView]] = {}
        self._waiting: dict[int, MemoryObjectSendStream[dict[str, Any]]] = {}
        self.gone = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, address: Address, role: Role = Role.OWNER, *, patience_s: float = PATIENCE_S
    ) -> AsyncIterator[Self]:
        """Talk to the engine that listens at an address; wait a while for one that is busy.

        Raises:
            OSError: Nobody listens there.
            ProtocolError: Something else does.
            NotAdmitted: The engine does not let this process in.
            EngineSilent: It lives, and has said nothing for that long.
        """
        stream = await anyio.connect_unix(address.socket)
        wire = Wire(stream)
        async with stream:
            messages = wire.messages()
            waiting = partial(_first, messages, address, patience_s)
            pid = await _greet(wire, waiting, address, role)
            async with anyio.create_task_group() as tasks:
                remote = cls(wire, tasks, pid)
                tasks.start_soon(remote._listen, messages)
                try:
                    yield remote
                finally:
                    tasks.cancel_scope.cancel()

    async def _listen(self, messages: AsyncIterator[dict[str, Any]]) -> None:
        async for message in messages:
            waiting = self._waiting.get(message.get("id", 0))
            if waiting is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    waiting.send_nowait(message)
        self.gone.set()
        for waiting in list(self._waiting.values()):
            waiting.close()

    async def _request(
        self, do: str, **fields: Any
    ) -> tuple[int, MemoryObjectReceiveStream[dict[str, Any]]]:
        if self.gone.is_set():
            raise EngineGone("the engine has ended")
        self._number += 1
        number = self._number
        # Without a bound: events that are not read yet must not hold up the answer to a question
        # that whoever reads them asks in between. All of them are wanted anyway.
        sender, receiver = anyio.create_memory_object_stream[dict[str, Any]](inf)
        self._waiting[number] = sender
        try:
            await self._wire.send({"id": number, "do": do, **fields})
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._forget(number, receiver)
            raise EngineGone("the engine has ended") from error
        return number, receiver

    def _forget(self, number: int, receiver: MemoryObjectReceiveStream[dict[str, Any]]) -> None:
        receiver.close()
        sender = self._waiting.pop(number, None)
        if sender is not None:
            sender.close()

    async def _ask(self, do: str, **fields: Any) -> Any:
        number, receiver = await self._request(do, **fields)
        try:
            message = await receiver.receive()
        except anyio.EndOfStream:
            raise EngineGone("the engine has ended") from None
        finally:
            self._forget(number, receiver)
        if "error" in message:
            raise error_heard(message)
        return message["ok"]

    async def command(self, command: Command) -> Reply:
        """Ask for something; it is accepted, or refused with a reason."""
        reply: Reply = load(Reply, await self._ask("command", command=dump(command)))
        return reply

    async def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Tell what happened behind a number, then what happens; show what is new of the views."""
        asked = {"after": after_seq, "run": run, "views": show is not None}
        number, receiver = await self._request("events", **asked)
        try:
            async for message in receiver:
                if "item" not in message:
                    return
                news = load(Told | ViewPatch, message["item"])
                if isinstance(news, Told):
                    yield news
                elif show is not None:
                    show(news)
        finally:
            self._forget(number, receiver)

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to a question."""
        kind = answer_type(type(question))
        told = await self._ask("ask", question=dump(question))
        name = getattr(kind, "__name__", "")
        found: Any = self._read_conflicts(told) if name == "ConflictView" else load(kind, told)
        return cast("A", found)

    def _read_conflicts(self, told: dict[str, Any]) -> ConflictView:
        """An answer that has many files and is asked for at every key of a review.

        What is said of a file is mostly what the answer before said of it: then its view is the
        same one, and reading a thousand hunks anew holds no key up.
        """
        from engine.messages import merging as kinds  # noqa: PLC0415 - a console may never ask

        before, self._files = self._files, {}
        for said in told["files"]:
            known = before.get(said["path"])
            if known is None or known[0] != said:
                known = said, load(kinds.ConflictFileView, said)
            self._files[said["path"]] = known
        view = load(kinds.ConflictView, {**told, "files": []})
        return replace(view, files=tuple(file for _, file in self._files.values()))


async def _greet(
    wire: Wire, first: Callable[[], Awaitable[dict[str, Any]]], address: Address, role: Role
) -> int:
    """Prove to know the key, let the engine prove it too; return its process id."""
    hello = await first()
    version = hello.get("v")
    if hello.get("plait") != "engine" or not isinstance(version, int):
        raise ProtocolError(f"the program that listens at {address.socket} is not an engine")
    if version != VERSION:
        raise ProtocolError(
            f"the engine at {address.socket} speaks version {version},"
            f" and this plait speaks version {VERSION}",
            hint="Use the plait that started it, or wait until its runs end.",
        )
    key = await anyio.to_thread.run_sync(_key, address.key)
    nonces = str(hello.get("nonce")), capability.new_nonce()
    said = capability.proof(key, role, capability.CLIENT, nonces)
    await wire.send({"v": VERSION, "role": str(role), "nonce": nonces[1], "proof": said})
    answer = await first()
    if "error" in answer:
        raise NotAdmitted(str(answer["error"]), hint=str(answer.get("hint", "")))
    wanted = capability.proof(key, role, capability.ENGINE, nonces)
    if not capability.is_proof(answer.get("proof"), wanted):
        raise ProtocolError(
            f"the program that listens at {address.socket} does not know the engine's key"
        )
    return int(hello["pid"])


async def _first(
    messages: AsyncIterator[dict[str, Any]], address: Address, patience_s: float
) -> dict[str, Any]:
    """Return the next message; one that is busy is waited for."""
    message: dict[str, Any] | None = None
    with anyio.move_on_after(patience_s) as waiting:
        message = await anext(messages, None)
    if waiting.cancelled_caught:
        who = f"the engine (pid {address.pid})" if address.pid else "the engine"
        raise EngineSilent(
            f"{who} has not answered for {patience_s:g} s: it is busy or hangs",
            hint="Try again, or kill it: its journal is complete, and the next command "
            "resumes its runs.",
        )
    if message is None:  # it was being killed
        raise ConnectionResetError(f"the engine at {address.socket} has just ended")
    return message


def _key(path: Path) -> bytes:
    try:
        return capability.read_key(path)
    except FileNotFoundError:  # the engine ends at this moment
        raise ConnectionResetError(f"{path} is gone: the engine has just ended") from None
    except (OSError, ValueError) as error:
        raise NotAdmitted(
            f"the engine's key cannot be read: {error}",
            hint="Only the user who started the engine can use it, and only outside a sandbox.",
        ) from error


async def living_engine(layout: Layout) -> Address | None:
    """Return where `engine.json` says that an engine listens; connecting shows if it still does."""
    named = await anyio.to_thread.run_sync(_named, layout.engine_json)
    socket, pid = named.get("socket"), named.get("pid")
    if not isinstance(socket, str):
        return None
    return Address(socket, layout.engine_key, pid if isinstance(pid, int) else None)


def _named(path: Path) -> dict[str, Any]:
    try:
        named = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return named if isinstance(named, dict) else {}

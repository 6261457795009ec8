"""An engine in another process, seen through its socket: the same port as one in this process.

A console waits for this module before it shows its first worker, so what only some answers are made
of is loaded with the first such answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from engine import errors
from engine.errors import EngineError
from engine.messages.commands import Command, Reply, ResolutionAction, Seen
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Told
from engine.messages.logs import LogChunk
from engine.messages.results import (
    Change,
    CheckResult,
    EngineView,
    Entrance,
    Moment,
    RunReport,
    RunView,
)
from engine.messages.roles import Role
from engine.plan.model import Plan
from engine.port import capability
from engine.port.protocol import PATIENCE_S, VERSION, NotAdmitted, ProtocolError, Wire
from engine.store.codec import dump, load
from engine.store.layout import Layout

if TYPE_CHECKING:
    from engine.review.batch import BatchCheck
    from engine.review.queue import PlannedLanding
    from engine.review.views import ConflictFileView, ConflictView
    from engine.review.weaving import CandidateTable, Wove
    from engine.store.history import RunSummary
    from engine.work.cleaning import CleanItem, TrashItem


@dataclass(frozen=True)
class Address:
    """Where an engine listens, the file with the key that its clients must know, its process."""

    socket: str
    key: Path
    pid: int | None = None


class EngineGone(EngineError):
    """The engine ended while it was being talked to."""

    hint = "Its journal is whole; any command or console takes its runs up again."


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
            raise _error(message)
        return message["ok"]

    async def command(self, command: Command) -> Reply:
        """Ask for something; it is accepted, or refused with a reason."""
        reply: Reply = load(Reply, await self._ask("command", command=dump(command)))
        return reply

    async def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """What happened behind a number, then what happens."""
        number, receiver = await self._request("events", after=after_seq, run=run)
        try:
            async for message in receiver:
                if "item" not in message:
                    return
                yield load(Told, message["item"])
        finally:
            self._forget(number, receiver)

    async def snapshot(self) -> EngineView:
        """Everything a console shows at this moment."""
        return load(EngineView, await self._ask("snapshot"))

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        """A worker's log from a line on; no more than the newest `most` lines, if that is given."""
        fields = {"run": run, "worker": worker, "attempt": attempt, "after": after, "most": most}
        return load(LogChunk, await self._ask("log", **fields))

    async def wait_idle(self) -> None:
        """Return when nothing goes on but what waits for a human."""
        await self._ask("wait_idle")

    async def start(self, plan: Plan) -> str:
        """Begin a run there; its id."""
        return str(await self._ask("start", plan=dump(plan)))

    async def resume(self, run: str) -> str:
        """Have a run taken up there; its id."""
        return str(await self._ask("resume", run=run))

    async def view(self, run: str = "") -> RunView:
        """One run as it stands; the latest where none is named."""
        return load(RunView, await self._ask("view", run=run))

    async def report(self, run: str = "") -> RunReport:
        """What a run has come to so far; the latest where none is named."""
        return load(RunReport, await self._ask("report", run=run))

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """What a worker's attempt has changed, against where it began or something else."""
        fields: dict[str, object] = {"run": run, "worker": worker, "attempt": attempt}
        fields |= {"against": against, "context": context}
        return load(ChangeDiff, await self._ask("diff", **fields))

    async def enter(self, run: str, worker: str) -> Entrance:
        """What starts a program inside a worker's sandbox."""
        return load(Entrance, await self._ask("enter", run=run, worker=worker))

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        """A worker's conflicts and what is decided; with the text of one file if it is named."""
        return self._read_conflicts(await self._ask("conflicts", run=run, worker=worker, path=path))

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView:
        """Decide something about a worker's conflicts, or go on when all is decided."""
        return self._read_conflicts(
            await self._ask("resolve", run=run, worker=worker, action=dump(action))
        )

    def _read_conflicts(self, told: dict[str, Any]) -> ConflictView:
        """An answer that has many files and is asked for at every key of a review.

        What is said of a file is mostly what the answer before said of it: then its view is the
        same one, and reading a thousand hunks anew holds no key up.
        """
        before, self._files = self._files, {}
        for said in told["files"]:
            known = before.get(said["path"])
            if known is None or known[0] != said:
                known = said, _load_late("engine.review.views.ConflictFileView", said)
            self._files[said["path"]] = known
        view: ConflictView = _load_late("engine.review.views.ConflictView", {**told, "files": []})
        return replace(view, files=tuple(file for _, file in self._files.values()))

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: Seen | None = None
    ) -> CheckResult:
        """Run the check again: on the exact tree that would land now, or on the worker's own."""
        fields = {"run": run, "worker": worker, "is_own": is_own, "seen": _told(seen)}
        return load(CheckResult, await self._ask("check", **fields))

    async def check_batch(self, run: str, workers: Sequence[str]) -> BatchCheck:
        """Run the check once, on what the target would be with all these changes that fit."""
        found = await self._ask("check_batch", run=run, workers=list(workers))
        answer: BatchCheck = _load_late("engine.review.batch.BatchCheck", found)
        return answer

    async def landing_order(
        self, run: str, workers: Sequence[str], by: str = "plan"
    ) -> tuple[PlannedLanding, ...]:
        """The order in which workers are to land, with the conflicts expected of each."""
        found = await self._ask("landing_order", run=run, workers=list(workers), by=str(by))
        return tuple(_load_late("engine.review.queue.PlannedLanding", planned) for planned in found)

    async def candidates(self, run: str, step: str) -> CandidateTable:
        """The candidates of a step beside each other: figures, consensus, every hunk of all."""
        found = await self._ask("candidates", run=run, step=step)
        answer: CandidateTable = _load_late("engine.review.weaving.CandidateTable", found)
        return answer

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff:
        """What differs between the changes of any two workers."""
        return load(ChangeDiff, await self._ask("compare", run=run, one=one, other=other))

    async def moments(self, run: str, worker: str) -> tuple[Moment, ...]:
        """The points in time that a worker can be begun again from, oldest first."""
        found = await self._ask("moments", run=run, worker=worker)
        return tuple(load(Moment, one) for one in found)

    async def leave_out(
        self, run: str, worker: str, hunks: Sequence[str], *, seen: Seen | None = None
    ) -> Change:
        """Let exactly these hunks stay behind when a change lands; what is left of it."""
        fields = {"run": run, "worker": worker, "hunks": [*hunks], "seen": _told(seen)}
        return load(Change, await self._ask("leave_out", **fields))

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, Seen] | None = None,
    ) -> Wove:
        """Make a composite of hunks of a step's candidates, check it, and let it be reviewed."""
        told = {name: dump(one) for name, one in (seen or {}).items()} or None
        wove = await self._ask("weave", run=run, step=step, hunks=list(hunks), seen=told)
        answer: Wove = _load_late("engine.review.weaving.Wove", wove)
        return answer

    async def history(self) -> list[RunSummary]:
        """Every run of the repository, newest first."""
        history = await self._ask("history")
        return [_load_late("engine.store.history.RunSummary", item) for item in history]

    async def clean(self, *, dry_run: bool = False) -> list[CleanItem]:
        """Take away every workspace that is provably not needed; the rest with the reason."""
        found = await self._ask("clean", dry_run=dry_run)
        return [_load_late("engine.work.cleaning.CleanItem", item) for item in found]

    async def trash(self) -> list[TrashItem]:
        """What was taken away and can be brought back."""
        return [
            _load_late("engine.work.cleaning.TrashItem", item) for item in await self._ask("trash")
        ]

    async def restore(self, name: str) -> str:
        """Bring something back from the trash; its path."""
        return str(await self._ask("restore", name=name))

    async def leave(self) -> None:
        """Ask a detached engine to end once its consoles are gone."""
        await self._ask("leave")


def _load_late(name: str, value: Any) -> Any:
    """An answer of a kind that lies deep in a room, loaded now."""
    home, _, kind = name.rpartition(".")
    return load(getattr(import_module(home), kind), value)


def _error(message: dict[str, Any]) -> EngineError:
    """The error that was raised there: of its kind, with its sentence, without its other fields."""
    kind = getattr(errors, str(message.get("kind")), EngineError)
    is_ours = isinstance(kind, type) and issubclass(kind, EngineError)
    kind = kind if is_ours and not issubclass(kind, errors.EngineBug) else EngineError
    error: EngineError = kind.__new__(kind)
    EngineError.__init__(error, message["error"], hint=message.get("hint", ""))
    return error


async def _greet(
    wire: Wire, first: Callable[[], Awaitable[dict[str, Any]]], address: Address, role: Role
) -> int:
    """Prove to know the key, let the engine prove it too; return its process id."""
    hello = await first()
    version = hello.get("v")
    if hello.get("plait") != "engine" or not isinstance(version, int):
        raise ProtocolError(f"what listens at {address.socket} is no engine")
    if version != VERSION:
        raise ProtocolError(
            f"what listens at {address.socket} is no engine of this version:"
            f" it speaks version {version}, this plait speaks version {VERSION}",
            hint="Use the plait that started it, or wait until its runs have ended.",
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
        raise ProtocolError(f"what listens at {address.socket} does not know the engine's key")
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
            f"{who} does not answer since {patience_s:g} s: it is busy, or stands still",
            hint="Try again, or kill it: its journal is whole, the next command takes its runs up.",
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
            hint="Only the user who started the engine can talk to it, outside of any sandbox.",
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


def _told(seen: Seen | None) -> dict[str, Any] | None:
    return None if seen is None else dump(seen)

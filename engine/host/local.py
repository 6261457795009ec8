"""The host that is this machine: attempts run under keepers, which outlive whoever started them.

Every method is harmless when repeated; what has ended stays readable until it is forgotten.
"""

import os
from collections.abc import Container, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import psutil
from anyio import to_thread

from engine.errors import HostLost
from engine.host.attempt import LocalAttempt
from engine.host.births import Births
from engine.host.link import Link
from engine.host.records import request_of
from engine.host.seam import AttemptSpec, Capacity, Chunk
from engine.ids import AttemptId, RunId
from engine.keeper import files
from engine.limits import Limits
from engine.phases import StopCause
from engine.sandbox.room import room
from engine.system import IS_PORTABLE

_BIRTH_S = 10.0
_CLOSING_S = 10.0
_WAYS = (False, False, True)  # warm, warm again with a new zygote, then cold
_MB = 1 << 20


class LocalHost:
    """Runs attempts on this machine; `run_dir` gets the complaints of its own programs."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._births = Births(run_dir / "keepers.log")
        self._attempts: dict[AttemptId, LocalAttempt] = {}
        self._starting: dict[AttemptId, anyio.Lock] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose(detach=False)

    async def start(self, spec: AttemptSpec) -> None:
        """Start the attempt, or find it already started; returns once its keeper lives."""
        async with self._starting.setdefault(spec.attempt, anyio.Lock()):
            if spec.attempt not in self._attempts:
                attempt = LocalAttempt(spec.attempt, spec.directory, is_tethered=spec.is_tethered)
                await self._bear(spec, attempt)
                self._attempts[spec.attempt] = attempt

    async def go(self, attempt: AttemptId) -> None:
        """Let a held attempt begin."""
        await self._of(attempt).tell({"do": "go"})

    async def read(
        self, attempt: AttemptId, after_offset: int, *, wait: bool = True, is_focused: bool = False
    ) -> Chunk:
        """Return what was recorded after an offset; wait for more, or for news of its usage."""
        known = self._of(attempt, after_offset)
        return await known.read(after_offset, wait=wait, is_focused=is_focused)

    async def send(self, attempt: AttemptId, n: int, data: bytes | None) -> None:
        """Write to its stdin the n-th message (from 1; repeats are dropped); None closes stdin.

        Returns when the agent's pipe has taken all of it, so whoever sends too much waits.
        """
        await self._of(attempt).send(n, data)

    async def interrupt(self, attempt: AttemptId) -> None:
        """Send SIGINT to the leader once."""
        await self._of(attempt).tell({"do": "interrupt"})

    async def freeze(self, attempt: AttemptId) -> None:
        """Stop the whole tree where it stands; its clocks stop too."""
        await self._of(attempt).tell({"do": "pause"})

    async def thaw(self, attempt: AttemptId) -> None:
        """Let a frozen tree go on."""
        await self._of(attempt).tell({"do": "resume"})

    async def hold_clock(self, attempt: AttemptId, *, held: bool) -> None:
        """Stop or restart the time limit without freezing: a human is awaited."""
        await self._of(attempt).tell({"do": "hold", "held": held})

    async def set_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Change the limits of a running attempt, as far as its keeper holds them."""
        await self._of(attempt).tell({"do": "limits", "limits": asdict(limits)})

    async def resize(self, attempt: AttemptId, rows: int, columns: int) -> None:
        """Tell a terminal agent its new size."""
        message = {"do": "winsize", "rows": rows, "columns": columns}
        await self._of(attempt).tell(message)

    async def cancel(
        self, attempt: AttemptId, cause: StopCause, *, grace_s: float | None = None
    ) -> None:
        """Ask the whole tree to end, or end it at once with a grace of 0; `read` tells the end."""
        message = {"do": "stop", "cause": str(cause), "grace_s": grace_s}
        await self._of(attempt).tell(message)

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is held in memory for an attempt that has ended; a living one is kept."""
        known = self._attempts.get(attempt)
        if known is not None and known.end is not None:
            keeper = known.free_keeper()
            if keeper is not None:
                self._births.keep(keeper, is_tethered=known.is_tethered)
            known.close()
            del self._attempts[attempt]
            self._starting.pop(attempt, None)

    async def attempts(self, directories: Sequence[str]) -> tuple[AttemptId, ...]:
        """Return the attempts recorded in these folders that can still be read, living or ended."""
        found = []
        for directory in directories:
            attempt = await to_thread.run_sync(partial(_recorded_in, directory))
            if attempt is not None:
                self._attempts.setdefault(attempt, LocalAttempt(attempt, directory))
                found.append(attempt)
        return tuple(found)

    async def capacity(self) -> Capacity:
        """Return what this machine has to give now."""
        return await to_thread.run_sync(partial(_capacity, self._run_dir))

    async def aclose(self, *, detach: bool, stay: Container[RunId] = ()) -> None:
        """Let go of all attempts: leave them running, or end them and wait until they are dead.

        Those of the runs that `stay` are left running in any case.
        """
        with anyio.move_on_after(_CLOSING_S, shield=True):
            async with anyio.create_task_group() as closing:
                for attempt, known in self._attempts.items():
                    is_left = detach or attempt.run in stay
                    message = _untether() if is_left else _shutdown()
                    closing.start_soon(_let_go, known, message, is_left)
        for known in self._attempts.values():
            known.close()
        self._attempts.clear()
        await self._births.aclose()

    def _of(self, attempt: AttemptId, offset: int = 0) -> LocalAttempt:
        try:
            return self._attempts[attempt]
        except KeyError:
            raise HostLost(str(attempt), offset) from None

    async def _bear(self, spec: AttemptSpec, attempt: LocalAttempt) -> None:
        why = "no keeper could be started"
        try:
            for is_cold in _WAYS:
                said = await self._ask(spec, attempt, is_cold=is_cold)
                if said is None:
                    continue
                if said["say"] == "hello" or said["why"] != "failed":
                    return  # ours, or one that another engine has started: found when it is needed
                why = said["text"]
                break
        except OSError as refused:
            why = str(refused)
        attempt.fail(why)

    async def _ask(
        self, spec: AttemptSpec, attempt: LocalAttempt, *, is_cold: bool
    ) -> dict[str, str] | None:
        """Have a keeper run it; returns its first word, or None if it died before saying one."""
        while not is_cold and (free := self._births.free_keeper(is_tethered=spec.is_tethered)):
            said = await self._ask_of(free, spec, attempt)
            if said is not None:
                return said
        newborn = await self._births.bear(is_tethered=spec.is_tethered, is_cold=is_cold)
        return await self._ask_of(Link(newborn), spec, attempt)

    async def _ask_of(
        self, link: Link, spec: AttemptSpec, attempt: LocalAttempt
    ) -> dict[str, str] | None:
        messages: list[dict[str, Any]] | None = None
        try:
            with anyio.move_on_after(_BIRTH_S):
                if await link.send(request_of(spec)):
                    messages = await _first_words(link)
        finally:
            if not messages or messages[0]["say"] != "hello":
                link.close()
        if not messages:
            return None
        if messages[0]["say"] == "hello":
            attempt.begin(link, messages)
        return messages[0]


async def _first_words(link: Link) -> list[dict[str, Any]] | None:
    """Wait for a keeper's word on this attempt; it may still send messages of the one before."""
    while (messages := await link.receive()) is not None:
        for n, message in enumerate(messages):
            if message["say"] in {"hello", "refused"}:
                return messages[n:]
    return None


async def _let_go(known: LocalAttempt, message: dict[str, object], detach: bool) -> None:  # noqa: FBT001 - start_soon passes no keywords
    try:
        await known.tell(message)
        if not detach:
            await known.wait_end()
    except HostLost:
        return


def _untether() -> dict[str, object]:
    return {"do": "untether"}


def _shutdown() -> dict[str, object]:
    return {"do": "stop", "cause": str(StopCause.SHUTDOWN), "grace_s": None}


def _recorded_in(directory: str) -> AttemptId | None:
    try:
        fd = files.open_directory(directory)
    except OSError:
        return None
    try:
        content = files.load(fd, files.KEEPER) or files.load(fd, files.EXIT) or {}
    finally:
        os.close(fd)
    name = content.get("attempt")
    return AttemptId.parse(name) if name else None


def _cores() -> int:
    """Return how many processors this process may use, where the system tells."""
    may_use = None if IS_PORTABLE else len(os.sched_getaffinity(0))
    return may_use or os.cpu_count() or 1


def _capacity(folder: Path) -> Capacity:
    free = room(folder)
    return Capacity(
        cores=_cores(),
        memory_mb=psutil.virtual_memory().total // _MB,
        memory_available_mb=free.memory_mb,
        disk_free_mb=free.disk_mb,
    )

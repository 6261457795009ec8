"""The host that is this machine: attempts run under keepers, which outlive whoever started them.

Every method is harmless when repeated; what has ended stays readable until it is forgotten. Keepers
are forked by a zygote that is started once, and started plainly where there can be none. A keeper
whose attempt came to a plain end waits a moment for another: it is asked before one is born.
"""

import os
import socket
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
from engine.host.link import Link
from engine.host.records import request_of
from engine.host.seam import AttemptSpec, Capacity, Chunk
from engine.ids import AttemptId, RunId
from engine.keeper import files, launch
from engine.limits import Limits
from engine.phases import StopCause
from engine.sandbox.room import room
from engine.system import IS_PORTABLE

_MOST_FREE = 16
_BIRTH_S = 10.0
_CLOSING_S = 10.0
_WAYS = (False, False, True)  # warm, warm again with a new zygote, then cold
_MB = 1 << 20


class Births:
    """Gives birth to keepers; each is known by our end of its connection."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._requests: socket.socket | None = None
        self._children: set[int] = set()  # started here, to be waited for when they have ended
        self._engine_fds: list[int] | None = None
        self._starting = anyio.Lock()
        self._free: dict[bool, list[Link]] = {False: [], True: []}

    def keep(self, keeper: Link, *, is_tethered: bool) -> None:
        """A keeper that waits for another attempt, for a short while."""
        free = self._free[is_tethered]
        free.append(keeper)
        if len(free) > _MOST_FREE:
            free.pop(0).close()

    def free_keeper(self, *, is_tethered: bool) -> Link | None:
        """The keeper that became free last; it may have gone since, and then says nothing."""
        free = self._free[is_tethered]
        return free.pop() if free else None

    async def bear(self, *, is_tethered: bool, is_cold: bool = False) -> socket.socket:
        """A connection to a newborn keeper, which waits on it for what it is to run."""
        if self._engine_fds is None:
            self._engine_fds = _own_pidfd()
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        fds = [theirs.fileno(), *(self._engine_fds if is_tethered else ())]
        try:
            with theirs:
                if is_cold or not await self._ask_zygote(fds):
                    await self._start("program", fds)
        except BaseException:
            ours.close()
            raise
        return ours

    async def aclose(self) -> None:
        """End the zygote; keepers of living attempts go on."""
        for keeper in (*self._free[False], *self._free[True]):
            keeper.close()
        self._free = {False: [], True: []}
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        with anyio.move_on_after(1, shield=True):
            while self._reap():  # noqa: ASYNC110 - nothing tells of a child's end but asking
                await anyio.sleep(0.005)
        for fd in self._engine_fds or ():
            os.close(fd)
        self._engine_fds = None

    async def _ask_zygote(self, fds: list[int]) -> bool:
        for _ in range(2):
            async with self._starting:
                if self._requests is None:
                    self._requests = await self._start_zygote()
                requests = self._requests
            if await _send(requests, fds):
                return True
            await self._bury(requests)
        return False

    async def _start_zygote(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(0)
        try:
            with theirs:
                await self._start("zygote", [theirs.fileno(), *(self._engine_fds or ())])
        except BaseException:
            ours.close()
            raise
        return ours

    async def _start(self, program: str, fds: list[int]) -> None:
        self._reap()
        start = partial(launch.start, program, fds, self._log)
        with anyio.CancelScope(shield=True):  # who is born is known, whoever still wants it
            self._children.add(await to_thread.run_sync(start))

    def _reap(self) -> bool:
        """Reap the dead; say if anybody started here still lives."""
        self._children = {pid for pid in self._children if not launch.reap(pid)}
        return bool(self._children)

    async def _bury(self, requests: socket.socket) -> None:
        async with self._starting:
            if self._requests is requests:
                requests.close()
                self._requests = None


def _own_pidfd() -> list[int]:
    """Return a descriptor that ends with this process; closed connections must do without one."""
    try:
        return [os.pidfd_open(os.getpid())]
    except OSError:
        return []


async def _send(requests: socket.socket, fds: list[int]) -> bool:
    """Hand over descriptors in one packet, all or nothing; False when the zygote is gone."""
    while True:
        try:
            socket.send_fds(requests, [b"k"], fds)
        except BlockingIOError:
            await anyio.wait_writable(requests)
        except OSError:
            return False
        else:
            return True


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
                # Whoever is cancelled in between could not end what its keeper has begun.
                with anyio.CancelScope(shield=True):
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
        """Release all attempts: leave them running, or end them and wait until they are dead.

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

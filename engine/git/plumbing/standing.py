"""Gits that stay and answer one question after another, so that a queue of landings starts none.

Knows how such a process is begun, asked and ended; what is asked it does not know. Nothing depends
on one: where none can be had, or one dies, there is no answer, and the caller starts its own git.
"""

import math
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Generic, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from engine.git.plumbing.loose import write_commits
from engine.git.plumbing.process import kill_group
from engine.git.plumbing.records import Records

_LONGEST = 4096
"""A longer question could fill the pipe while the answer fills the other one."""
_PROBE_S = 5.0
_PATIENCE_S = 120.0
_IDLE_S = 2.0
_ENDING_S = 1.0
_LOOK_AGAIN_S = 0.1
"""Seconds until a changed configuration is noticed, as a git just begun would notice it."""
_MOST = 1000
"""After so many answers a git begins anew: it keeps in memory whatever it has read."""
_DIED = (
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    OSError,
    ValueError,
)

P = TypeVar("P", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StandingKind:
    """A command that answers questions from its standard input.

    Attributes:
        since: The version of git that first answers such questions.
        flushes_since: The version of git that first sends off each answer at once. Older gits are
            run under `stdbuf`; whether that works is probed once.
        lends: The questions name commits made up for them, in a folder of ours.
        writes: It may leave a lock behind when killed.
        life_s: Maximum age in seconds: git asks for the time once, and dates reflogs by that.
    """

    words: tuple[str, ...]
    since: tuple[int, int] = (0, 0)
    flushes_since: tuple[int, int] = (0, 0)
    lends: bool = False
    writes: bool = False
    life_s: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Command:
    """A process to start: its words, its whole environment and its folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


@dataclass(kw_only=True)
class _Living:
    """A process; its times are the loop's: `compared` with how one would be started now."""

    process: Process
    said: BufferedByteReceiveStream
    command: Command
    since: float
    used: float
    compared: float
    asked: int = 0
    lent: Path | None = None
    mark: str | None = None


@dataclass
class _Slot:
    """The place of one process: it answers one at a time."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    living: _Living | None = None


class StandingGits(Generic[P]):
    """The standing gits of one repository; there are some only while `serve` runs."""

    def __init__(
        self,
        command: Callable[[StandingKind, P, Path | None], Awaitable[Command | None]],
        *,
        records: Records,
        common_dir: str,
        version: tuple[int, int],
    ) -> None:
        """`command` says how to start one; None where it would not answer at once."""
        self._command = command
        self._records = records
        self._common_dir = common_dir
        self._version = version
        self._slots: dict[tuple[StandingKind, P], _Slot] = {}
        self._deaf: set[StandingKind] = set()
        self._wanted: anyio.Event | None = None

    async def serve(self) -> None:
        """Let there be standing gits until this is cancelled; those that nobody asks are ended."""
        self._wanted = anyio.Event()
        try:
            while True:
                await self._wanted.wait()
                await anyio.sleep(_IDLE_S)
                await self._end_idle(since=anyio.current_time() - _IDLE_S)
                if not any(slot.living for slot in self._slots.values()):
                    self._wanted = anyio.Event()
        finally:
            self._wanted = None
            with anyio.CancelScope(shield=True):
                await self._end_all()

    async def _end_idle(self, *, since: float) -> None:
        for slot in list(self._slots.values()):
            if not slot.lock.statistics().locked:
                async with slot.lock:
                    if slot.living is not None and slot.living.used <= since:
                        await self._end(slot)

    async def _end_all(self) -> None:
        """End them, also those that are just asked: whoever asks learns that there is none."""
        for slot in self._slots.values():
            if slot.living is not None:
                kill_group(slot.living.process.pid)
            async with slot.lock:
                await self._end(slot)

    async def ask(
        self,
        kind: StandingKind,
        place: P,
        question: bytes,
        read: Callable[[BufferedByteReceiveStream], Awaitable[T]],
        *,
        lent: Mapping[str, bytes] | None = None,
    ) -> T | None:
        """Return what `read` makes of the answer; None where there is nobody to give one.

        Raises:
            TimeoutError: It took too long.
        """
        if self._wanted is None or len(question) > _LONGEST or kind in self._deaf:
            return None
        if self._version < kind.since:
            return None
        self._wanted.set()
        slot = self._slots.setdefault((kind, place), _Slot())
        async with slot.lock:
            if self._wanted is None:
                return None  # they have all been ended meanwhile
            try:
                return await self._asked(slot, (kind, place), question, (read, lent or {}))
            except _DIED:
                await self._end(slot, is_asked=True)
                return None
            except BaseException:
                # Cancelled half-way: the rest of this answer would be taken for the next one.
                await self._end(slot, is_asked=True)
                raise

    async def _asked(
        self,
        slot: _Slot,
        key: tuple[StandingKind, P],
        question: bytes,
        how: tuple[Callable[[BufferedByteReceiveStream], Awaitable[T]], Mapping[str, bytes]],
    ) -> T | None:
        read, lent = how
        living = await self._ready(slot, *key)
        if living is None or living.process.stdin is None:
            return None
        if living.lent is not None:
            await to_thread.run_sync(write_commits, living.lent, lent)
        is_first = living.asked == 0
        # A git that buffers its answers never sends the first: find that out soon, and once.
        with anyio.move_on_after(_PROBE_S if is_first else _PATIENCE_S):
            await living.process.stdin.send(question)
            answer = await read(living.said)
            living.asked += 1
            living.used = anyio.current_time()
            return answer
        if not is_first:
            raise TimeoutError
        self._deaf.add(key[0])
        await self._end(slot, is_asked=True)
        return None

    async def _ready(self, slot: _Slot, kind: StandingKind, place: P) -> _Living | None:
        """Return the living one, unless it is too old or would be started otherwise by now."""
        known = slot.living
        if known is not None:
            if await self._is_right(known, kind, place):
                return known
            await self._end(slot)
        slot.living = await self._begin(kind, place)
        return slot.living

    async def _is_right(self, known: _Living, kind: StandingKind, place: P) -> bool:
        now = anyio.current_time()
        if now - known.since > kind.life_s or known.asked >= _MOST:
            return False
        if now - known.compared > _LOOK_AGAIN_S:
            known.compared = now
            # Git reads its configuration at the start: one begun under another must not answer.
            return known.command == await self._command(kind, place, known.lent)
        return True

    async def _begin(self, kind: StandingKind, place: P) -> _Living | None:
        folder = mark = None
        with anyio.CancelScope(shield=True):  # in between, nobody would know of it
            try:
                folder = await to_thread.run_sync(self._folder) if kind.lends else None
                mark = await self._records.begin(kind.words) if kind.writes else None
                command = await self._command(kind, place, folder)
                if command is not None:
                    return await self._open(command, folder, mark)
            except BaseException:
                await self._tidy(folder, mark)
                raise
            await self._tidy(folder, mark)
        return None

    async def _open(self, command: Command, folder: Path | None, mark: str | None) -> _Living:
        process = await anyio.open_process(
            command.argv,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**command.env, self._records.VARIABLE: mark or self._records.READS},
            cwd=command.cwd,
            # A group of its own, so that killing it reaches the helpers that git starts.
            start_new_session=True,
        )
        if process.stdout is None:
            raise AssertionError("its answers were asked for")
        now = anyio.current_time()
        said = BufferedByteReceiveStream(process.stdout)
        return _Living(
            process=process,
            said=said,
            command=command,
            since=now,
            used=now,
            compared=now,
            lent=folder,
            mark=mark,
        )

    def _folder(self) -> Path:
        return Path(mkdtemp(prefix="scratch-", dir=self._records.folder))

    async def _end(self, slot: _Slot, *, is_asked: bool = False) -> None:
        """End one; while it is asked, whether it has died or has to, it may leave locks."""
        living, slot.living = slot.living, None
        if living is None:
            return
        process, mark = living.process, living.mark
        with anyio.CancelScope(shield=True):
            if is_asked and mark is not None and process.stdin is not None:
                with anyio.move_on_after(_ENDING_S):  # what it is about it may finish
                    await process.stdin.aclose()
                    await process.wait()
            if process.returncode is None:
                kill_group(process.pid)
            await process.aclose()
            was_killed = is_asked and (process.returncode or 0) < 0
            await self._tidy(living.lent, None if was_killed else mark)
            if was_killed and mark is not None:
                await self._records.end_killed(mark, self._common_dir)

    async def _tidy(self, folder: Path | None, mark: str | None) -> None:
        if mark is not None:
            await self._records.end(mark)
        if folder is not None:
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))

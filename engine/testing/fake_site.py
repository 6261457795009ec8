"""Fake a site: real git and real programs on this disk, with no keeper, no limits and no walls.

It needs no privilege and no mechanism of the kernel, so whatever is built on sites can be tried
wherever git is. What attempts write is recorded as keepers record it, so whoever reads cannot tell.
What it cannot do is not among its abilities, and is refused.
"""

import os
import signal
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, Process, TaskGroup

from engine.errors import HostLost, WorkspaceError
from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec, Capacity, Chunk, Frame, Stream
from engine.ids import AttemptId, RunId
from engine.keeper import files, recording
from engine.limits import Limits
from engine.phases import StopCause
from engine.private import private_folder
from engine.sandbox.machine import MachineSupport
from engine.site.local import LocalSite
from engine.site.place import Place
from engine.site.seam import Ability
from engine.site.shelter import Shelter

_BLOCK = 1 << 20
_SILENT_S = 1.0
"""A process that left the tree may hold a pipe open: nobody reads it longer than that."""
_STREAMS = (Stream.OUT, Stream.ERR, Stream.IN, Stream.NOTE)


@dataclass(eq=False)
class _Child:
    """One attempt that was started here."""

    spec: AttemptSpec
    folder: int
    recorder: recording.Recorder
    exit_file: files.ExitFile
    process: Process | None = None
    cause: StopCause | None = None
    end: AttemptExit | None = None
    sent: int = 0
    is_writing: anyio.Lock = field(default_factory=anyio.Lock)
    news: anyio.Event = field(default_factory=anyio.Event)

    def tell(self) -> None:
        """Wake whoever waits for news."""
        heard, self.news = self.news, anyio.Event()
        heard.set()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, if it lives."""
        if self.process is not None and self.end is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class FakeHost:
    """Runs attempts as children of this process; `run_dir` is for what ended before."""

    def __init__(self, run_dir: Path, tasks: TaskGroup) -> None:
        self._over = LocalHost(run_dir)
        self._tasks = tasks
        self._attempts: dict[AttemptId, _Child] = {}
        self._starting = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose(detach=False)

    async def start(self, spec: AttemptSpec) -> None:
        """Start the attempt, or find it already started."""
        # Whoever is cancelled in between could not end what has begun.
        async with self._starting:
            with anyio.CancelScope(shield=True):
                if spec.attempt in self._attempts or await self._over.attempts([spec.directory]):
                    return
                child = await anyio.to_thread.run_sync(_opened, spec)
                self._attempts[spec.attempt] = child
                why = "there are no terminals here" if spec.terminal else await self._begin(child)
                if why:
                    await self._finish(child, not_started=why)

    async def _begin(self, child: _Child) -> str:
        """Start its program; return why it could not be started."""
        spec = child.spec
        try:
            child.process = await anyio.open_process(
                spec.argv, cwd=spec.cwd, env=dict(spec.env), start_new_session=True
            )
        except OSError as error:
            return str(error)
        self._tasks.start_soon(self._live, child, child.process)
        if spec.first_input:
            await self.send(spec.attempt, 0, spec.first_input)
        if not spec.keeps_stdin:
            await self.send(spec.attempt, child.sent + 1, None)
        return ""

    async def _live(self, child: _Child, process: Process) -> None:
        # Whoever cancels all tasks at once still has to be told how it ended.
        with anyio.CancelScope(shield=True):
            await self._watch(child, process)

    async def _watch(self, child: _Child, process: Process) -> None:
        async with anyio.create_task_group() as reading:
            for number, stream in (
                (recording.OUT, process.stdout),
                (recording.ERR, process.stderr),
            ):
                if stream is not None:
                    reading.start_soon(self._record, child, number, stream)
            await process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            reading.cancel_scope.deadline = anyio.current_time() + _SILENT_S
        await self._finish(child)

    async def _record(self, child: _Child, number: int, stream: ByteReceiveStream) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            while True:
                data = await stream.receive(recording.MAX_DATA)
                await anyio.to_thread.run_sync(child.recorder.add, number, data)
                child.tell()

    async def _finish(self, child: _Child, *, not_started: str = "") -> None:
        code = child.process.returncode if child.process is not None else None
        size = child.recorder.size
        content = {
            "v": 1,
            "attempt": str(child.spec.attempt),
            "cause": child.cause,
            "exit_code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "not_started": not_started or None,
            "leader_end": size,
            "end": size,
        }
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_close, child, content)
            # Read back as anybody would: what is told is what is written.
            await self._over.attempts([child.spec.directory])
            child.end = (await self._over.read(child.spec.attempt, size)).end
        child.tell()

    async def go(self, attempt: AttemptId) -> None:
        """Refuse: nothing is started held."""
        raise WorkspaceError(f"{attempt} is not held")

    async def read(
        self, attempt: AttemptId, after_offset: int, *, wait: bool = True, is_focused: bool = False
    ) -> Chunk:
        """Return what was recorded after an offset; wait for more."""
        del is_focused
        child = self._attempts.get(attempt)
        if child is None or child.end is not None:
            return await self._over.read(attempt, after_offset, wait=wait)
        while True:
            news = child.news
            part = partial(_part, child.spec.directory, after_offset)
            frames, used = recording.parse(await anyio.to_thread.run_sync(part))
            if frames or not wait:
                told = tuple(Frame(at, _STREAMS[stream], data) for at, stream, data in frames)
                return Chunk(frames=told, next_offset=after_offset + used)
            if child.end is not None:
                return await self._over.read(attempt, after_offset)
            await news.wait()

    async def send(self, attempt: AttemptId, n: int, data: bytes | None) -> None:
        """Write to its stdin the n-th message (repeats are dropped); None closes stdin."""
        child = self._of(attempt)
        async with child.is_writing:
            if child.process is None or child.process.stdin is None or n < child.sent:
                return
            child.sent = n + 1
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                if data is None:
                    await child.process.stdin.aclose()
                else:
                    await child.process.stdin.send(data)
                    await anyio.to_thread.run_sync(child.recorder.add, recording.IN, data)

    async def interrupt(self, attempt: AttemptId) -> None:
        """Send SIGINT to the leader once."""
        process = self._of(attempt).process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGINT)

    async def freeze(self, attempt: AttemptId) -> None:
        """Stop the whole group where it stands."""
        self._of(attempt).signal(signal.SIGSTOP)

    async def thaw(self, attempt: AttemptId) -> None:
        """Let it go on."""
        self._of(attempt).signal(signal.SIGCONT)

    async def hold_clock(self, attempt: AttemptId, *, held: bool) -> None:
        """Do nothing: no clock runs here."""
        del held
        self._of(attempt)

    async def set_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Refuse: nothing limits an attempt here."""
        del limits
        raise WorkspaceError(f"nothing limits {attempt} here")

    async def resize(self, attempt: AttemptId, rows: int, columns: int) -> None:
        """Refuse: there are no terminals here."""
        del rows, columns
        raise WorkspaceError(f"{attempt} has no terminal here")

    async def cancel(
        self, attempt: AttemptId, cause: StopCause, *, grace_s: float | None = None
    ) -> None:
        """End the whole group: gracefully, or at once; the first cause is kept."""
        child = self._of(attempt)
        if child.end is not None:
            return
        child.cause = child.cause or cause
        child.signal(signal.SIGTERM)
        child.signal(signal.SIGCONT)
        with anyio.move_on_after(child.spec.grace_s if grace_s is None else grace_s):
            await self._until_end(child)
        child.signal(signal.SIGKILL)

    async def _until_end(self, child: _Child) -> None:
        while child.end is None:
            await child.news.wait()

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is held in memory for an attempt that has ended and been read."""
        child = self._attempts.get(attempt)
        if child is not None and child.end is not None:
            del self._attempts[attempt]
            await self._over.forget(attempt)

    async def attempts(self, directories: Sequence[str]) -> tuple[AttemptId, ...]:
        """Return the attempts recorded in these folders, living or ended."""
        living = [one.spec for one in self._attempts.values() if one.end is None]
        found = [spec.attempt for spec in living if spec.directory in directories]
        return (*found, *await self._over.attempts(directories))

    async def capacity(self) -> Capacity:
        """Return what this machine has to give now."""
        return await self._over.capacity()

    async def aclose(self, *, detach: bool, stay: Container[RunId] = ()) -> None:
        """End all attempts and wait until they are dead.

        Raises:
            WorkspaceError: One of them was to go on.
        """
        living = [one for one in self._attempts.values() if one.end is None]
        if any(detach or one.spec.attempt.run in stay for one in living):
            raise WorkspaceError("nothing that runs here outlives its engine")
        for child in living:
            await self.cancel(child.spec.attempt, StopCause.SHUTDOWN)
            await self._until_end(child)
        await self._over.aclose(detach=True)

    def _of(self, attempt: AttemptId) -> _Child:
        try:
            return self._attempts[attempt]
        except KeyError:
            raise HostLost(str(attempt), 0) from None


class FakeSite(LocalSite):
    """A site whose attempts are plain children of this process."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """Return the few things that plain children of a process allow."""
        return frozenset({Ability.FOLDERS, Ability.FREEZE})

    @classmethod
    @asynccontextmanager
    async def opened(cls, place: Place, environment: Mapping[str, str]) -> AsyncIterator[Self]:
        """Open the fake of a place; whatever runs there ends with it."""
        machine = MachineSupport(identity="fake", uid=os.getuid(), findings=())
        shelter = Shelter(
            machine=machine, layout=place.layout, project=place.project, environ=environment
        )
        async with (
            anyio.create_task_group() as tasks,
            FakeHost(place.layout.root, tasks) as host,
        ):
            yield cls(
                place,
                host=host,
                shelter=shelter,
                environment=environment,
                tethers=lambda _: True,
            )

    async def change_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Refuse: nothing limits an attempt here."""
        del limits
        raise WorkspaceError(f"nothing limits {attempt} here")


def _opened(spec: AttemptSpec) -> _Child:
    folder = files.open_directory(str(private_folder(Path(spec.directory))))
    return _Child(spec, folder, recording.Recorder(folder), files.ExitFile(folder))


def _close(child: _Child, content: dict[str, object]) -> None:
    child.exit_file.write(content)
    child.exit_file.close()
    child.recorder.close()
    os.close(child.folder)


def _part(directory: str, after: int) -> bytes:
    with Path(directory, recording.FILE).open("rb") as file:
        return os.pread(file.fileno(), _BLOCK, after)

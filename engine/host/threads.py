"""A Python function as an attempt: in a thread of this process, read and reported like any other.

What a keeper does for a process cannot be done for a thread: nothing confines it, nothing limits it
but time, and nothing ends it from outside. After a stop, the function's next call into plait
raises; until then it keeps running.
"""

import json
import os
import queue
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from engine.agents.call_program import CallContext, call, failure, result
from engine.agents.records import line_of
from engine.host.seam import AttemptExit, Chunk, Frame, Stream
from engine.keeper.recording import FILE, MAX_DATA, OUT, Recorder
from engine.limits import Dimension, Enforcement, Level, LimitHit, Limits
from engine.phases import StopCause
from engine.private import private_folder

REPORT = tuple(
    Enforcement(
        dimension=dimension,
        level=Level.SAMPLED if dimension is Dimension.TIME else Level.NONE,
        mechanism="clock" if dimension is Dimension.TIME else "thread",
        value="",
        reason="the function runs in a thread of the engine's own process",
        fix='Let it run in a process: execution_mode="process".',
    )
    for dimension in Dimension
)
"""The levels that hold for a function in a thread."""


class AttemptStopped(BaseException):
    """Raised within a function whose attempt is over; no `except Exception` holds it up."""


class ThreadHost:
    """One attempt in a thread, with what its watch and its engine ask of a host."""

    def __init__(self, function: Callable[[], tuple[Any, ...]], *, limits: Limits) -> None:
        """Nothing is begun yet.

        Args:
            function: Gives the function to call and the tools it may use.
            limits: Of which time alone is held.
        """
        self._find = function
        self._limits = limits
        self._token = current_token()
        self._frames: list[Frame] = []
        self._end: AttemptExit | None = None
        self._news = anyio.Event()
        self._over = threading.Event()
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._began = anyio.current_time()
        self._held_since: float | None = None
        self._held_s = 0.0

    def begin(self, about: dict[str, Any], folder: Path) -> None:
        """Call it; what it tells is recorded below `folder`, like an attempt's of a process."""
        work = threading.Thread(
            target=self._work, args=(about, folder), name=about["worker"], daemon=True
        )
        work.start()

    # ------------------------------------------------------------------ in the thread

    def _work(self, about: dict[str, Any], folder: Path) -> None:
        try:
            with closing(_recorder(folder)) as recorder:
                self._call(about, recorder)
            end = AttemptExit(exit_code=0)
        except OSError as error:
            end = AttemptExit(not_started=str(error))
        except BaseException:  # noqa: BLE001 - it was stopped, or wants to leave: both end it
            end = AttemptExit(exit_code=1)
        with suppress(AttemptStopped):
            self._in_loop(lambda: self._finish(end))

    def _call(self, about: dict[str, Any], recorder: Recorder) -> None:
        def tell(record: dict[str, Any]) -> None:
            self._may_go_on.wait()
            if self._over.is_set():
                raise AttemptStopped
            line = b"\n" + line_of(record)
            for start in range(0, len(line), MAX_DATA):
                recorder.add(OUT, line[start : start + MAX_DATA])
            self._in_loop(lambda: self._add(line))

        def ask(record: dict[str, Any]) -> str:
            tell(record)
            while (told := self._answers.get()) is not None:
                if told.get("id") == record["id"]:
                    return str(told.get("answer", ""))
            raise AttemptStopped

        try:
            function, *tools = self._find()
            last = result(call(function, CallContext(about, tell, ask, tuple(tools))))
        except Exception as error:  # noqa: BLE001 - whatever it raised is how this agent failed
            last = failure(error)
        tell(last)

    def _in_loop(self, act: Callable[[], None]) -> None:
        try:
            anyio.from_thread.run_sync(act, token=self._token)
        except anyio.RunFinishedError as error:
            raise AttemptStopped from error

    # ------------------------------------------------------------------ in the engine's loop

    def _add(self, data: bytes) -> None:
        at = anyio.current_time() - self._began
        self._frames.append(Frame(at_s=at, stream=Stream.OUT, data=data))
        self._tell_news()

    def _finish(self, end: AttemptExit) -> None:
        if self._end is None:
            self._end = end
            self._over.set()
            self._may_go_on.set()
            self._answers.put(None)
            self._tell_news()

    def _tell_news(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    @property
    def _worked_s(self) -> float:
        now = anyio.current_time()
        held = now - self._held_since if self._held_since is not None else 0.0
        return now - self._began - self._held_s - held

    async def read(
        self, attempt: object, after_offset: int, *, wait: bool = True, is_focused: bool = False
    ) -> Chunk:
        """Return what was reported after that many frames; the end once all has been read."""
        del attempt, is_focused
        while True:
            news = self._news
            frames = tuple(self._frames[after_offset:])
            if frames or self._end is not None or not wait:
                return Chunk(frames=frames, next_offset=len(self._frames), end=self._end)
            allowed = self._limits.time_seconds
            left = None if allowed is None else allowed - self._worked_s
            if allowed is not None and left is not None and left <= 0:
                self._run_out(allowed)
                continue
            is_held = self._held_since is not None
            with anyio.move_on_after(None if is_held else left):
                await news.wait()

    def _run_out(self, allowed: float) -> None:
        hit = LimitHit(dimension=Dimension.TIME, allowed=allowed, seen=self._worked_s, unit="s")
        self._finish(AttemptExit(cause=StopCause.TIMEOUT, limit=hit, wall_s=self._worked_s))

    async def send(self, attempt: object, n: int, data: bytes | None) -> None:
        """An answer to what it asked; a function hears nothing else."""
        del attempt, n
        if data is not None and (record := json.loads(data)).get("plait") == "answer":
            self._answers.put(record)

    async def cancel(
        self, attempt: object, cause: StopCause, *, grace_s: float | None = None
    ) -> None:
        """Hear of it no more; the first cause is kept."""
        del attempt, grace_s
        self._finish(AttemptExit(cause=cause, wall_s=self._worked_s))

    def release(self) -> None:
        """Nobody follows it any more."""
        self._finish(AttemptExit(cause=StopCause.SHUTDOWN))

    async def interrupt(self, attempt: object) -> None:
        """A thread hears no signal."""
        del attempt

    async def freeze(self, attempt: object) -> None:
        """Hold it up at the next thing that it tells."""
        self._may_go_on.clear()
        await self.hold_clock(attempt, held=True)

    async def thaw(self, attempt: object) -> None:
        """Let it go on."""
        self._may_go_on.set()
        await self.hold_clock(attempt, held=False)

    async def hold_clock(self, attempt: object, *, held: bool) -> None:
        """Stop or restart its time limit."""
        del attempt
        now = anyio.current_time()
        if held and self._held_since is None:
            self._held_since = now
        elif not held and self._held_since is not None:
            self._held_s += now - self._held_since
            self._held_since = None
        self._tell_news()

    async def set_limits(self, attempt: object, limits: Limits) -> None:
        """Another time limit from now on."""
        del attempt
        self._limits = limits
        self._tell_news()


def was_begun(folder: Path) -> bool:
    """Say if an attempt was begun here by an engine that is gone: the attempt is gone with it."""
    return (folder / FILE).exists()


def _recorder(folder: Path) -> Recorder:
    private_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return Recorder(descriptor)
    finally:
        os.close(descriptor)

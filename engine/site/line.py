"""Hold a conversation with the far half of a site, and begin it anew when its child dies."""

import os
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import Process, TaskGroup

from engine.beneath import remove_tree
from engine.errors import SiteGone, SiteSilent, WorkspaceError
from engine.patterns.background import Background
from engine.private import private_folder
from engine.site.far import Far, Opening
from engine.site.wire import Message, Pipe, answered, ask

NAME = "child"
P = ParamSpec("P")
T = TypeVar("T")
_TRIES = 4
_GONE_S = 15.0
"""For so long nobody looks again for what could not be reached: each look costs seconds."""
_SILENT_S = 4.0
"""The same for what only does not answer now."""
_AGAIN_S = 0.5


@dataclass(eq=False)
class _Waiting:
    """A call that waits for its answer; None where the child died before it came."""

    pipe: Pipe
    done: anyio.Event = field(default_factory=anyio.Event)
    said: Message | None = None


@dataclass(frozen=True, kw_only=True)
class Start:
    """The way a child is started.

    Attributes:
        keeps: Names of variables of ours that it needs.
        name: The name of its site.
        check: Refuses where none can be started.
    """

    words: Sequence[str] = (sys.executable, "-m", "engine.site.far")
    keeps: Sequence[str] = ()
    name: str = NAME
    check: Callable[[], None] = lambda: None


class Line:
    """The conversation with a far half, begun anew with another child when one dies.

    Attributes:
        name: The name of the site.
        births: How many children there have been.
        patience: Tells after how many seconds of silence the far half has ended itself.
        heard_silence: Hears why nothing answers, and None once something does.
    """

    def __init__(
        self,
        opening: Opening,
        tasks: TaskGroup,
        start: Start,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Begin with no child; its environment is that of the opening unless it is given."""
        self._environ = opening.environment if environment is None else environment
        self.opening = opening
        self.name = start.name
        self._tasks = Background(tasks)
        self._start = start
        self._pipe: Pipe | None = None
        self.process: Process | None = None
        self._beginning = anyio.Lock()
        self._calls: dict[int, _Waiting] = {}
        self._last = 0
        self._life = ""
        self._gone: tuple[float, SiteGone | SiteSilent | None] = (0.0, None)
        self._silent_since: float | None = None
        self.patience: Callable[[], float] = lambda: 0.0
        self.heard_silence: Callable[[SiteSilent | None], None] = lambda _why: None
        self._standing: dict[Hashable, tuple[Callable[..., Any], Message]] = {}
        self.births = 0
        self.is_closed = False

    @property
    def is_open(self) -> bool:
        """Return whether a child listens now."""
        return self._pipe is not None and not self.is_closed

    async def call(
        self,
        act: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Call a function of the far half; ask once more where a child died over it.

        Raises:
            WorkspaceError: No child lives long enough to answer.
        """
        message = ask(act, args, named)
        for _ in range(_TRIES):
            pipe = await self._ready()
            said = None if pipe is None else await self._told(pipe, message)
            if said is not None:
                value: T = answered(act, said)
                return value
            if self._pipe is pipe:
                self._pipe = None
        raise WorkspaceError(
            f"the site {self.name!r} does not answer", hint=f"Its log is {self._log}."
        )

    async def insist(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do what calls the far half, again and again while it only does not answer.

        Raises:
            SiteGone: It is gone, or was silent for so long that it has ended itself.
        """
        while True:
            try:
                return await act()
            except SiteSilent:
                await anyio.sleep(_AGAIN_S)

    async def tell_each(
        self,
        subject: Hashable,
        act: Callable[Concatenate[Any, P], Coroutine[Any, Any, object]],
        *args: P.args,
        **named: P.kwargs,
    ) -> None:
        """Call a function of this child, and of each that follows before it hears anything else.

        A call of the same subject takes the place of an earlier one.
        """
        self._standing[subject] = (act, ask(act, args, named))
        await self.call(act, *args, **named)

    async def has_lived(self) -> bool:
        """Return whether there was ever a child here, of this engine or an earlier one."""
        return await anyio.Path(self.opening.home).exists()

    async def _told(self, pipe: Pipe, message: Message) -> Message | None:
        self._last += 1
        number, waiting = self._last, _Waiting(pipe)
        self._calls[number] = waiting
        is_sent = False
        try:
            is_sent = await pipe.send({**message.head, "n": number}, message.blob)
            if not is_sent:
                return None
            await waiting.done.wait()
        except BaseException:
            if not is_sent:  # nobody would answer: the call was cancelled while it waited its turn
                raise
            with anyio.CancelScope(shield=True):  # what was begun there comes to its end first
                if await pipe.send({"n": number}):
                    await waiting.done.wait()
            raise
        finally:
            del self._calls[number]
        return waiting.said

    async def _ready(self) -> Pipe | None:
        """Return the pipe to a child that lives; None where it died before it could hear."""
        async with self._beginning:
            if self._pipe is None:
                if self.is_closed:
                    raise WorkspaceError(f"the site {self.name!r} is closed")
                since, gone = self._gone
                pause = _SILENT_S if isinstance(gone, SiteSilent) else _GONE_S
                if gone is not None and time.monotonic() - since < pause:
                    raise type(gone)(str(gone), hint=gone.hint)
                try:
                    self._pipe = await self._begin()
                except (SiteGone, SiteSilent) as error:
                    gone = self._judged(error)
                    self._gone = time.monotonic(), gone
                    raise gone from error
                self._silent_since = None
                self.heard_silence(None)
            return self._pipe

    def _judged(self, error: SiteGone | SiteSilent) -> SiteGone | SiteSilent:
        """Return what no answer comes to: what is silent for long enough is gone."""
        if isinstance(error, SiteSilent):
            self._silent_since = self._silent_since or time.monotonic()
            if time.monotonic() - self._silent_since <= self.patience():
                self.heard_silence(error)
                return error
            said = f"{error}; the lease of its agents has ended"
            error = SiteGone(said, hint=error.hint)
        self.heard_silence(None)
        return error

    async def _begin(self) -> Pipe | None:
        await anyio.to_thread.run_sync(self._start.check)
        ours, theirs = socket.socketpair()
        pipe = Pipe(ours)
        try:
            await anyio.to_thread.run_sync(private_folder, self.opening.home)
            with theirs:
                self.process = await self._start_child(theirs)
            # Every call that waits learns that nobody answers any more.
            self._tasks.start_soon(self._listen, pipe, self.process, failed=None)
            opening = (Far.open, ask(Far.open, [self.opening], {}))
            for act, message in (opening, *self._standing.values()):
                said = await self._told(pipe, message)
                if said is None:
                    pipe.close()
                    return None
                value = answered(act, said)
                if act is Far.open and value != self._life:
                    self._life = value
                    self.births += 1
        except BaseException:
            pipe.close()  # the child ends by that
            raise
        return pipe

    async def _start_child(self, end: socket.socket) -> Process:
        with await anyio.to_thread.run_sync(partial(self._log.open, "ab")) as said:
            return await anyio.open_process(
                [*self._start.words, str(self.opening.home)],  # for people: it reads no argument
                stdin=end.fileno(),
                stdout=said,
                stderr=said,
                cwd=self.opening.home,
                env=self._environment(),
                start_new_session=True,
            )

    @property
    def _log(self) -> Path:
        return self.opening.home / "far.log"

    def _environment(self) -> dict[str, str]:
        env = self._environ
        names = ("PATH", "HOME", "TMPDIR", *self._start.keeps)
        kept = {name: env[name] for name in names if name in env}
        return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    async def _listen(self, pipe: Pipe, process: Process) -> None:
        try:
            while (message := await pipe.receive()) is not None:
                waiting = self._calls.get(message.head["n"])
                if waiting is not None:
                    waiting.said = message
                    waiting.done.set()
        finally:  # nobody waits for an answer that nobody hears
            if self._pipe is pipe:
                self._pipe = None
            pipe.close()
            for waiting in [one for one in self._calls.values() if one.pipe is pipe]:
                waiting.done.set()
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await process.wait()

    async def close(self) -> None:
        """Hang up; the child ends by that."""
        self.is_closed = True
        await self._hang_up()

    async def rest(self) -> None:
        """End a far half on which nothing lives and nothing is asked; the next call begins one."""
        async with self._beginning:
            if self._pipe is None or self._calls:
                return
            message = ask(Far.close, [], {"detach": True, "stay": ()})
            said = await self._told(self._pipe, message)
            if said is not None and said.head.get("value") is True:
                await self._hang_up()
                self._pipe = None

    async def leave(self) -> None:
        """Hang up, and remove all that the child has kept; the next call begins with nothing."""
        if self.opening.key:
            await self.call(Far.remove)
        async with self._beginning:
            await self._hang_up()
            self._pipe = None
            await anyio.to_thread.run_sync(remove_tree, self.opening.home)

    async def _hang_up(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self.process is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(10):
                await self.process.wait()

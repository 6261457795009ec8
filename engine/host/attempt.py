"""One attempt as this machine's host knows it, kept current by whoever waits for its news.

No task of its own listens: the first that waits reads the connection, the others wait for it. So
nothing runs for an attempt that nobody asks about, and nothing must be shut down.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from engine.errors import HostLost
from engine.host.link import Link, connect
from engine.host.records import exit_of, usage_of
from engine.host.seam import AttemptExit, Chunk, Frame, Stream
from engine.ids import AttemptId
from engine.keeper import files, recording, strays
from engine.limits import Usage

T = TypeVar("T")

_BLOCK, _LARGE_BLOCK = 1 << 18, 1 << 20
_STREAMS = (Stream.OUT, Stream.ERR, Stream.IN, Stream.NOTE)
_NONE: tuple[Frame, ...] = ()
_LEAVES_NO_FRAME = frozenset({"usage", "clogged"})
"""Not `pong`: what was written before a command was carried out is to be seen once it has been."""
_UNDECIDED_S = 10.0
_AGAIN_S = 0.005


class LocalAttempt:
    """One attempt: its connection while it lives, its recording, its end."""

    def __init__(self, attempt: AttemptId, directory: str, *, is_tethered: bool = False) -> None:
        self.attempt, self.directory, self.is_tethered = attempt, directory, is_tethered
        self.end: AttemptExit | None = None
        self._link: Link | None = None
        self._born: Link | None = None  # the connection on which its keeper was asked to run it
        self._size = 0
        self._usage: Usage | None = None
        self._sent_n = -1
        self._pings = 0
        self._ponged = 0
        self._is_focused = False
        self._is_listening = False
        self._heard = 0  # how many messages that may stand for frames
        self._read_to = -1  # up to there it was read, and nothing has come since
        self._is_clogged = False
        self._is_keeper_free = False
        self._is_fresh = False  # something has come that is no frame and that nobody has read
        self._news = anyio.Event()
        self._recording_fd = -1
        self._finding, self._opening = anyio.Lock(), anyio.Lock()

    def begin(self, link: Link, messages: list[dict[str, Any]]) -> None:
        """Take over the connection on which its keeper has said that it runs it."""
        self._born = link
        self._greet(link, messages)
        if self._heard == 1 and self._size <= recording.NOTHING_YET:
            self._read_to = 0  # that it began is read with the first thing that it says

    def _greet(self, link: Link, messages: list[dict[str, Any]]) -> None:
        self._link = link
        self._is_focused = False
        for message in messages:
            self._hear(message)

    def fail(self, why: str) -> None:
        """It could not be started at all."""
        self.end = AttemptExit(not_started=why)

    async def read(self, offset: int, *, wait: bool, is_focused: bool) -> Chunk:
        """Return what was recorded after an offset, waiting for news if there is none yet."""
        await self._focus(is_focused=is_focused)
        while True:
            end = self.end
            if end is None and offset == self._read_to:  # it only told what it uses, or the like
                frames, following = _NONE, offset
            else:
                frames, following = await self._frames(offset)
            is_all = end is not None and (not frames or following >= self._size)
            if frames or is_all or self._is_fresh or not wait:
                self._is_fresh = False
                return Chunk(
                    frames=frames,
                    next_offset=following,
                    usage=self._usage,
                    is_clogged=self._is_clogged,
                    end=end if is_all else None,
                )
            await self.news()

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a command; returns when the keeper has carried it out, or the attempt has ended."""
        self._pings += 1
        n = self._pings
        await self._insist(message, {"do": "ping", "n": n}, lambda: self._ponged >= n)

    async def send(self, n: int, data: bytes | None) -> None:
        """Write the n-th message to stdin; returns when the agent's pipe has taken all of it."""
        text = None if data is None else data.decode("latin-1")
        message = {"do": "stdin", "n": n, "data": text}
        await self._insist(message, None, lambda: self._sent_n >= n)

    async def wait_end(self) -> AttemptExit:
        """Wait until it has ended; return how."""
        while self.end is None:
            await self.news()
        return self.end

    async def news(self) -> None:
        """Wait until something is known that was not known before."""
        if self._is_listening:
            await self._news.wait()
            return
        self._is_listening = True
        try:
            if self._link is None:
                await self._linked()
            else:
                await self._listen(self._link)
        finally:
            self._is_listening = False
            heard, self._news = self._news, anyio.Event()
            heard.set()

    def free_keeper(self) -> Link | None:
        """The connection to its keeper, given up, if that waits for another attempt."""
        link = self._link
        if self._is_keeper_free and link is not None and link is self._born:
            self._link = None
            return link
        return None

    def close(self) -> None:
        """Release it, whatever it does."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._recording_fd >= 0:
            os.close(self._recording_fd)
            self._recording_fd = -1

    async def _insist(
        self, message: dict[str, Any], mark: dict[str, Any] | None, is_done: Callable[[], bool]
    ) -> None:
        told: Link | None = None
        while self.end is None and not is_done():
            link = await self._linked()
            if link is None:
                continue
            if link is not told:  # a new connection may not have heard it; repeats are harmless
                told = link
                await link.send(message)
                if mark is not None:
                    await link.send(mark)
                continue
            await self.news()

    async def _listen(self, link: Link) -> None:
        messages = await link.receive()
        if messages is None:
            link.close()
            if self._link is link:
                self._link = None
            if self.end is None:
                await self._linked()
            return
        for message in messages:
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("say") not in _LEAVES_NO_FRAME:
            self._read_to = -1
            self._heard += 1
        match message.get("say"):
            case "hello" | "out":
                self._size = max(self._size, message["n"])
            case "usage":
                self._usage = usage_of(message["usage"])
                self._is_fresh = True
            case "clogged":
                self._is_clogged, self._is_fresh = message["on"], True
            case "sent":
                self._sent_n = max(self._sent_n, message["n"])
            case "pong":
                self._ponged = max(self._ponged, message["n"])
            case "exited":
                self._is_keeper_free = message.get("is_free", False)
                self._ended(message["exit"])
            case _:
                return  # an older or newer keeper may say what is not needed here

    def _ended(self, content: dict[str, Any]) -> None:
        self.end = exit_of(content)
        self._size = max(self._size, content.get("end", 0))
        self._usage = self.end.usage

    async def _linked(self) -> Link | None:
        """The connection to its keeper; None when it has ended, which is then known."""
        async with self._finding:
            with anyio.move_on_after(_UNDECIDED_S):
                while self._link is None and self.end is None:
                    await self._find()
            if self._link is None and self.end is None:
                raise HostLost(str(self.attempt), self._size)
        return self._link

    async def _find(self) -> None:
        # Connect before reading the file: a keeper that ends in between leaves the file behind,
        # but one that is read about first and then gone would look as if it had been killed.
        connection = await self._in_thread(partial(connect, self.directory))
        if connection is not None:
            link = Link(connection)
            messages = await link.receive()
            if messages is not None:
                self._greet(link, messages)
                return
            link.close()
        content = await self._in_thread(partial(_look, self.directory))
        if content is not None:
            self._ended(content)
        else:  # about to listen, or about to end
            await anyio.sleep(_AGAIN_S)

    async def _frames(self, offset: int) -> tuple[tuple[Frame, ...], int]:
        heard = self._heard
        frames, following = await self._read_frames(offset)
        if not frames and heard == self._heard and self._recording_fd >= 0:
            self._read_to = offset
        return frames, following

    async def _read_frames(self, offset: int) -> tuple[tuple[Frame, ...], int]:
        if self._recording_fd < 0:
            async with self._opening:  # two readers that both open it would leak one
                if self._recording_fd < 0:
                    begin = partial(_open_and_read, self.directory, offset)
                    self._recording_fd, found = await self._in_thread(begin)
                    return found
        try:  # what was written lately is in memory: then a thread would cost more than the read
            return _read_frames(self._recording_fd, offset, _BLOCK, os.RWF_NOWAIT)
        except OSError:
            read = partial(_read_frames, self._recording_fd, offset, _LARGE_BLOCK, 0)
            return await self._in_thread(read)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await to_thread.run_sync(work)
        except OSError as lost:
            raise HostLost(str(self.attempt), self._size) from lost

    async def _focus(self, *, is_focused: bool) -> None:
        if is_focused != self._is_focused and self.end is None:
            link = await self._linked()
            if link is not None:
                self._is_focused = is_focused
                await link.send({"do": "focus", "on": is_focused})


def _look(directory: str) -> dict[str, Any] | None:
    """Return how it ended, written here if its keeper was killed; None while a keeper lives."""
    fd = files.open_directory(directory)
    try:
        return files.load(fd, files.EXIT) or strays.end_lost(fd)
    finally:
        os.close(fd)


def _read_frames(fd: int, offset: int, size: int, flags: int) -> tuple[tuple[Frame, ...], int]:
    block = bytearray(size)
    count = os.preadv(fd, [block], offset, flags)
    frames, used = recording.parse(memoryview(block)[:count])
    told = tuple(Frame(at, _STREAMS[stream], data) for at, stream, data in frames)
    return told, offset + used


def _open_and_read(directory: str, offset: int) -> tuple[int, tuple[tuple[Frame, ...], int]]:
    """The recording, and what stands in it behind an offset."""
    fd = _open_recording(directory)
    if fd < 0:
        return fd, ((), offset)
    try:
        return fd, _read_frames(fd, offset, _BLOCK, 0)
    except BaseException:
        os.close(fd)
        raise


def _open_recording(directory: str) -> int:
    """The recording; -1 while its keeper has not come so far, or where nothing could be made."""
    try:
        fd = files.open_directory(directory)
    except (FileNotFoundError, NotADirectoryError):
        return -1
    try:
        return os.open(recording.FILE, os.O_RDONLY | os.O_CLOEXEC, dir_fd=fd)
    except FileNotFoundError:
        return -1
    finally:
        os.close(fd)

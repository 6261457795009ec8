"""A program in a terminal of this console: started, fed, read and ended here.

Whatever it writes stays in the terminal's cells. It ends with the console: its terminal is closed
then, and what holds it in is tied to the process that started it.
"""

import fcntl
import os
import pty
import select
import signal as signals
import struct
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread

from engine.messages.results import Entrance
from engine.terminal.signals import SignalKind
from engine.terminal.terminal import Terminal

_OPENS = ("/bin/sh", "-c", 'tty=$1; shift; exec "$@" <>"$tty" >&0 2>&1', "sh")
"""Opens the terminal that it is told first, which becomes its own, and runs the rest in it."""
_READ = 1 << 16
_FLOOD, _MOST = 1 << 13, 1 << 22
_LONGEST_GATHER_S = 0.1
_MORE_MS = 2
_PAUSE_S = 1 / 60
_MOST_UNREAD = 1 << 20
_GRACE_S = 1.0
_SHELLS = ("bash", "sh")


def shell_words() -> list[str]:
    """Return the user's own shell where the sandbox has it too, else one that every machine has."""
    tries = " || ".join(f"exec {name} -i" for name in _SHELLS)
    return ["sh", "-c", f'command -v "$SHELL" >/dev/null && exec "$SHELL" -i; {tries}']


class Shell:
    """One program and its terminal; `changed` hears of all it draws, `told` of its notices.

    Attributes:
        terminal: What it has drawn.
        ended: How it ended, in words; empty while it runs.
        is_well: It ended by itself, and well.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        *,
        rows: int,
        columns: int,
        told: Callable[[str], object] = str,
    ) -> None:
        self.terminal = Terminal(rows, columns)
        self.ended = ""
        self.is_well = False
        self._changed = changed
        self._told = told
        self._master = -1
        self._unread = bytearray()
        self._has_unread = anyio.Event()
        self._scope = anyio.CancelScope()
        self._woken = self._wakes = -1

    async def run(self, entrance: Entrance, program: Sequence[str]) -> None:
        """Run the program to its end; cancelling this ends it, and all that it started."""
        self._master, slave = pty.openpty()
        self._woken, self._wakes = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(self._master, False)
            self._tell_size()
            process = await anyio.open_process(
                [*_OPENS, os.ttyname(slave), *entrance.argv, *program],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=entrance.folder,
                env=entrance.env | {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
                start_new_session=True,
            )
        except OSError as error:
            self.ended = f"could not be started: {error.strerror}"
            self._close()
            return
        finally:
            os.close(slave)
        try:
            await self._live(process)
        finally:
            await self._bury(process)
            self._changed()

    async def _live(self, process: anyio.abc.Process) -> None:
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                tasks.start_soon(self._read)
                await process.wait()
                tasks.cancel_scope.cancel()
            if rest := self._gather():  # no more than that: whoever it left behind may write on
                await self._draw(rest)

    async def _bury(self, process: anyio.abc.Process) -> None:
        """Hang up, so that everything in the terminal ends, and wait until the program is dead."""
        with anyio.CancelScope(shield=True):
            group = self._foreground()  # once the shell is dead, its terminal does not say any more
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signals.SIGHUP)
                with anyio.move_on_after(_GRACE_S):
                    await process.wait()
            _kill(group, session=process.pid)
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self._close()
        self.is_well = process.returncode == 0
        self.ended = _words(process.returncode or 0)

    def _foreground(self) -> int:
        """Return the group of processes that has the terminal; 0 if none has."""
        with suppress(OSError):
            return os.tcgetpgrp(self._master)
        return 0

    def _close(self) -> None:
        """Close the terminal: whoever is still in it gets a hangup."""
        for fd in (self._master, self._woken, self._wakes):
            os.close(fd)
        self._master = -1

    def write(self, data: bytes) -> None:
        """Type into it; what it does not read for too long is dropped."""
        if len(self._unread) + len(data) <= _MOST_UNREAD:
            self._unread += data
            self._has_unread.set()

    def resize(self, rows: int, columns: int) -> None:
        """Give it another size."""
        self.terminal.resize(rows, columns)
        if self._master >= 0:
            self._tell_size()

    def end(self) -> None:
        """End the program, and all that it started."""
        self._scope.cancel()

    def _tell_size(self) -> None:
        grid = self.terminal.grid
        size = struct.pack("HHHH", grid.rows, grid.columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    async def _write(self) -> None:
        while True:
            while self._unread:
                await anyio.wait_writable(self._master)
                with suppress(BlockingIOError):
                    sent = os.write(self._master, self._unread[:_READ])
                    del self._unread[:sent]
            self._has_unread = anyio.Event()
            await self._has_unread.wait()

    async def _read(self) -> None:
        """Draw what the program writes; a thread waits for it, so that a flood comes in large."""
        read = partial(anyio.to_thread.run_sync, self._drain, limiter=anyio.CapacityLimiter(1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._wake_when_cancelled)
            await read()
            tasks.cancel_scope.cancel()

    async def _wake_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            os.write(self._wakes, b"w")

    def _drain(self) -> None:
        """In a thread: read until nobody has the terminal open any more, or somebody wakes it."""
        waiting = select.poll()
        waiting.register(self._master, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        while all(fd != self._woken for fd, _ in waiting.poll()):
            data = self._gather()
            if not data:
                return
            anyio.from_thread.run(self._draw, data)

    def _gather(self) -> bytes:
        """Return what has come; of a flood as much as comes in a moment."""
        data, deadline = bytearray(), monotonic() + _LONGEST_GATHER_S
        more = select.poll()
        more.register(self._master, select.POLLIN)
        while len(data) < _MOST:
            try:
                data += os.read(self._master, _READ)
            except BlockingIOError:
                if len(data) < _FLOOD or monotonic() > deadline or not more.poll(_MORE_MS):
                    break
            except OSError:  # nobody has the terminal open any more
                break
        return bytes(data)

    async def _draw(self, data: bytes) -> None:
        self.terminal.feed(data)
        self.write(self.terminal.take_replies())
        for signal in self.terminal.take_signals():
            if signal.kind is SignalKind.NOTICE:
                self._told(signal.text)
        self._changed()
        if len(data) >= _FLOOD:
            await anyio.sleep(_PAUSE_S)


def _words(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _kill(group: int, *, session: int) -> None:
    """Kill a group that is still of a session: it may hang, and heed no hang-up."""
    with suppress(OSError):
        if group > 1 and os.getsid(group) == session:
            os.killpg(group, signals.SIGKILL)

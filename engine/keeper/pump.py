"""Moves bytes: the agent's output into the recording, input into its stdin.

Output is read until nothing more is there, or the cap is met; what comes after the cap is counted
and dropped, so that an agent that must still be asked to end is not stuck on a full pipe.
"""

from __future__ import annotations

import os
import select
import time
from functools import partial

from engine.keeper import recording, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.keeper.loop import Loop
    from engine.keeper.recording import Recorder
    from engine.keeper.spawn import Stdio

_READS_A_PASS = 8  # then the others get their turn
_LARGEST_PIPE = 1 << 20
_RETRY_S = 0.1
_IN_EVENTS = select.POLLIN | select.POLLHUP | select.POLLERR
_END_OF_FILE_KEY = b"\x04"


class Pump:
    """Everything that flows between one agent and its recording."""

    def __init__(self, loop: Loop, stdio: Stdio, recorder: Recorder) -> None:
        self._loop, self._stdio, self._recorder = loop, stdio, recorder
        self._open = {fd: stream for fd, stream in _outputs(stdio) if fd >= 0}
        self._input = bytearray()
        self._acknowledged: list[tuple[int, int]] = []  # (n, input bytes that must leave first)
        self._is_input_ending = False
        self._has_input = True
        self.cap: int | None = None
        self.output_bytes = 0
        self.lost_bytes = 0
        self.last_error = b""
        self.on_output: Callable[[], None] = _ignore
        self.on_cap: Callable[[], None] = _ignore
        self.on_clog: Callable[[bool], None] = _ignore
        self.on_sent: Callable[[int], None] = _ignore
        self._listen()

    @property
    def is_at_end(self) -> bool:
        """Every writer has released the output."""
        return not self._open

    @property
    def is_truncated(self) -> bool:
        """The cap was met."""
        return self.lost_bytes > 0

    def drain(self) -> None:
        """Read until nothing is there: all that was written before this call is recorded."""
        for fd in list(self._open):
            left = _LARGEST_PIPE  # whoever still writes could keep us here forever
            while left > 0 and (count := self._read_once(fd)):
                left -= count

    def drain_to_end(self, at_most_s: float) -> bool:
        """Read until every writer has closed it; False when somebody foreign still holds on."""
        deadline = time.monotonic() + at_most_s
        while self._open and time.monotonic() < deadline:
            if self._recorder.is_clogged:
                self._retry()
            self._loop.turn(min(_RETRY_S, max(0.0, deadline - time.monotonic())))
        return self.is_at_end

    def close(self) -> None:
        """Stop watching; nothing is read or written after this."""
        for fd in list(self._open):
            self._end(fd)
        self._close_input()

    def send(self, n: int, data: bytes) -> None:
        """Queue bytes for stdin; `on_sent` is called with n when the last has gone."""
        self._input += data
        self._acknowledged.append((n, len(self._input)))
        self._flush()

    def end_input(self) -> None:
        """Close stdin once everything queued has gone."""
        self._is_input_ending = True
        self._flush()

    def resize(self, rows: int, columns: int) -> None:
        """Tell a terminal its size."""
        if self._stdio.terminal_name and self._has_input:
            spawn.set_size(self._stdio.stdin, rows, columns)

    def _listen(self) -> None:
        for fd in self._open:
            self._loop.watch(fd, _IN_EVENTS, partial(self._readable, fd))

    def _readable(self, fd: int, _events: int) -> None:
        for _ in range(_READS_A_PASS):
            if self._read_once(fd) < recording.MAX_DATA:
                break

    def _read_once(self, fd: int) -> int:
        if self._recorder.is_clogged or fd not in self._open:
            return 0
        try:
            data = os.read(fd, recording.MAX_DATA)
        except BlockingIOError:
            return 0
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if not data:
            self._end(fd)
            return 0
        self._record(self._open[fd], data)
        return len(data)

    def _record(self, stream: int, data: bytes) -> None:
        self.output_bytes += len(data)
        if stream == recording.ERR or self._stdio.terminal_name:
            self.last_error = (self.last_error + data)[-500:]
        over = self.output_bytes - self.cap if self.cap is not None else 0
        kept = data[: max(0, len(data) - over)] if over > 0 else data
        if kept:
            self._recorder.add(stream, kept)
        was_truncated, self.lost_bytes = self.is_truncated, self.lost_bytes + len(data) - len(kept)
        if self.is_truncated and not was_truncated:
            self._recorder.add(recording.NOTE, recording.TRUNCATED)
            self.on_cap()
        if self._recorder.is_clogged:
            self._clog()
        self.on_output()

    def _clog(self) -> None:
        for fd in self._open:
            self._loop.unwatch(fd)
        self._loop.after("clogged", _RETRY_S, self._retry)
        self.on_clog(True)  # noqa: FBT003 - a callback has no keywords

    def _retry(self) -> None:
        if not self._recorder.retry():
            self._loop.after("clogged", _RETRY_S, self._retry)
            return
        self._loop.cancel("clogged")
        self._listen()
        self.on_clog(False)  # noqa: FBT003 - a callback has no keywords
        self.on_output()

    def _flush(self) -> None:
        while self._input and self._has_input:
            try:
                sent = os.write(self._stdio.stdin, self._input[: recording.MAX_DATA])
            except BlockingIOError:
                self._loop.watch(self._stdio.stdin, select.POLLOUT, lambda _: self._flush())
                return
            except OSError:  # the agent has closed it; what it will not read is dropped
                self._close_input()
                break
            self._recorder.add(recording.IN, bytes(self._input[:sent]))
            del self._input[:sent]
            self._acknowledged = [(n, left - sent) for n, left in self._acknowledged]
            self.on_output()
        self._loop.unwatch(self._stdio.stdin)
        self._acknowledge()
        if self._is_input_ending and self._has_input:
            self._finish_input()

    def _acknowledge(self) -> None:
        gone = [n for n, left in self._acknowledged if left <= 0 or not self._has_input]
        del self._acknowledged[: len(gone)]
        for n in gone:
            self.on_sent(n)

    def _finish_input(self) -> None:
        if self._stdio.terminal_name:  # closing a terminal would hang up; its user presses ^D
            self._is_input_ending = False
            try:
                os.write(self._stdio.stdin, _END_OF_FILE_KEY)
            except OSError:
                self._close_input()
        else:
            self._close_input()

    def _close_input(self) -> None:
        self._input.clear()
        if self._has_input:
            self._has_input = False
            self._loop.unwatch(self._stdio.stdin)
            os.close(self._stdio.stdin)

    def _end(self, fd: int) -> None:
        self._loop.unwatch(fd)
        del self._open[fd]
        os.close(fd)


def _outputs(stdio: Stdio) -> tuple[tuple[int, int], ...]:
    return ((stdio.stdout, recording.OUT), (stdio.stderr, recording.ERR))


def _ignore(*_: object) -> None:
    """Nobody listens."""

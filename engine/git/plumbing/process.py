"""One child process, from its start to the end of its whole group.

Knows nothing of git: bytes in, bytes out, a deadline, and no child left when the caller is
cancelled.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio
from anyio.abc import ByteReceiveStream, Process

_STDERR_KEPT = 1 << 20


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of a process and its output; `is_cut` if it was killed for writing too much."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False


class _Reader:
    """Collects what a stream delivers; past the limit it says so once and throws the rest away."""

    def __init__(self, limit: int, when_full: Callable[[], None]) -> None:
        self._pieces: list[bytes] = []
        self._room = limit
        self._when_full = when_full
        self.is_cut = False

    async def drain(self, stream: ByteReceiveStream) -> None:
        """Read until the end."""
        async for piece in stream:
            self._pieces.append(piece[: self._room])
            if len(piece) > self._room and not self.is_cut:
                self.is_cut = True
                self._when_full()
            self._room = max(self._room - len(piece), 0)

    @property
    def content(self) -> bytes:
        return b"".join(self._pieces)


async def execute(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    stdin: bytes = b"",
    timeout_s: float,
    max_bytes: int | None = None,
) -> Completed:
    """Run a program to its end.

    The child leads a process group of its own; cancelling, or running out of time or room, kills
    the group, because git's own helpers (index-pack, rev-list, upload-pack) outlive their parent.

    Raises:
        TimeoutError: It did not end in time; nothing of it is left.
    """
    with anyio.fail_after(timeout_s):
        # Shielded: cancelled in between, a child would run that nobody knows, and whose helpers
        # nobody ends.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        try:
            return await _converse(process, stdin, max_bytes)
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    kill_group(process.pid)
                await process.aclose()


async def _converse(process: Process, stdin: bytes, max_bytes: int | None) -> Completed:
    out = _Reader(sys.maxsize if max_bytes is None else max_bytes, lambda: kill_group(process.pid))
    err = _Reader(_STDERR_KEPT, lambda: None)
    if process.stdout is None or process.stderr is None:
        raise AssertionError("both streams were asked for")
    async with anyio.create_task_group() as group:
        group.start_soon(err.drain, process.stderr)
        if stdin:
            group.start_soon(_feed, process, stdin)
        await out.drain(process.stdout)
    exit_code = await process.wait()
    return Completed(exit_code, out.content, err.content, out.is_cut)


async def _feed(process: Process, stdin: bytes) -> None:
    if process.stdin is None:
        raise AssertionError("stdin was asked for")
    try:
        await process.stdin.send(stdin)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # it ended, or closed its stdin, without reading everything: its exit code tells
    finally:
        with anyio.CancelScope(shield=True):
            await process.stdin.aclose()


def kill_group(pid: int) -> None:
    """Kill a process and whatever it has started in its group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # the last of the group has just ended

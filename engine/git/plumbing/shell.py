"""One shell that runs one command after another, wherever the words before it put it.

To enter a sandbox takes ten times as long as a git takes in there, so it is entered once. Knows
nothing of git: words and bytes in, an exit code and bytes out.
"""

import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from engine.git.plumbing.process import Completed, kill_group

_ENDING_S = 5.0
_LONGEST_CODE = 16
_GONE = (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Shell:
    """A shell that is open; it runs one command at a time.

    What a command reads and writes goes through files of ours. A pipe that all of them share would
    not say where the bytes of one end and those of the next begin.
    """

    def __init__(self, process: Process, folder: Path) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("all three were asked for")
        self._in, self._errors = process.stdin, process.stderr
        self._out = BufferedByteReceiveStream(process.stdout)
        self._process = process
        self._files = [folder / name for name in ("stdin", "stdout", "stderr")]
        self._turn = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, argv: Sequence[str], *, env: Mapping[str, str], folder: Path
    ) -> AsyncIterator["Shell"]:
        """One that `argv` starts, until the end of the block; then nothing of it is left.

        Args:
            argv: Ends in `sh`.
            env: All that its first program finds in its environment.
            folder: Ours, and writable for what it runs.
        """
        with anyio.CancelScope(shield=True):  # cancelled in between, nobody would know of it
            process = await anyio.open_process(
                argv, stdin=subprocess.PIPE, env=dict(env), cwd="/", start_new_session=True
            )
        try:
            shell = cls(process, folder)
            yield shell
            await shell._end()
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    kill_group(process.pid)
                await process.aclose()

    async def _end(self) -> None:
        with anyio.move_on_after(_ENDING_S), suppress(*_GONE):
            await self._in.aclose()
            await self._process.wait()

    async def run(self, words: Sequence[str], *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """Run a command; return its exit code and its output.

        Raises:
            TimeoutError: It did not end in time. Nothing more can be asked of this shell.
        """
        given, out, err = self._files
        source = str(given) if stdin else os.devnull
        line = f"{shlex.join(words)} <{shlex.quote(source)}"
        line += f" >{shlex.quote(str(out))} 2>{shlex.quote(str(err))}; echo $?\n"
        async with self._turn:
            with anyio.fail_after(timeout_s):
                if stdin:
                    await to_thread.run_sync(given.write_bytes, stdin)
                try:
                    await self._in.send(os.fsencode(line))
                    code = await self._out.receive_until(b"\n", _LONGEST_CODE)
                except _GONE:
                    return await self._died()
            return await to_thread.run_sync(_completed, int(code), out, err)

    async def _died(self) -> Completed:
        """It could not be entered, or was killed: what its own start said of that."""
        said = b""
        with suppress(anyio.EndOfStream, *_GONE):
            said = await self._errors.receive()
        return Completed(await self._process.wait() or -1, b"", said)


def _completed(code: int, out: Path, err: Path) -> Completed:
    return Completed(code, out.read_bytes(), err.read_bytes())

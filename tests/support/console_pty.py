"""A real console in a real pseudo-terminal: what it writes, byte for byte, and how it ends."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = """
from tests.support import world
from tui.app import Options, PlaitApp
port = world.FakePort({view}, logs={{"implement/worker_1": world.log_lines(50)}})
app = PlaitApp(port, options=Options(can_stay_alive=False))
app.run()
raise SystemExit(app.return_code)
"""
FIRST_SCREEN = _SCRIPT.format(view="world.csvlite()")
CALLING = """
import anyio
from engine.messages.events import OutputAppended, Told
from tests.support import world
from tui.app import Options, PlaitApp

class Calling(world.FakePort):
    async def events(self, after_seq=0, *, show=None):
        while self.snapshots == 0:
            await anyio.sleep(0.01)
        self.shown = world.csvlite()
        appended = OutputAppended(worker="implement/worker_1", attempt=1, offset=0)
        yield Told(run="2f1c", at=world.NOW, event=appended)
        await anyio.sleep_forever()

quiet = world.changed(world.csvlite(), "implement/worker_2", questions=())
PlaitApp(Calling(quiet), options=Options(can_stay_alive=False, notifies=True)).run()
"""
"""A console in which, as soon as it was seen, a worker asks."""
LEFT_ALT_SCREEN = b"\x1b[?1049l"
MOUSE_OFF = b"\x1b[?1000l"


class PtyConsole:
    """A console process and the master side of its terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process = process
        self.master = master
        self.written = b""

    def read_until(self, found: bytes, seconds: float = 20.0) -> bytes:
        """Read until some bytes were written, or the time is over."""
        deadline = time.monotonic() + seconds
        while found not in self.written and time.monotonic() < deadline and self._read(0.1):
            pass
        return self.written

    def wait_written(self, wanted: bytes) -> None:
        """Read until some bytes were written; it is an error if they never are."""
        assert wanted in self.read_until(wanted, seconds=30.0), self.written[-2000:]

    def wait_written_after(self, start: int, wanted: bytes, seconds: float = 30.0) -> None:
        """Read until some bytes were written behind a place; it is an error if they never are."""
        deadline = time.monotonic() + seconds
        while (
            wanted not in self.written[start:] and time.monotonic() < deadline and self._read(0.1)
        ):
            pass
        assert wanted in self.written[start:], self.written[start:][-2000:]

    def wait_stopped(self) -> None:
        """Wait until the process has been stopped."""
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def _read(self, wait_s: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], wait_s)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            return False
        self.written += data
        return bool(data)

    def press(self, data: bytes) -> None:
        """Type bytes."""
        os.write(self.master, data)

    def latency_ms(self, key: bytes, shown: bytes = b"") -> float:
        """Milliseconds from a key to its letter on the terminal, or to what else shows it came."""
        began, seen = time.perf_counter(), b""
        self.press(key)
        while (shown or key) not in seen and time.perf_counter() - began < 5:
            if select.select([self.master], [], [], 0.5)[0]:
                seen += os.read(self.master, 65_536)
        return (time.perf_counter() - began) * 1e3

    def resize(self, size: tuple[int, int]) -> None:
        """Give the terminal another size, and say so as terminals do."""
        ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self, *, says_so: bool = True) -> None:
        """Close the terminal, as its window or a lost connection does, with a signal or without."""
        os.close(self.master)
        self.master = -1
        if says_so:
            self.process.send_signal(signal.SIGHUP)

    def end(self, number: signal.Signals | None = None, seconds: float = 30.0) -> int:
        """Send a signal if one is named, and read until the process has ended."""
        if number is not None:
            self.process.send_signal(number)
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        while self._read(0.0) and select.select([self.master], [], [], 0)[0]:
            pass
        return self.process.wait(timeout=1)


@contextmanager
def console_in_pty(view: str = "world.csvlite()", **env: str) -> Iterator[PtyConsole]:
    """A console on a scripted view in a terminal of 100 by 30."""
    with process_in_pty(_SCRIPT.format(view=view), **env) as console:
        yield console


def _inherited() -> dict[str, str]:
    """The environment, without a size that is of another terminal than the one that is made."""
    return {name: at for name, at in os.environ.items() if name not in {"COLUMNS", "LINES"}}


@contextmanager
def process_in_pty(
    script: str, *words: str, size: tuple[int, int] = (100, 30), **env: str
) -> Iterator[PtyConsole]:
    """A Python program in a terminal, of 100 by 30 unless another size is named."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env={**_inherited(), "TERM": "xterm-256color", "COLORTERM": "truecolor", **env},
        start_new_session=True,
    )
    os.close(slave)
    console = PtyConsole(process, master)
    try:
        yield console
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if console.master >= 0:
            os.close(master)

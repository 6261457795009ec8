"""The console on a real engine beside tmux with eight panes: floods, keys under load, memory.

Read ratios, not milliseconds: the machine is whatever it is. Both record: plait by its keepers,
tmux by `pipe-pane`. Both show: each draws into a terminal of 200 by 50, read as fast as it can.
The programs of a flood are ready on both sides and start at one moment. plait is done when its
screen says that all have settled, tmux when all its panes are dead.
"""

import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyte

from tests.support.console_pty import PtyConsole, process_in_pty
from tests.support.measuring import Row, cpu_seconds, read_for, said
from tests.support.shells import Shell

LINES, AT_ONCE, MANY = 200_000, 8, 20
PACED_LINES, PACED_S, KEYS = 5_000, 14.0, 60
SIZE = (200, 50)
_FLOOD = (
    ": > {1}/ready.$$; until [ -e {1}/go ]; do sleep 0.02; done; "
    "awk 'BEGIN {{ for (i = 0; i < {0}; i++) print i, \"== 0123456789 0123456789 0123456789\" }}'"
)
_PACED = (
    "awk 'BEGIN { for (s = 0; s < 240; s++) { for (i = 0; i < 250; i++) print s, i, "
    '"== 0123456789"; fflush(); system("sleep 0.05") } }\''
)
_FOCUSED = "┏".encode()
"""The corner of a frame under the cursor: it is written anew only where the cursor has moved."""
_ATTACH = 'import sys; from tui.cli import main; sys.exit(main(["attach", "-C", sys.argv[1]]))'
_TMUX = 'import os; os.execvp("tmux", ["tmux", "-L", "plait-bench", "attach"])'


def _plan(command: str, count: int) -> str:
    script = command.replace("'", "''")
    items = ", ".join(f"n{n}" for n in range(count))
    return f"""
runtime: {{max_concurrent_workers: {count}, isolation_strategy: directory}}
pipelines:
  - name: flood
    steps:
      - name: flood
        run: '{script}'
        merge: none
        strategy: {{matrix: {{items: [{items}], max_concurrency: {count}}}}}
"""


@contextmanager
def _project() -> Iterator[Shell]:
    root = Path(tempfile.mkdtemp(prefix="plait-bench-", dir="/dev/shm"))
    (root / "project").mkdir()
    shell = Shell(root / "project", root / "state", {"PLAIT_SANDBOX": "none"})
    try:
        yield shell
    finally:
        shell.plait("cancel", "--all", "--kill")
        engine = _engine_of(shell)
        engine.terminate()
        engine.wait(20)
        shutil.rmtree(root, ignore_errors=True)


def _engine_of(shell: Shell) -> psutil.Process:
    named = next(shell.state.rglob("engine.json")).read_text()
    return psutil.Process(json.loads(named)["pid"])


def _pid_in(keeper: Path) -> int:
    """A keeper writes down who it is, in its first line."""
    return int(json.loads(keeper.read_text().splitlines()[0])["keeper"]["pid"])


@contextmanager
def _console(shell: Shell) -> Iterator[PtyConsole]:
    env = {"PLAIT_STATE_HOME": str(shell.state), **shell.env}
    with process_in_pty(_ATTACH, str(shell.folder), size=SIZE, **env) as console:
        _wait(console, b"Nothing has been written")  # its engine is there
        yield console


def _wait(console: PtyConsole, found: bytes, seconds: float = 60) -> None:
    """Wait for something new on the terminal."""
    begin, deadline = len(console.written), time.monotonic() + seconds
    while found not in console.written[begin:] and time.monotonic() < deadline:
        console.read_until(b"\0never", 0.1)
    assert found in console.written[begin:], console.written[-2000:]


def _shown_at(console: PtyConsole, text: str, seconds: float) -> float:
    """Return when a text stood on the terminal; read first, look later: that takes no time."""
    screen = pyte.Screen(*SIZE)
    stream = pyte.ByteStream(screen)
    stream.feed(console.written)
    read: list[tuple[float, bytes]] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([console.master], [], [], 0.3)[0]:
            data = os.read(console.master, 65_536)
            read.append((time.monotonic(), data))
            continue
        for at, data in read:
            stream.feed(data)
            if any(text in row for row in screen.display):
                return at
        read.clear()
    raise TimeoutError(text, *screen.display)


def _start(shell: Shell, command: str, count: int) -> None:
    (shell.folder / "plait.yaml").write_text(_plan(command, count))
    done = shell.plait("run", "plait.yaml", "--detach")
    assert done.code == 0, done.err


@contextmanager
def _gate() -> Iterator[Path]:
    """A folder in which the programs of a flood say that they are ready, and wait for `go`."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def _let_go(gate: Path, count: int) -> float:
    """Wait until so many are ready, start them, and return the time."""
    deadline = time.monotonic() + 60
    while len(list(gate.glob("ready.*"))) < count:
        assert time.monotonic() < deadline, "not all of them are ready"
        select.select([], [], [], 0.02)
    began = time.monotonic()
    (gate / "go").touch()
    return began


def _flood_of_plait() -> float:
    with _gate() as gate, _project() as shell, _console(shell) as console:
        _start(shell, _FLOOD.format(LINES, gate), AT_ONCE)
        began = _let_go(gate, AT_ONCE)
        return _shown_at(console, f"{AT_ONCE} of {AT_ONCE} settled", 180) - began


def _tmux(*words: str) -> None:
    subprocess.run(["tmux", "-L", "plait-bench", *words], check=True)


def _flood_of_tmux() -> float:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, _gate() as gate:
        _tmux("-f", os.devnull, "new-session", "-d", "-x", "200", "-y", "50", "cat")
        _tmux("set", "-g", "remain-on-exit", "on")
        for _ in range(AT_ONCE - 1):
            _tmux("split-window", "cat")
            _tmux("select-layout", "tiled")
        try:
            with process_in_pty(_TMUX, size=SIZE) as terminal:
                read_for(terminal.master, 1.0)
                for pane in range(AT_ONCE):
                    flood = _FLOOD.format(LINES, gate)
                    _tmux("respawn-pane", "-k", "-t", f":.{pane}", flood)
                    _tmux("pipe-pane", "-t", f":.{pane}", f"cat > {folder}/{pane}")
                began = _let_go(gate, AT_ONCE)
                while not _all_dead() and time.monotonic() - began < 300:
                    read_for(terminal.master, 0.05)
                took = time.monotonic() - began
            recorded = [path.read_bytes().count(b"==") for path in Path(folder).iterdir()]
            if sum(recorded) < LINES * AT_ONCE:
                said("lines that tmux had not recorded", f"{LINES * AT_ONCE - sum(recorded):,}")
            return took
        finally:
            _tmux("kill-server")


def _all_dead() -> bool:
    words = ["tmux", "-L", "plait-bench", "list-panes", "-F", "#{pane_dead}"]
    return set(subprocess.check_output(words, text=True).split()) == {"1"}


def flood() -> Iterator[Row]:
    """Eight programs, each as fast as it can."""
    ours, theirs = _flood_of_plait(), _flood_of_tmux()
    told = f"{ours:.1f} s, tmux {theirs:.1f} s"
    yield Row(f"{AT_ONCE} x {LINES:,} lines, beside tmux", ours / theirs, 0.25, "x", note=told)


def _latencies(what: str, times: list[float]) -> Iterator[Row]:
    times.sort()
    yield Row(f"8 x 5,000 lines a second: {what}, p50", statistics.median(times), 12, "ms")
    yield Row("  p95", times[int(len(times) * 0.95)], 25, "ms")


def paced() -> Iterator[Row]:
    """Eight programs at 5,000 lines a second each; keys typed into a picker meanwhile."""
    with _project() as shell, _console(shell) as console:
        _start(shell, _PACED, AT_ONCE)
        _wait(console, b"RUNNING", 60)
        engine = _engine_of(shell)
        keepers = [_pid_in(own) for own in shell.state.rglob("keeper.json")]
        read_for(console.master, 2.0)
        pid, began = console.process.pid, time.monotonic()
        rows = {"the console": [pid], "the engine": [engine.pid]}
        rows["the keepers together"] = keepers
        before = {name: sum(map(cpu_seconds, pids)) for name, pids in rows.items()}
        read_for(console.master, PACED_S / 2)
        took = time.monotonic() - began
        shares = {n: (sum(map(cpu_seconds, pids)) - before[n]) / took for n, pids in rows.items()}
        moves = []
        for n in range(KEYS):
            moves.append(console.latency_ms(b"lh"[n % 2 : n % 2 + 1], _FOCUSED))
            read_for(console.master, 0.05)
        console.press(b"w")
        read_for(console.master, 0.5)
        times = []
        for n in range(KEYS):
            times.append(console.latency_ms(b"qzQZ"[n % 4 : n % 4 + 1]))
            read_for(console.master, 0.05)
            console.press(b"\x7f")
            read_for(console.master, 0.05)
    yield from _latencies("the cursor to the next tile", moves)
    yield from _latencies("a letter into a picker", times)
    bounds = {"the console": 15}
    for name, share in shares.items():
        bound = bounds.get(name, 100)
        yield Row(f"8 x 5,000 lines a second: cpu of {name}", 100 * share, bound, "%")


def memory() -> Iterator[Row]:
    """Twenty workers that have written 200,000 lines each, the log of each one visited."""
    with _gate() as gate, _project() as shell, _console(shell) as console:
        _start(shell, _FLOOD.format(LINES, gate), MANY)
        _let_go(gate, 1)  # not all of them need fit at once
        while shell.plait("status", "--json").json()["ended_at"] is None:
            read_for(console.master, 0.5)
        console.press(b"2")
        for _ in range(MANY):
            console.press(b"gt")
            read_for(console.master, 0.7)
        held = psutil.Process(console.process.pid).memory_info().rss / 2**20
    yield Row(f"{MANY} x {LINES:,} lines: memory of the console", held, 120, "MB")


def main() -> int:
    """Print the rows, and return 1 where a bar was missed; names of groups choose some."""
    if shutil.which("tmux") is None:
        sys.exit("tmux is not here; there is nothing to measure beside")
    groups = {group.__name__: group for group in (flood, paced, memory)}
    missed = False
    for name in sys.argv[1:] or groups:
        for row in groups[name]():
            print(row, flush=True)
            missed |= not row.is_kept
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

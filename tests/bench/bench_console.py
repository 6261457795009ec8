"""What the console costs: twenty noisy panes in a real terminal, a long log, a long diff.

Run by `make bench`; the figures are printed, and held to budgets with room for a busy machine.
"""

import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import psutil
import pytest

from engine.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from engine.results import LogKind, LogLine
from tests.support.console_pty import FIRST_SCREEN, process_in_pty
from tests.support.consoles import NOW, many
from tui.present.diff_pane import DiffPane
from tui.present.fleet import Wish, draw_fleet, visible
from tui.present.logs import LogPane
from tui.present.scene import Scene

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 6.0
_FEEDING = """
from collections.abc import AsyncIterator
from dataclasses import replace
import anyio
from engine.events import OutputAppended, Told
from tests.support import consoles
from tui.app import Options, PlaitApp

class Feeding(consoles.FakePort):
    async def events(self, after_seq: int = 0):
        count = 0
        while True:
            await anyio.sleep(0.05)
            count += 1
            run = self.shown.runs[0]
            workers = tuple(
                replace(w, last_lines=(*w.last_lines[-6:], f"line {count} of {w.worker}: reading"))
                for w in run.workers
            )
            step = replace(run.steps[0], workers=workers)
            self.shown = replace(self.shown, runs=(replace(run, steps=(step,)),))
            for w in workers:
                appended = OutputAppended(worker=w.worker, attempt=1, offset=count)
                yield Told(run=run.run, at=consoles.NOW, event=appended)

view = consoles.many(20)
PlaitApp(Feeding(view), options=Options(can_stay_alive=False)).run()
"""


def _said(what: str, figure: str) -> None:
    print(f"{what:<56} {figure}")


def test_twenty_noisy_panes_stay_cheap_in_a_real_terminal():
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 56, 200, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    env.pop("SSH_CONNECTION", None)
    child = subprocess.Popen(
        [sys.executable, "-c", _FEEDING],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env=env,
        start_new_session=True,
    )
    os.close(slave)
    try:
        _read_for(master, 3.0)
        os.write(master, b"+")
        _read_for(master, 1.0)
        before, began = psutil.Process(child.pid).cpu_times(), time.monotonic()
        written = _read_for(master, _SECONDS)
        after, took = psutil.Process(child.pid).cpu_times(), time.monotonic() - began
    finally:
        child.kill()
        child.wait()
        os.close(master)
    share = (after.user + after.system - before.user - before.system) / took
    rate = written / took / 1000
    _said("20 panes, 20 lines a second each: cpu of one core", f"{share:.0%}")
    _said("20 panes, 20 lines a second each: terminal output", f"{rate:.0f} KB/s")
    assert share < 0.5
    assert rate < 200


def _read_for(master: int, seconds: float) -> int:
    deadline, read = time.monotonic() + seconds, 0
    while (left := deadline - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            read += len(os.read(master, 65_536))
    return read


def test_taking_in_a_log_costs_microseconds_a_line():
    lines = [LogLine(at=NOW, kind=LogKind.OUTPUT, text=f"line {n}") for n in range(200_000)]
    pane = LogPane()
    began = time.process_time()
    longest = 0.0
    for start in range(0, len(lines), 500):
        once = time.perf_counter()
        pane.take(lines[start : start + 500])
        longest = max(longest, time.perf_counter() - once)
    each = (time.process_time() - began) / len(lines) * 1e6
    _said(
        "log: taking in 200,000 lines",
        f"{each:.2f} us a line, longest stall {longest * 1e3:.0f} ms",
    )
    assert each < 5
    assert longest < 0.15


def test_a_frame_of_twenty_workers_is_drawn_in_milliseconds():
    view = many(20)
    scene = Scene(view=view, run=view.runs[0], now=NOW)
    began = time.process_time()
    for _ in range(50):
        page = draw_fleet(scene, (200, 50), "port/worker_1", Wish(detail=1))
        visible(page, "port/worker_1", 0, (200, 50))
    each = (time.process_time() - began) / 50 * 1e3
    _said("fleet: one frame of 20 workers at 200x50", f"{each:.1f} ms")
    assert each < 40


def _long_diff(count: int) -> ChangeDiff:
    lines = tuple(
        DiffLine(
            Sign.ADDED if n % 8 == 0 else Sign.KEPT,
            f"    value_{n} = function({n})  # line {n}",
            n,
            n,
        )
        for n in range(count)
    )
    hunks = tuple(Hunk(lines=lines[start : start + 40]) for start in range(0, count, 40))
    return ChangeDiff(against="main", files=(FileDiff(path="a.py", hunks=hunks),))


def test_a_long_diff_paints_and_scrolls_at_once():
    diff = _long_diff(20_000)
    pane = DiffPane()
    began = time.perf_counter()
    pane.show(diff)
    pane.draw(160, 48)
    first = time.perf_counter() - began
    pages = []
    for _ in range(40):
        once = time.perf_counter()
        pane.move(46)
        pane.draw(160, 48)
        pages.append(time.perf_counter() - once)
    pages.sort()
    _said("diff: first paint of 20,000 lines", f"{first * 1e3:.0f} ms")
    _said("diff: a page further, 95 of 100", f"{pages[37] * 1e3:.0f} ms")
    assert first < 0.6
    assert pages[37] < 0.2


_TRIVIAL = """
from textual.app import App
from textual.widgets import Static

class Trivial(App):
    def compose(self):
        yield Static("ASKS YOU")

Trivial().run()
"""


def _cpu_until_painted(script: str) -> float:
    """The processor time of a program until it has drawn its first screen."""
    with process_in_pty(script) as console:
        console.read_until(b"ASKS")
        assert b"ASKS" in console.written
        spent = psutil.Process(console.process.pid).cpu_times()
        return spent.user + spent.system


def test_the_first_screen_is_there_soon_after_that_of_a_trivial_program():
    ours = min(_cpu_until_painted(FIRST_SCREEN) for _ in range(3))
    trivial = min(_cpu_until_painted(_TRIVIAL) for _ in range(3))
    _said("first screen: beside a trivial Textual program", f"{ours / trivial:.2f} x")
    _said("first screen: processor time", f"{ours * 1e3:.0f} ms, trivial {trivial * 1e3:.0f} ms")
    assert ours < trivial * 4


def test_an_idle_console_costs_next_to_nothing():
    with process_in_pty(FIRST_SCREEN) as console:
        console.read_until(b"ASKS")
        console.read_until(b"\0never", 2.0)
        process = psutil.Process(console.process.pid)
        before, began = process.cpu_times(), time.monotonic()
        console.read_until(b"\0never", _SECONDS)
        after, took = process.cpu_times(), time.monotonic() - began
        held = process.memory_info().rss / 2**20
    share = (after.user + after.system - before.user - before.system) / took
    _said("idle: cpu of one core", f"{share:.1%}")
    _said("idle: memory", f"{held:.0f} MB")
    assert share < 0.05

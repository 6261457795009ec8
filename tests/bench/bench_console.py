"""Measure what the console costs: tiles that move, tiles that rest, a long log, its first screen.

Run by `make bench`: each figure is printed beside its bar, and a missed one makes the run fail.
What a long diff and a long review cost is in `bench_review`, keys under load in
`bench_console_beside_tmux`.
"""

import gc
import os
import sys
import time

import psutil
import pytest

from engine.messages.logs import LogKind, LogLine, LogLines
from tests.support.console_pty import FIRST_SCREEN, process_in_pty
from tests.support.measuring import Row, cpu_seconds, read_for
from tests.support.shells import Shell
from tests.support.world import NOW, many
from tui.screens.fleet.page import Wish, lay_out
from tui.screens.worker.logs import Log
from tui.words.scene import Scene

pytestmark = pytest.mark.bench
_SECONDS = 6.0
_FEEDING = """
from collections.abc import AsyncIterator
from dataclasses import replace
import anyio
from engine.messages.events import OutputAppended, Told
from engine.phases import Phase
from tests.support import world
from tui.app import Options, PlaitApp

class Feeding(world.FakePort):
    async def events(self, after_seq: int = 0, *, show: object = None):
        count = 0
        while True:
            await anyio.sleep(0.25)
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
                yield Told(run=run.run, at=world.NOW, event=appended)

view = world.many(20)
step = view.runs[0].steps[0]
running = tuple(replace(w, phase=Phase.RUNNING) for w in step.workers)
view = replace(view, runs=(replace(view.runs[0], steps=(replace(step, workers=running),)),))
PlaitApp(Feeding(view), options=Options(can_stay_alive=False)).run()
"""


def held(*rows: Row) -> None:
    """Print figures, and hold them to their bars."""
    print(*rows, sep="\n")
    assert all(row.is_kept for row in rows)


def test_twenty_tiles_that_move_stay_cheap_in_a_real_terminal():
    with process_in_pty(_FEEDING, size=(240, 72)) as console:
        console.read_until(b"RUNNING")
        console.press(b"+")
        read_for(console.master, 3.0)
        before, began = cpu_seconds(console.process.pid), time.monotonic()
        written = read_for(console.master, _SECONDS)
        spent, took = cpu_seconds(console.process.pid) - before, time.monotonic() - began
    held(
        Row("20 tiles, 4 updates a second each: cpu of a core", 100 * spent / took, 5, "%"),
        Row("  terminal output", written / took / 1000, 100, "KB/s"),
    )


def test_taking_in_a_log_costs_microseconds_a_line():
    lines = [LogLine(at=NOW, kind=LogKind.OUTPUT, text=f"line {n}") for n in range(200_000)]
    chunks = [LogLines.of(lines[start : start + 500]) for start in range(0, len(lines), 500)]
    gc.freeze()  # as the console does with what it has loaded
    log = Log()
    began = time.process_time()
    longest = 0.0
    for chunk in chunks:
        once = time.process_time()
        log.take(chunk)
        longest = max(longest, time.process_time() - once)
    gc.unfreeze()
    each = (time.process_time() - began) / len(lines) * 1e6
    held(
        Row("log: taking in 200,000 lines, a line", each, 5, "us"),
        Row("  longest stall", longest * 1e3, 25, "ms"),
    )


def test_a_frame_of_twenty_workers_is_drawn_in_milliseconds():
    view = many(20)
    scene = Scene(view=view, run=view.runs[0], now=NOW)
    began = time.process_time()
    for _ in range(50):
        page = lay_out(scene, (200, 50), "port/worker_1", Wish(detail=1))
        for piece in page.pieces:
            piece.draw()
    each = (time.process_time() - began) / 50 * 1e3
    held(Row("fleet: one frame of 20 workers at 200x50", each, 40, "ms"))


_TRIVIAL = """
from textual.app import App
from textual.widgets import Static

class Trivial(App):
    def compose(self):
        yield Static("ASKS YOU")

Trivial().run()
"""


_SCREEN = """
import tui.cli, tui.commands.base, tui.commands.console
from tui.app import Options, PlaitApp, config_home
PlaitApp(None, options=Options(config=config_home())).run()
"""
_COMMAND = """
import sys
from tui.cli import main
sys.exit(main(["attach", "-C", sys.argv[1]]))
"""


def _cpu_until_painted(script: str, word: bytes, *words: str) -> tuple[float, float]:
    """Seconds, of processor and of clock, until a program has put a word on a new terminal."""
    began = time.monotonic()
    with process_in_pty(script, *words) as console:
        console.read_until(word)
        took = time.monotonic() - began
        assert word in console.written
        return cpu_seconds(console.process.pid), took


def test_the_first_screen_is_there_soon_after_that_of_a_trivial_program(repository: Shell):
    """Return what the command does until its first screen, and until its first worker is on it."""
    assert repository.plait("run", "-a", "scripted", "Say hello", "--detach").code == 0
    folder = str(repository.folder)
    ways = {
        "trivial": (_TRIVIAL, b"ASKS"),
        "screen": (_SCREEN, b"Fleet"),
        "worker": (_COMMAND, b"worker_1", folder),
    }
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(7):
        for name, way in ways.items():
            spent[name].append(_cpu_until_painted(*way))
    cpu, wall = (
        {name: sorted(t[i] for t in all_)[3] for name, all_ in spent.items()} for i in (0, 1)
    )
    notes = {
        name: f"{wall[name] / wall['trivial']:.2f} x time; {cpu[name] * 1e3:.0f} ms of processor"
        for name in ("screen", "worker")
    }
    ratios = {name: cpu[name] / cpu["trivial"] for name in notes}
    held(
        Row(
            "first screen, beside a trivial program",
            ratios["screen"],
            1.5,
            "x cpu",
            note=notes["screen"],
        ),
        Row("first worker on it", ratios["worker"], 4, "x cpu", note=notes["worker"]),
    )


@pytest.mark.parametrize("workers", [20, 100])
def test_an_idle_console_costs_next_to_nothing(workers: int):
    with process_in_pty(
        FIRST_SCREEN.replace("world.csvlite()", f"world.many({workers})")
    ) as console:
        console.read_until(b"RUNNING")
        console.read_until(b"\0never", 2.0)
        pid = console.process.pid
        before, began = cpu_seconds(pid), time.monotonic()
        console.read_until(b"\0never", _SECONDS)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        held_mb = psutil.Process(pid).memory_info().rss / 2**20
    held(
        Row(f"{workers} workers at rest: cpu of a core", 100 * share, 0.5, "%"),
        Row("  memory", held_mb, 120, "MB"),
    )


if __name__ == "__main__":
    words = [sys.executable, "-m", "pytest", "-qs", "-m", "bench", __file__]
    os.execv(sys.executable, words)  # noqa: S606  no foreign words

"""Measure reviewing: a long diff on screen, scrolled and jumped through; a review of a thousand
conflicts, opened and decided key by key.

The whole console draws, headless. Times are CPU time of the console's own thread, so that a
busy machine moves no figure; the longest stall is the longest turn of the event loop. What the
stand-in engine takes in the same thread is taken off. Run by `make bench`.
"""

import gc
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import psutil
from anyio.lowlevel import checkpoint

from engine.merge import FileConflict
from engine.messages.commands import ResolutionAction
from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from engine.messages.merging import ConflictView, ReadConflicts
from engine.messages.results import EngineView
from tests.support.consoles import strips_on
from tests.support.measuring import Row
from tests.support.review_consoles import WHO, ReviewPort, conflicted_view, texts
from tests.support.world import NOW, FakePort, csvlite
from tui.app import Options, PlaitApp
from tui.screens.diff.screen import DiffScreen
from tui.screens.review.screen import ReviewScreen

SIZE = (160, 48)
LINES = 20_000
FILES, CONFLICTS = 100, 10
STALL_S = 0.150
_STEP_S = 0.005


class Bars:
    """Figures beside their bars; remembers whether one was missed."""

    def __init__(self) -> None:
        self.missed = False

    def row(self, what: str, found: float, bar: float, unit: str) -> None:
        row = Row(what, found, bar, unit)
        self.missed |= not row.is_kept
        print(row, flush=True)


class Stalls:
    """The longest time for which the event loop did not turn."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Feel the loop's pulse until cancelled."""
        last = time.thread_time()
        while True:
            await anyio.sleep(_STEP_S)
            now = time.thread_time()
            self.longest = max(self.longest, now - last)
            last = now


def long_diff() -> ChangeDiff:
    """One file of so many lines, in hunks that change every eighth line."""
    lines = tuple(
        DiffLine(
            (Sign.REMOVED, Sign.ADDED)[n % 2] if n % 8 < 2 else Sign.KEPT,
            f"    value_{n} = function({n}, name='{n % 97}')  # line {n}",
            n,
            n,
        )
        for n in range(LINES)
    )
    hunks = tuple(Hunk(lines=lines[at : at + 40], where=f"f{at}()") for at in range(0, LINES, 40))
    return ChangeDiff(against="base", files=(FileDiff(path="src/a.py", hunks=hunks),))


def moved_diff() -> ChangeDiff:
    """Half of the lines in one file before, all of them in another one after, block by block."""
    texts = [f"    value_{n} = function({n}, name='{n % 97}')" for n in range(LINES // 2)]
    blocks = [texts[at : at + 40] for at in range(0, len(texts), 40)]
    random.Random(1).shuffle(blocks)
    moved = [text for block in blocks for text in block]
    files = []
    for path, sign, side in (("a.py", Sign.REMOVED, texts), ("b.py", Sign.ADDED, moved)):
        lines = tuple(DiffLine(sign, text, n, n) for n, text in enumerate(side, 1))
        hunks = tuple(Hunk(lines=lines[at : at + 80]) for at in range(0, len(lines), 80))
        files.append(FileDiff(path=path, hunks=hunks))
    return ChangeDiff(against="base", files=tuple(files))


@asynccontextmanager
async def console(port: FakePort, view: EngineView, worker: str) -> AsyncIterator[PlaitApp]:
    """A console on its first screen."""
    app = PlaitApp(port, options=Options(clock=lambda: NOW, is_plain=False, has_truecolor=True))
    app.session.worker, app.session.run_id = worker, view.runs[0].run
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.session.bridge.view is not None)
        await pilot.pause()
        yield app


async def until(found: Callable[[], object]) -> None:
    """Wait for it, looking at every turn of the loop."""
    with anyio.fail_after(60):
        while not found():
            await checkpoint()


def painted(app: PlaitApp) -> bool:
    """Every strip of the screen is drawn as a terminal would get it."""
    return bool(strips_on(app))


async def diff_bars(bars: Bars) -> None:
    """Paint, page and jump."""
    diff, worker = long_diff(), "implement/worker_1"
    view = csvlite()
    stalls = Stalls()
    async with console(FakePort(view, diffs={worker: diff}), view, "port/worker_1") as app:
        await app.switch_mode("diff")  # of a worker without one: the screen itself is there
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        await until(lambda: screen.reading.reason)
        gc.collect()
        held = psutil.Process().memory_info().rss
        async with anyio.create_task_group() as group:
            group.start_soon(stalls.watch)
            await anyio.sleep(_STEP_S * 2)
            paint = await first_paint(app, screen, worker)
            grown = psutil.Process().memory_info().rss - held
            downs = [await pressed(app, screen, "down") for _ in range(100)]
            pages = [await pressed(app, screen, "page_down") for _ in range(100)]
            jump = await pressed(app, screen, "last")
            back = await pressed(app, screen, "first")
            group.cancel_scope.cancel()
    pages.sort()
    downs.sort()
    bars.row(f"diff of {LINES} lines: painted", paint * 1e3, 300, "ms")
    bars.row("  memory for it", grown / 2**20, 20, "MB")
    bars.row("  a cursor key, 95 of 100", downs[94] * 1e3, 12, "ms")
    bars.row("  a page further, 95 of 100", pages[94] * 1e3, 60, "ms")
    bars.row("  jump to the end, and back", max(jump, back) * 1e3, 100, "ms")
    bars.row("  longest stall of the event loop", stalls.longest * 1e3, STALL_S * 1e3, "ms")


async def moved_bars(bars: Bars) -> None:
    """Paint a change that only moves code, in blocks, and show all of it."""
    worker, view = "implement/worker_1", csvlite()
    port = FakePort(view, diffs={worker: moved_diff()})
    async with console(port, view, "port/worker_1") as app:
        await app.switch_mode("diff")
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        await until(lambda: screen.reading.reason)
        gc.collect()
        paint = await first_paint(app, screen, worker)
        shown = await pressed(app, screen, "show_moved")
    bars.row(f"diff of {LINES} moved lines: painted", paint * 1e3, 300, "ms")
    bars.row("  all of them shown", shown * 1e3, 150, "ms")


async def first_paint(app: PlaitApp, screen: DiffScreen, worker: str) -> float:
    """From asking for the diff until it is drawn."""
    began = time.thread_time()
    screen.point_at(worker)
    screen.draw()
    await until(lambda: screen.pane.diff is not None and painted(app))
    return time.thread_time() - began


async def pressed(app: PlaitApp, screen: DiffScreen, idea: str) -> float:
    """Return how long a key takes until what it did is drawn."""
    began = time.thread_time()
    screen.action_idea(idea)
    app.redraw()
    painted(app)
    took = time.thread_time() - began
    await checkpoint()
    return took


def conflicted_file(number: int) -> FileConflict:
    """A file with ten conflicts."""
    base = [f"line {n} of {number}\n" for n in range(CONFLICTS * 20)]
    sides = []
    for name in ("limit", "stream"):
        side = list(base)
        for at in range(10, len(base), 20):
            side[at] = f"    data_{at} = f.{name}({at}, size)\n"
        sides.append("".join(side))
    return texts(f"src/pkg_{number % 7}/file_{number}.py", "".join(base), *sides)


async def review_bars(bars: Bars) -> None:
    """Open it, and decide one conflict after another."""
    port = TimedPort(conflicted_view(), files=tuple(map(conflicted_file, range(FILES))))
    stalls = Stalls()
    async with console(port, port.shown, WHO) as app:
        await port.ask(
            ReadConflicts("2f1c", WHO)
        )  # what the engine needs to think is another bench's
        answering = await timed(lambda: port.ask(ReadConflicts("2f1c", WHO)))
        async with anyio.create_task_group() as group:
            group.start_soon(stalls.watch)
            await anyio.sleep(_STEP_S * 2)
            began = time.thread_time()
            await app.switch_mode("review")
            screen = app.screen
            assert isinstance(screen, ReviewScreen)
            await until(lambda: screen.pane.raw is not None)
            painted(app)
            opened = time.thread_time() - began - answering
            picks = [await picked(app, screen, port) for _ in range(60)]
            group.cancel_scope.cancel()
    picks.sort()
    bars.row(f"review of {FILES} x {CONFLICTS} conflicts: opened", opened * 1e3, 500, "ms")
    bars.row("  a pick on screen, 95 of 100", picks[56] * 1e3, 30, "ms")
    stalled = max(stalls.longest - answering, 0)
    bars.row("  longest stall, without the stand-in engine's", stalled * 1e3, STALL_S * 1e3, "ms")


async def timed(act: Callable[[], object]) -> float:
    """Return how long the stand-in engine takes by itself: in one process with the console here."""
    began = time.thread_time()
    await act()  # type: ignore[misc]
    return time.thread_time() - began


async def picked(app: PlaitApp, screen: ReviewScreen, port: "TimedPort") -> float:
    """From the key to the drawn next conflict, without what the stand-in engine takes."""
    before, at, port.spent_s = len(port.actions), screen.pane.at, 0.0
    began = time.thread_time()
    screen.action_idea("take_incoming")
    await until(lambda: len(port.actions) > before and screen.pane.at != at)
    painted(app)
    took = time.thread_time() - began
    await anyio.sleep(0.02)
    return took - port.spent_s


class TimedPort(ReviewPort):
    """A stand-in engine that counts what it takes to decide."""

    spent_s = 0.0

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView:
        began = time.thread_time()
        found = await super().resolve(run, worker, action)
        self.spent_s += time.thread_time() - began
        return found


async def main() -> int:
    """Every figure; 1 where a bar was missed."""
    bars = Bars()
    gc.freeze()  # as a console on a terminal does
    await diff_bars(bars)
    await moved_bars(bars)
    await review_bars(bars)
    return int(bars.missed)


if __name__ == "__main__":
    sys.exit(anyio.run(main))

"""Measure what the engine around the keepers costs, beside xargs and GNU parallel in one run.

Read ratios and bounds, not milliseconds: the machine is whatever it is. A row says `ok` when it is
within its bound. Files lie in memory unless BENCH_DIR says otherwise. Runs are of shell steps in
plain folders, without a sandbox: what a sandbox costs is measured with the sandbox.

CPU is that of the engine, its keepers and their agents together, as the kernel counts it for a
process of their own that this one waits for.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from engine.api import Engine
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance
from engine.core.effects import Publish
from engine.core.state import RunState, initial_state
from engine.ids import RunId
from engine.messages.commands import StopRun
from engine.messages.events import OutputAppended, RunFinished, WorkerMoved
from engine.messages.logs import KEPT_LINES
from engine.messages.questions import ReadLog, ReadRun
from engine.messages.results import Change
from engine.phases import Phase
from engine.policies import MergeMode
from engine.run.journal import Journal
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore
from tests.support.measuring import Row
from tests.support.plans import a_plan, a_step

IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
FOLDER = os.environ.get("BENCH_DIR", IN_MEMORY)
ROUNDS, AT_ONCE = 3, 8
NAPS, NAP_S, TASKS = 64, 0.25, 500
PACED_S, IDLE_S, FACTS = 4.0, 8.0, 10_000
TELL_TIME = "exec bash -c 'echo $EPOCHREALTIME'"
PACED = "exec bash -c 'while sleep 0.05; do echo $EPOCHREALTIME; done'"
LINES = 300_000
FLOOD = f"yes {'x' * 146} | head -n {LINES}"


@dataclass(frozen=True)
class Cost:
    """The time that some work took."""

    wall_s: float
    cpu_s: float


def manifest(command: str, workers: int, at_once: int) -> dict[str, Any]:
    items = [f"i{n}" for n in range(workers)]
    matrix = {"matrix": {"items": items, "max_concurrency": at_once}}
    runtime = {"isolation_strategy": "directory", "max_concurrent_workers": at_once}
    return {
        "runtime": {**runtime, "limits": {"memory_mb": 64}},  # as many at once as are wanted
        "pipelines": [{"name": "p", "steps": [{"name": "a", "run": command, "strategy": matrix}]}],
    }


@asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="plait-bench-") as folder:
        place = await anyio.Path(folder, "project").absolute()
        await place.mkdir()
        bare = {"PLAIT_SANDBOX": "none", "PLAIT_FORCE_OFF": "cgroup2,cgroup1"}
        state = {"PLAIT_STATE_HOME": str(Path(folder, "state"))}
        async with Engine.open(str(place), environment={**os.environ, **bare, **state}) as opened:
            await (await opened.start(manifest("true", 2, 2))).wait()  # the zygote is there
            yield opened


# ------------------------------------------------------------------ many workers


async def work(command: str, workers: int) -> None:
    """Run so many workers and print how long that took: in a process of its own, for its CPU."""
    async with engine() as opened:
        began = time.perf_counter()
        report = await (await opened.start(manifest(command, workers, AT_ONCE))).wait()
        print(time.perf_counter() - began, report.outcome)


def engine_cost(command: str, workers: int) -> Cost:
    before = _children_cpu_s()
    argv = [sys.executable, __file__, "--work", command, str(workers)]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    if said[1] != "success":
        raise SystemExit(f"{command}: {said[1]}")
    spent = _children_cpu_s() - before
    return Cost(float(said[0]), spent)


def shell_cost(script: str) -> Cost:
    before, began = _children_cpu_s(), time.perf_counter()
    subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.DEVNULL)
    return Cost(time.perf_counter() - began, _children_cpu_s() - before)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _less(cost: Cost, base: Cost) -> Cost:
    return replace(cost, cpu_s=max(0.0, cost.cpu_s - base.cpu_s))


def beside(command: str, workers: int) -> dict[str, list[Cost]]:
    """The same work by us, xargs and GNU parallel, by turns."""
    found: dict[str, list[Cost]] = {"plait": [], "xargs": [], "parallel": []}
    start_up = engine_cost("true", 1)
    for _ in range(ROUNDS):
        found["plait"].append(_less(engine_cost(command, workers), start_up))
        found["xargs"].append(shell_cost(f"seq {workers} | xargs -P {AT_ONCE} -I_ {command}"))
        if shutil.which("parallel"):
            script = f"seq {workers} | parallel -N 1 -j {AT_ONCE} '{command}; : '"
            found["parallel"].append(shell_cost(script))
    return found


def _wall(costs: list[Cost]) -> float:
    return statistics.median(cost.wall_s for cost in costs)


def _cpu(costs: list[Cost]) -> float:
    return statistics.median(cost.cpu_s for cost in costs)


async def naps() -> list[Row]:
    found = await to_thread.run_sync(beside, f"sleep {NAP_S}", NAPS)
    ideal = NAPS / AT_ONCE * NAP_S
    ours, xargs = ideal / _wall(found["plait"]), ideal / _wall(found["xargs"])
    what = f"{NAPS} x {NAP_S:g} s at {AT_ONCE}"
    rows = [
        Row(f"{what}, share of ideal", ours, 0.95, "", is_least=True),
        Row(f"{what}, ÷ xargs", ours / xargs, 0.97, "x", is_least=True),
    ]
    if found["parallel"]:
        theirs = ideal / _wall(found["parallel"])
        rows.append(Row(f"{what}, ÷ GNU parallel", ours / theirs, 1, "x", is_least=True))
    return rows


async def tasks() -> list[Row]:
    found = await to_thread.run_sync(beside, "true", TASKS)
    ours, what = found["plait"], f"{TASKS} x true at {AT_ONCE}"
    each = f"{_wall(ours) / TASKS * 1000:.1f} ms wall, {_cpu(ours) / TASKS * 1000:.1f} ms CPU each"
    rows = [Row(f"{what}, wall ÷ xargs", _wall(ours) / _wall(found["xargs"]), 4, "x", note=each)]
    if theirs := found["parallel"]:
        rows += [
            Row(f"{what}, wall ÷ GNU parallel", _wall(ours) / _wall(theirs), 1, "x"),
            Row(f"{what}, CPU ÷ GNU parallel", _cpu(ours) / _cpu(theirs), 1, "x"),
        ]
    return rows


async def dispatch() -> list[Row]:
    """From the moment a worker has its slot to the agent's own first look at the clock."""
    bare = [await to_thread.run_sync(bare_delay_ms) for _ in range(40)]
    async with engine() as opened:
        run = await opened.start(manifest(TELL_TIME, 40, 1))
        report = await run.wait()
        given: dict[str, float] = {}
        async for told in opened.port.events(run=run.id):
            event = told.event
            if isinstance(event, WorkerMoved) and event.after is Phase.PREPARING:
                given[event.worker] = told.at
            if told.seq is not None and len(given) == len(report.steps["a"].worker_results):
                break
        delays = [
            (float(result.output) - given[result.worker]) * 1000
            for result in report.steps["a"].worker_results
        ]
    base = statistics.median(bare)
    note = "making the workspace and its surroundings is in it"
    return [
        Row(
            "slot to running over bare spawn, p50",
            percentile(delays, 0.5) - base,
            4,
            "ms",
            note=note,
        ),
        Row("slot to running over bare spawn, p95", percentile(delays, 0.95) - base, 8, "ms"),
    ]


def bare_delay_ms() -> float:
    began = time.time()
    said = subprocess.run(["sh", "-c", TELL_TIME], stdout=subprocess.PIPE, check=True).stdout
    return (float(said) - began) * 1000


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


# ------------------------------------------------------------------ what agents write


@asynccontextmanager
async def running(opened: Engine, command: str, workers: int) -> AsyncIterator[str]:
    """A run whose workers all run; it is ended afterwards."""
    run = await opened.start(manifest(command, workers, workers))
    while True:
        view = await opened.port.ask(ReadRun(run.id))
        if all(w.phase is Phase.RUNNING for w in view.steps[0].workers):
            break
        await anyio.sleep(0.02)
    yield run.id
    await opened.port.command(StopRun(run=run.id, is_kill=True))
    await run.wait()


async def flood() -> list[Row]:
    """Eight agents write as fast as they can, to the last of their lines."""
    rows = []
    for is_read, bound in ((False, 2.0), (True, 1.0)):
        async with engine() as opened:
            began, got = time.perf_counter(), 0
            run = await opened.start(manifest(FLOOD, AT_ONCE, AT_ONCE))
            seen: dict[str, int] = {}
            async for told in opened.port.events(run=run.id):
                event = told.event
                if isinstance(event, RunFinished):
                    break
                if isinstance(event, OutputAppended):
                    after, seen[event.worker] = seen.get(event.worker, 0), event.offset
                    if is_read:
                        chunk = await opened.port.ask(
                            ReadLog(run.id, event.worker, after=after, most=KEPT_LINES)
                        )
                        texts = (piece.text.split("\n") for piece in chunk.lines.pieces)
                        got, seen[event.worker] = got + sum(map(len, texts)), chunk.next_offset
            spent = time.perf_counter() - began
        what, count = "handed to a subscriber", got if is_read else sum(seen.values())
        what = what if is_read else "split and indexed"
        note = f"{count} of {AT_ONCE * LINES} lines"
        rows.append(
            Row(f"{what}, 8 floods", count / spent / 1e6, bound, "M/s", is_least=True, note=note)
        )
    return rows


async def latency() -> list[Row]:
    """From an agent's write to a subscriber that has the line, eight agents writing."""
    delays: dict[bool, list[float]] = {False: [], True: []}
    async with engine() as opened, running(opened, PACED, 8) as run:
        with anyio.move_on_after(PACED_S):
            async for told in opened.port.events(run=run):
                if isinstance(told.event, OutputAppended):
                    await _take(opened, run, told.event, delays)
    rows = []
    for is_focused, bound in ((False, 25), (True, 10)):
        word = "focused worker" if is_focused else "worker beside it"
        values = delays[is_focused]
        note = f"p50 {percentile(values, 0.5):.1f} ms, {len(values)} lines"
        rows.append(
            Row(
                f"write to subscriber, {word}, p95",
                percentile(values, 0.95),
                bound,
                "ms",
                note=note,
            )
        )
    return rows


async def _take(
    opened: Engine, run: str, event: OutputAppended, delays: dict[bool, list[float]]
) -> None:
    now = time.time()
    is_focused = event.worker.endswith("_1")
    if is_focused:  # reading a log is what focuses it
        lines = [
            line.text
            for line in (
                await opened.port.ask(ReadLog(run, event.worker, after=event.offset - 1))
            ).lines
        ]
    else:  # looked at past the port: that would focus it
        live = opened._coordinator.runs.living[RunId(run)]
        (logbook,) = (book for key, book in live.logbooks.items() if str(key[0]) == event.worker)
        lines = list(logbook.tail()[-1:])
    delays[is_focused].extend((now - float(line)) * 1000 for line in lines if line)


# ------------------------------------------------------------------ nothing to do, and much to read


async def rest() -> list[Row]:
    async with engine() as opened, running(opened, "exec sleep 600", 20):
        await anyio.sleep(2)
        before = time.process_time()
        await anyio.sleep(IDLE_S)
        share = (time.process_time() - before) / IDLE_S * 100
    return [Row("engine idle beside 20 attempts", share, 0.3, "% core")]


async def resume() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="plait-bench-") as folder:
        store = SqliteStore(Layout(Path(folder)))
        facts = await to_thread.run_sync(_write_journal, store)
        journal = await to_thread.run_sync(partial(Journal.open, RunId("r"), store))
        began = time.perf_counter()
        state = await to_thread.run_sync(journal.replay)
        replayed = time.perf_counter() - began
        count = await to_thread.run_sync(lambda: len(list(journal.events())))
        read = time.perf_counter() - began - replayed
        journal.close()
    note = f"{facts} facts, {len(state.workers)} workers; {count} events in {read:.2f} s more"
    return [Row("reading a long run again", replayed, 3, "s", note=note)]


def _write_journal(store: SqliteStore) -> int:
    """Write a run of many workers of one step, by the facts that one of each makes."""
    plan = a_plan(a_step("a", FACTS // 3, merge=MergeMode.EACH), max_concurrent_workers=AT_ONCE)
    journal = Journal.create(RunId("r"), store, plan, {})
    state, count = initial_state(RunId("r"), plan), 0

    def feed(fact: f.Fact) -> None:
        nonlocal state, count
        state = _told(journal, state, fact)
        count += 1

    feed(rf.RunBegan(at=1.0))
    for worker in list(state.workers):
        of: dict[str, Any] = {"worker": worker, "attempt": 1, "at": 1.0}
        feed(f.WorkspaceReady(**of, workspace="/w", prompt="do it"))
        feed(f.AttemptEnded(**of, ok=True))
        feed(f.Collected(**of, change=Change(files=1)))
    journal.close()
    return count


def _told(journal: Journal, state: RunState, fact: f.Fact) -> RunState:
    state, effects = advance(state, fact)
    events = [effect.event for effect in effects if isinstance(effect, Publish)]
    journal.append(fact, events, at=1.0)
    return state


async def help_text() -> list[Row]:
    plait = Path(sys.executable).with_name("plait")
    bare, ours = [], []
    for _ in range(15):
        bare.append((await to_thread.run_sync(shell_cost, f"{sys.executable} -c pass")).cpu_s)
        ours.append((await to_thread.run_sync(shell_cost, f"{plait} --help")).cpu_s)
    value = statistics.median(ours) / statistics.median(bare)
    return [Row("plait --help ÷ python -c pass, CPU", value, 3, "x")]


GROUPS: tuple[Callable[[], Coroutine[Any, Any, list[Row]]], ...] = (
    naps,
    tasks,
    dispatch,
    flood,
    latency,
    rest,
    resume,
    help_text,
)


async def measure(wanted: list[str]) -> int:
    missed = 0
    for group in GROUPS:
        if not wanted or group.__name__ in wanted:
            for row in await group():
                print(row, flush=True)
                missed += not row.is_kept
    return missed


def main() -> None:
    """Print the table; ends with 1 when a bound was missed. Names of groups choose some."""
    words = sys.argv[1:]
    if words[:1] == ["--work"]:
        anyio.run(work, words[1], int(words[2]))
        return
    sys.exit(bool(anyio.run(measure, words)))


if __name__ == "__main__":
    main()

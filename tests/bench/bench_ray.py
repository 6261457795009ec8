"""Measure workers on the nodes of a Ray cluster: `python -m tests.bench.bench_ray`.

A cluster of one node on this machine: how soon an attempt begins where the mirror is warm, how late
a line comes here, how much an agent that floods gets through, and what its result weighs. Then 200
workers at once on four nodes of this machine, and a console on them: how soon a key shows.
`one` and `crowd` as words choose one of both.
"""

import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio

from engine.host.seam import Stream
from engine.ids import AttemptId
from engine.site import wire
from engine.site.child import ChildSite
from engine.site.far import Far
from tests.bench.bench_site import attempt, flood
from tests.support.console_pty import PtyConsole, process_in_pty
from tests.support.measuring import Row, cpu_seconds, read_for, said
from tests.support.ray_node import ray_cluster
from tests.support.shells import Shell, end_engine
from tests.support.sites import RUN, WANTED, WORKER, Scene, scene

ROUNDS, LINES = 7, 200
START_S, LINE_MS, FLOOD, WEIGHT = 1.5, 150.0, 30.0, 1.2
SPEAKS = f"for n in $(seq {LINES}); do date +%s.%N; sleep 0.02; done"
WRITES = "head -c 1000000 /dev/urandom > made"
NODES, KEYS = 4, 60
CROWD = 200
"""Workers at once: more than one machine is good for."""
_PATIENCE_S = 600.0
PLAN = """
runtime:
  max_concurrent_workers: CROWD
  limits: {memory_mb: 64}
  sites: {default: box, box: {ray: {address: "ADDRESS", resources: {slot: 1}}}}
agents:
  talker:
    adapter: scripted
    script: {steps: [{repeat: {times: 100000, steps: [{say: "line {i}"}, {sleep: 1}]}}]}
pipelines:
  - name: crowd
    steps:
      - name: crowd
        agent: talker
        prompt: talk
        merge: none
        strategy: {matrix: {items: [ITEMS], max_concurrency: CROWD}}
"""
ATTACH = 'import sys; from tui.cli import main; sys.exit(main(["attach", "-C", sys.argv[1]]))'


async def first_line(stage: Scene, number: int) -> float:
    """Return the seconds from the wish to start an attempt to its first line."""
    begun = time.perf_counter()
    at = await stage.prepared(stage.at(number))
    await stage.site.launch(at, "echo there; sleep 0.2", {})
    took, offset, name = 0.0, 0, AttemptId(RUN, WORKER, number)
    while True:
        chunk = await stage.site.host.read(name, offset)
        offset = chunk.next_offset
        if not took and any(frame.stream is Stream.OUT for frame in chunk.frames):
            took = time.perf_counter() - begun
        if chunk.end is not None:
            await stage.site.forget(name)
            return took


async def lateness(stage: Scene, number: int) -> list[float]:
    """Return how many milliseconds after it was written each line was here."""
    at = await stage.prepared(stage.at(number))
    await stage.site.launch(at, SPEAKS, {})
    offset, name, late = 0, AttemptId(RUN, WORKER, number), []
    while True:
        chunk = await stage.site.host.read(name, offset, is_focused=True)
        now, offset = time.time(), chunk.next_offset
        for frame in chunk.frames:
            if frame.stream is Stream.OUT:
                late += [(now - float(line)) * 1e3 for line in frame.data.splitlines()]
        if chunk.end is not None:
            await stage.site.forget(name)
            return late


async def weight(stage: Scene, number: int) -> float:
    """Return how much more than its pack the answer with the work of an attempt weighs."""
    site = stage.site
    assert isinstance(site, ChildSite)
    at = await stage.worked(WRITES, await stage.prepared(stage.at(number)))
    work, pack = await site.line.call(Far.collect, at, WANTED, stage.base)
    head, blob = wire.answer(Far.collect, (work, pack))
    return (len(json.dumps(head)) + len(blob)) / len(pack)


async def one() -> list[Row]:
    """Return what is measured of one worker at a time."""
    with tempfile.TemporaryDirectory() as folder:
        async with scene("ray", Path(folder)) as stage:
            cold = await attempt(stage, 1)
            starts = [await first_line(stage, number) for number in range(2, ROUNDS + 2)]
            late = sorted(await lateness(stage, 20))
            floods = [await flood(stage, number) for number in range(21, 24)]
            heavy = await weight(stage, 30)
    note = f"median of {ROUNDS}; the first attempt took {cold:.1f} s"
    start, p95 = statistics.median(starts), late[int(len(late) * 0.95)]
    return [
        Row("warm start of an attempt on a node", start, START_S, "s", note=note),
        Row("line from a node, p95", p95, LINE_MS, "ms", note=f"p50 {late[len(late) // 2]:.0f}"),
        Row("flood from a node", statistics.median(floods), FLOOD, "MB/s", is_least=True),
        Row("result from a node", heavy, WEIGHT, "x its pack"),
    ]


def crowd() -> Iterator[Row]:
    """Measure a console while all workers of four nodes work at once."""
    with ExitStack() as stack:
        cluster = stack.enter_context(ray_cluster())
        cluster.join(*(f"n{number}" for number in range(NODES)), slots=CROWD // NODES)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        shell = Shell(folder / "project", folder / "state", dict(cluster.environment), 600)
        _make(shell, cluster.address)
        began = time.monotonic()
        done = shell.plait("run", "plait.yaml", "--detach")
        assert done.code == 0, done.err
        stack.callback(end_engine, shell)
        while (count := _at_work(shell)).total() < CROWD:
            assert time.monotonic() - began < _PATIENCE_S, count
            time.sleep(1)
        yield Row(
            f"{CROWD} workers on {NODES} nodes: all at work", time.monotonic() - began, 600, "s"
        )
        yield Row("  on the fullest node", max(count.values()), CROWD / NODES, "workers")
        env = {"PLAIT_STATE_HOME": str(shell.state), **shell.env}
        with process_in_pty(ATTACH, str(shell.folder), size=(200, 50), **env) as console:
            console.wait_written(b"RUNNING")
            read_for(console.master, 5.0)
            yield from _keys(console)
        left = time.monotonic()
        assert shell.plait("cancel", "--all", "--kill").code == 1
        yield Row("  all of them stopped", time.monotonic() - left, 60, "s")


def _make(shell: Shell, address: str) -> None:
    shell.folder.mkdir()
    items = ", ".join(f"n{number}" for number in range(CROWD))
    plan = PLAN.replace("ADDRESS", address).replace("ITEMS", items)
    (shell.folder / "plait.yaml").write_text(plan.replace("CROWD", str(CROWD)))
    shell.git("init", "-q", "-b", "main")
    shell.git("add", ".")
    shell.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "plan")


def _at_work(shell: Shell) -> Counter[str]:
    """Return how many workers have said something, by their node."""
    steps = shell.plait("status", "--json").json()["steps"]
    workers = [one for step in steps for one in step["workers"]]
    return Counter(w["site"] for w in workers if w["phase"] == "RUNNING" and w["last_lines"])


def _keys(console: PtyConsole) -> Iterator[Row]:
    """Measure letters typed into a picker, and what the console takes of a core meanwhile."""
    pid, began = console.process.pid, time.monotonic()
    before, written = cpu_seconds(pid), read_for(console.master, 7.0)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
    console.press(b"w")
    read_for(console.master, 1.0)
    times = []
    for number in range(KEYS):
        times.append(console.latency_ms(b"qzQZ"[number % 4 : number % 4 + 1]))
        read_for(console.master, 0.05)
        console.press(b"\x7f")
        read_for(console.master, 0.05)
    times.sort()
    load = f"load {os.getloadavg()[0]:.0f}"
    yield Row("  a letter into a picker, p50", statistics.median(times), 12, "ms", note=load)
    yield Row("  p95", times[int(len(times) * 0.95)], 25, "ms")
    yield Row("  cpu of the console", 100 * share, 15, "%", note=f"{written / 7000:.0f} KB/s")


def main() -> int:
    """Print the rows; return how many missed their bound."""
    if importlib.util.find_spec("ray") is None:
        said("workers on a node", "not measured: Ray is not installed (make ray)")
        return 0
    wanted, missed = sys.argv[1:] or ["one", "crowd"], 0
    for row in anyio.run(one) if "one" in wanted else ():
        said(str(row), "")
        missed += not row.is_kept
    for row in crowd() if "crowd" in wanted else ():
        said(str(row), "")
        missed += not row.is_kept
    return missed


if __name__ == "__main__":
    sys.exit(main())

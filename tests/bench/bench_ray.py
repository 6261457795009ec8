"""Measure a worker on a node of a Ray cluster: `python -m tests.bench.bench_ray`.

A cluster of one node on this machine: how soon an attempt begins where the mirror is warm, how late
a line comes here, how much an agent that floods gets through, and what its result weighs.
"""

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio

from engine.host.seam import Stream
from engine.ids import AttemptId
from engine.site import wire
from engine.site.child import ChildSite
from engine.site.far import Far
from tests.bench.bench_site import attempt, flood
from tests.support.measuring import Row, said
from tests.support.sites import RUN, WANTED, WORKER, Scene, scene

ROUNDS, LINES = 7, 200
START_S, LINE_MS, FLOOD, WEIGHT = 1.5, 150.0, 30.0, 1.2
SPEAKS = f"for n in $(seq {LINES}); do date +%s.%N; sleep 0.02; done"
WRITES = "head -c 1000000 /dev/urandom > made"


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


async def rows() -> list[Row]:
    """Return all that is measured."""
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


def main() -> int:
    """Print the rows; return how many missed their bound."""
    if importlib.util.find_spec("ray") is None:
        said("workers on a node", "not measured: Ray is not installed (make ray)")
        return 0
    found = anyio.run(rows)
    for row in found:
        said(str(row), "")
    return sum(not row.is_kept for row in found)


if __name__ == "__main__":
    sys.exit(main())

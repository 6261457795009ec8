"""Measure what it costs that a worker lives somewhere: `python -m tests.bench.bench_site [COMMIT]`.

This machine beside an engine before there were sites (3e0616d by default), whole attempts one
after the other, in memory; a child process beside this disk, an attempt of 7,000 files in turns;
and what an agent that floods writes through the pipe. Read ratios, not milliseconds.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import anyio

from engine.host.seam import Stream
from engine.ids import AttemptId
from engine.limits import Limits
from tests.bench.bench_before import PAIRS, ROOT, measured, unpacked
from tests.support.measuring import Row, said
from tests.support.sites import RUN, WANTED, WORKER, Scene, scene

BEFORE = "3e0616d"
FILES, FOLDERS, ROUNDS = 7_000, 70, 9
FLOOD_MB = 50
LOCAL, CHILD, FLOOD = 1.03, 1.3, 50.0


def beside_before(before: Path) -> Row:
    """Return what an attempt costs on this machine, as a ratio to the engine of before."""
    took: dict[Path, list[float]] = {before: [], ROOT: []}
    for _ in range(2 * PAIRS):
        for engine, figures in took.items():
            figures.append(sum(measured(engine, {"what": "attempt", "setup": None}).values()))
    then, now = (min(figures) for figures in took.values())
    note = f"{now * 1e3:.0f} ms beside {then * 1e3:.0f} ms"
    return Row("attempt on this machine", now / then, LOCAL, "x before", note=note)


async def many_files(stage: Scene) -> None:
    """Give a scene's repository its files."""
    for number in range(FILES):
        stage.built.write(f"d{number % FOLDERS}/f{number}.txt", f"line {number}\n" * 20)
    stage.base = await anyio.to_thread.run_sync(stage.built.commit)


async def attempt(stage: Scene, number: int) -> float:
    """Return the seconds of one attempt, from nothing to its work at home and its place free."""
    begun = time.perf_counter()
    at = await stage.worked(f"echo {number} > new", await stage.prepared(stage.at(number)))
    await stage.spaces.collect(at, WANTED)
    assert await stage.spaces.release(at, WANTED)
    return time.perf_counter() - begun


async def flood(stage: Scene, number: int) -> float:
    """Return how many megabytes of an agent's output are read in a second."""
    at = await stage.prepared(stage.at(number))
    at = replace(at, limits=Limits(time_seconds=120, output_mb=2 * FLOOD_MB))
    begun = time.perf_counter()
    await stage.site.launch(at, f"yes {'x' * 99} | head -c {FLOOD_MB << 20}", {})
    read, offset = 0, 0
    attempt = AttemptId(RUN, WORKER, number)
    while True:
        chunk = await stage.site.host.read(attempt, offset)
        read += sum(len(frame.data) for frame in chunk.frames if frame.stream is Stream.OUT)
        offset = chunk.next_offset
        if chunk.end is not None:
            break
    seconds = time.perf_counter() - begun
    assert read == FLOOD_MB << 20
    await stage.site.forget(attempt)
    return FLOOD_MB / seconds


async def beside_local() -> list[Row]:
    """Return what a child costs beside this disk, in turns."""
    took: dict[str, list[float]] = {"local": [], "child": []}
    floods: dict[str, list[float]] = {"local": [], "child": []}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stages = {
            kind: await stack.enter_async_context(scene(kind, folder / kind)) for kind in took
        }
        for stage in stages.values():
            await many_files(stage)
        for number in range(1, ROUNDS + 1):
            for kind, stage in stages.items():
                took[kind].append(await attempt(stage, number))
        for number in range(ROUNDS + 1, ROUNDS + 4):
            for kind, stage in stages.items():
                floods[kind].append(await flood(stage, number))
    # The first attempt brings the whole repository to the child.
    here, there = (statistics.median(figures[1:]) for figures in took.values())
    note = f"{there * 1e3:.0f} ms beside {here * 1e3:.0f} ms; the first {took['child'][0]:.1f} s"
    near, far = (statistics.median(figures) for figures in floods.values())
    return [
        Row("attempt of 7,000 files in a child", there / here, CHILD, "x local", note=note),
        Row("flood from a child", far, FLOOD, "MB/s", is_least=True, note=f"here {near:.0f} MB/s"),
    ]


def rows(commit: str) -> Iterator[Row]:
    """Yield all that is measured."""
    yield from anyio.run(beside_local)
    with tempfile.TemporaryDirectory() as folder:
        if unpacked(commit, Path(folder)):
            yield beside_before(Path(folder))
        else:
            said("beside an earlier engine", f"not measured: no commit {commit} in this history")


def main() -> int:
    """Print the rows; return how many missed their bound."""
    missed = 0
    for row in rows(sys.argv[1] if sys.argv[1:] else BEFORE):
        said(str(row), "")
        missed += not row.is_kept
    return missed


if __name__ == "__main__":
    sys.exit(main())

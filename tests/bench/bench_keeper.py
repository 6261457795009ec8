"""Measure keepers, each row beside a peer or a bare spawn in the same run: `python -m` this.

Read ratios and bounds, not milliseconds: the machine is whatever it is. A row says `ok` when it is
within its bound. Files lie in memory unless BENCH_DIR says otherwise, because what a new file costs
on a disk depends on how many were deleted there in the minutes before.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptSpec, Stream
from engine.keeper import proc
from tests.support.measuring import Row
from tests.support.processes import attempt, output, read_all

TELL_TIME = ("bash", "-c", "echo $EPOCHREALTIME")
IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
FLOOD_S, LATENCY_S, IDLE_S = 2.0, 3.0, 6.0
SHORT, FREE_S = 500, 2.0


class Bench:
    """A host with a folder, and numbers for its attempts."""

    def __init__(self, host: LocalHost, folder: Path) -> None:
        folder.mkdir()
        self.host, self.folder = host, folder
        self._number = 0

    def spec(self, *argv: str) -> AttemptSpec:
        self._number += 1
        return attempt(self.folder, *argv, number=self._number)

    async def start(self, *argv: str) -> AttemptSpec:
        spec = self.spec(*argv)
        await self.host.start(spec)
        return spec

    async def finish(self, spec: AttemptSpec) -> bytes:
        frames, _ = await read_all(self.host, spec.attempt)
        await self.host.forget(spec.attempt)
        return output(frames)

    async def run(self, *argv: str) -> bytes:
        return await self.finish(await self.start(*argv))

    async def delay_ms(self) -> float:
        began = time.time()
        return (float(await self.run(*TELL_TIME)) - began) * 1000

    async def many(self, argvs: list[tuple[str, ...]], at_once: int) -> float:
        slots = anyio.CapacityLimiter(at_once)
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for argv in argvs:
                group.start_soon(self._one, slots, argv)
        return time.perf_counter() - began

    async def _one(self, slots: anyio.CapacityLimiter, argv: tuple[str, ...]) -> None:
        async with slots:
            await self.run(*argv)


def bare_delay_ms() -> float:
    began = time.time()
    said = subprocess.run(TELL_TIME, stdout=subprocess.PIPE, check=True).stdout
    return (float(said) - began) * 1000


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def dispatch(bench: Bench) -> list[Row]:
    await bench.run("true")
    bare, kept = [], []
    for _ in range(80):
        bare.append(await to_thread.run_sync(bare_delay_ms))
        kept.append(await bench.delay_ms())
    base = statistics.median(bare)
    together = [await _twenty(bench) for _ in range(7)]
    return [
        Row("dispatch to running over bare spawn, p50", statistics.median(kept) - base, 4, "ms"),
        Row("dispatch to running over bare spawn, p95", percentile(kept, 0.95) - base, 8, "ms"),
        Row("20 at once, all running, median of 7", statistics.median(together), 60, "ms"),
    ]


async def _twenty(bench: Bench) -> float:
    began, delays = time.time(), []

    async def one() -> None:
        delays.append((float(await bench.run(*TELL_TIME)) - began) * 1000)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    return max(delays)


async def cold(bench: Bench) -> list[Row]:
    births = bench.host._births
    births._ask_zygote = _no_zygote  # type: ignore[method-assign,assignment]
    base = [await to_thread.run_sync(bare_delay_ms) for _ in range(15)]
    kept = [await bench.delay_ms() for _ in range(15)]
    value = statistics.median(kept) - statistics.median(base)
    return [Row("cold start over bare spawn, p50", value, 30, "ms")]


async def _no_zygote(_: list[int]) -> bool:
    return False


async def throughput(bench: Bench) -> list[Row]:
    naps: list[tuple[str, ...]] = [("sleep", "0.25")] * 64
    ideal, ours, theirs = 64 / 8 * 0.25, [], []
    for _ in range(3):
        ours.append(ideal / await bench.many(naps, 8))
        theirs.append(ideal / await _timed("seq 64 | xargs -P 8 -I{} sleep 0.25"))
    ratio = statistics.median(ours) / statistics.median(theirs)
    return [
        Row("64 x 0.25 s at 8, share of ideal", statistics.median(ours), 0.95, "", is_least=True),
        Row("the same ÷ xargs -P 8", ratio, 0.97, "x", is_least=True),
    ]


async def many(bench: Bench) -> list[Row]:
    """Short programs under keepers: the host alone, without a run, a journal or a workspace."""
    await bench.run("true")
    (zygote,) = await to_thread.run_sync(_named, "plait-zygote")
    before = _cpu_with_children_s(os.getpid()), _cpu_with_children_s(zygote)
    kept = await bench.many([("true",)] * SHORT, 8)
    await anyio.sleep(FREE_S)  # until those keepers that are free have gone: then they are counted
    spent = _cpu_with_children_s(os.getpid()) - before[0]
    spent += _cpu_with_children_s(zygote) - before[1]
    each = f"{kept / SHORT * 1000:.2f} ms wall, {spent / SHORT * 1000:.2f} ms CPU each"
    xargs, _ = await _peer(f"seq {SHORT} | xargs -P 8 -I{{}} true")
    rows = [Row("500 x true at 8, wall ÷ xargs", kept / xargs, 4, "x", note=each)]
    if shutil.which("parallel"):
        wall, cpu = await _peer(f"seq {SHORT} | parallel -j 8 true {{}} '>' /dev/null")
        rows.append(Row("500 x true at 8, wall ÷ GNU parallel", kept / wall, 1, "x"))
        rows.append(Row("500 x true at 8, CPU ÷ GNU parallel", spent / cpu, 1, "x"))
    return rows


async def _peer(script: str) -> tuple[float, float]:
    before = _cpu_with_children_s(os.getpid())
    return await _timed(script), _cpu_with_children_s(os.getpid()) - before


def _cpu_with_children_s(pid: int) -> float:
    """Of a process and of everybody it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _timed(script: str) -> float:
    began = time.perf_counter()
    await to_thread.run_sync(partial(subprocess.run, ["sh", "-c", script], check=True))
    return time.perf_counter() - began


async def flood(bench: Bench) -> list[Row]:
    line = "x" * 146
    specs = [await bench.start("yes", line) for _ in range(8)]
    counts = [0] * len(specs)

    async def read(place: int, spec: AttemptSpec) -> None:
        offset, tail = 0, b""
        while True:
            chunk = await bench.host.read(spec.attempt, offset)
            offset = chunk.next_offset
            for frame in chunk.frames:
                if frame.stream is Stream.OUT:
                    *lines, tail = (tail + frame.data).split(b"\n")
                    counts[place] += len(lines)

    began = time.perf_counter()
    with anyio.move_on_after(FLOOD_S):
        async with anyio.create_task_group() as group:
            for place, spec in enumerate(specs):
                group.start_soon(read, place, spec)
    rate = sum(counts) / (time.perf_counter() - began) / 1e6
    await _end(bench, specs)
    note = f"slowest of 8 got {min(counts) / max(counts):.0%} of the fastest"
    return [Row("read and split beside 8 floods", rate, 2, "M lines/s", is_least=True, note=note)]


async def _end(bench: Bench, specs: list[AttemptSpec]) -> None:
    from engine.phases import StopCause  # noqa: PLC0415 - only to clean up

    for spec in specs:
        await bench.host.cancel(spec.attempt, StopCause.USER, grace_s=0)
        await bench.host._attempts[spec.attempt].wait_end()
        await bench.host.forget(spec.attempt)
        (Path(spec.directory) / "recording").unlink()


async def latency(bench: Bench) -> list[Row]:
    code = (
        "import time\n"
        "while True: print(time.time(), flush=True); time.sleep(0.0071)"  # out of step with timers
    )
    rows = []
    for is_focused, bound in ((False, 25), (True, 10)):
        specs = [await bench.start(sys.executable, "-c", code) for _ in range(8)]
        delays: list[float] = []
        with anyio.move_on_after(LATENCY_S):
            async with anyio.create_task_group() as group:
                for spec in specs:
                    group.start_soon(_hear, bench, spec, is_focused, delays)
        kind = "focused" if is_focused else "beside"
        value = percentile(delays, 0.95)
        rows.append(Row(f"line written to line seen, {kind}, p95", value, bound, "ms"))
        await _end(bench, specs)
    return rows


async def _hear(bench: Bench, spec: AttemptSpec, is_focused: bool, delays: list[float]) -> None:  # noqa: FBT001 - start_soon passes no keywords
    offset = 0
    while True:
        chunk = await bench.host.read(spec.attempt, offset, is_focused=is_focused)
        offset, now = chunk.next_offset, time.time()
        for line in output(chunk.frames).split():
            delays.append((now - float(line)) * 1000)  # noqa: PERF401 - a comprehension hides it


async def rest(bench: Bench) -> list[Row]:
    specs = [await bench.start("sleep", "600") for _ in range(20)]
    async with anyio.create_task_group() as group:
        for spec in specs:
            group.start_soon(read_all, bench.host, spec.attempt)
        await anyio.sleep(2)
        pids = await to_thread.run_sync(_named, "plait-keeper")
        (zygote,) = await to_thread.run_sync(_named, "plait-zygote")
        shares = [proc.proportional(pid) or 0 for pid in pids]
        mine, theirs = time.process_time(), _cpu_s([*pids, zygote])
        await anyio.sleep(IDLE_S)
        mine, theirs = time.process_time() - mine, _cpu_s([*pids, zygote]) - theirs
        group.cancel_scope.cancel()
    rows = [
        Row("memory (PSS) of a keeper, 20 alive, mean", statistics.mean(shares) / 2**20, 2.5, "MB"),
        Row("memory (PSS) of the zygote", (proc.proportional(zygote) or 0) / 2**20, 4, "MB"),
        Row("engine idle beside 20 attempts", mine / IDLE_S * 100, 0.3, "% core"),
        Row("their 20 keepers and zygote", theirs / IDLE_S * 100, 1.0, "% core"),
    ]
    await _end(bench, specs)
    return rows


def _named(name: str) -> list[int]:
    below = map(proc.look, proc.descendants(os.getpid()))
    return [process.pid for process in below if process and process.name == name]


def _cpu_s(pids: list[int]) -> float:
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


async def measure(wanted: list[str]) -> int:
    groups = [dispatch, cold, throughput, many, flood, latency, rest]
    missed = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", IN_MEMORY)) as folder:
        for group in groups:
            if wanted and group.__name__ not in wanted:
                continue
            async with LocalHost(Path(folder)) as host:
                for row in await group(Bench(host, Path(folder) / group.__name__)):
                    print(row, flush=True)
                    missed += not row.is_kept
    return missed


def main() -> None:
    """Print the table; ends with 1 when a bound was missed. Names of groups choose some."""
    sys.exit(bool(anyio.run(measure, sys.argv[1:])))


if __name__ == "__main__":
    main()

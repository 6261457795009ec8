"""Measure what a sandbox and cgroups add to one start: `python -m tests.bench.bench_sandbox`.

Every row is measured in turn with the others, so that whatever else runs here weighs on all alike.
Asked: p50 at most 40 ms over a bare spawn, cgroups made and removed included.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.limits import Limits
from engine.sandbox.confine import confine, looking, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest
from tests.support.sandboxes import Scene, run

ROUNDS = 60
WHOLE = "confine + cgroups + bwrap + release"
LIMITS = Limits(memory_mb=1024, cpu_percent=200, pids=512, disk_mb=1024)


def main() -> None:
    """Print a table; the exit code says whether the bar was met."""
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene.build(Path(folder) / "scene")
        try:
            met = _measure(scene, Path(folder) / "state")
        finally:
            scene.close()
    sys.exit(0 if met else 1)


def _measure(scene: Scene, state: Path) -> bool:
    best = probe(os.environ, state)
    probing = _seconds(lambda: probe(os.environ, state.with_name("again")))
    fenced = probe({**os.environ, "PLAIT_SANDBOX": "landlock"}, state)
    request = scene.request(limits=LIMITS)
    standing = confine(best, scene.request(limits=LIMITS, name="standing"))
    rows: dict[str, Callable[[], object]] = {
        "bare spawn": lambda: _spawn(("true",)),
        "confine and release alone": lambda: release(confine(best, request)),
        "environment alone": lambda: environment(best, request),
        "profile carried out, no confine": _carried(standing, scene),
        WHOLE: lambda: _whole(best, request, scene),
        "looking with bwrap, start to end": lambda: _look(best, request),
    }
    if fenced.has(Mechanism.LANDLOCK):
        rows["confine + cgroups + landlock + release"] = lambda: _whole(fenced, request, scene)
        rows["looking with landlock, start to end"] = lambda: _look(fenced, request)
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, work in rows.items():
            times[name].append(_seconds(work))
    release(standing)
    bare = statistics.median(times["bare spawn"])
    print(f"probing everything, once a boot: {probing * 1000:.0f} ms; {ROUNDS} rounds")
    print(f"{'':42}{'p50 ms':>8}{'p95 ms':>8}{'over bare':>11}")
    for name, seen in times.items():
        middle, high = statistics.median(seen), statistics.quantiles(seen, n=20)[-1]
        over = f"{(middle - bare) * 1000:.1f}"
        print(f"{name:42}{middle * 1000:8.1f}{high * 1000:8.1f}{over:>11}")
    return statistics.median(times[WHOLE]) - bare <= 0.040  # the bar, in seconds


def _look(machine: MachineSupport, request: ConfineRequest) -> None:
    with looking(machine, request) as words:
        _spawn((*words, "true"))


def _carried(profile: Profile, scene: Scene) -> Callable[[], object]:
    return lambda: run(profile, ("true",), env={"PATH": os.defpath}, cwd=scene.workspace)


def _whole(machine: MachineSupport, request: ConfineRequest, scene: Scene) -> None:
    profile = confine(machine, request)
    run(profile, ("true",), env={"PATH": os.defpath}, cwd=scene.workspace)
    release(profile)


def _spawn(argv: tuple[str, ...]) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

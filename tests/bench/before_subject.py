"""Time one engine from outside, through its public door alone.

`bench_before` starts this file with the engine to measure on PYTHONPATH; it prints medians as JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio

from engine import Engine

IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
FOLDER = os.environ.get("BENCH_DIR", IN_MEMORY if Path(IN_MEMORY).is_dir() else None)
"""In memory by default: on ext4 one checkout of 4,000 files took 0.6 s and the next one 2 s."""
FILES, FOLDERS, WORKERS, ATTEMPTS = 4_000, 40, 6, 9
LANDED, ENDED = "Landed", "RunWaiting"
PAUSE_S = 0.5
"""A human looks between two landings; meanwhile the worktree of the last one is removed."""
PARTS = {"PREPARING": "prepare", "RUNNING": "run", "COLLECTING": "collect"}


def repository(root: Path) -> Path:
    """Build a repository of 4,000 files."""
    project = root / "repo"
    for number in range(FILES):
        path = project / f"d{number % FOLDERS}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 20)
    (project / ".gitignore").write_text("node_modules/\n")
    (project / "package-lock.json").write_text("{}")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "base"]):
        subprocess.run(["git", "-C", str(project), *words], check=True, stdout=subprocess.DEVNULL)
    return project


def manifest(setup: str | None, check: str | None, workers: int) -> dict[str, Any]:
    """Return a manifest of small steps, each landed on its own."""
    step = {"check": check, "merge": "each"} if check else {"merge": "each"}
    steps = [{"name": f"s{n}", "run": f"echo {n} > new_{n}.txt", **step} for n in range(workers)]
    made = {
        "runtime": {"max_concurrent_workers": 1},
        "pipelines": [{"name": "p", "steps": steps}],
    }
    return {**made, "workspace": {"setup": setup}} if setup else made


async def landing(engine: Engine, setup: str | None) -> dict[str, float]:
    """Land one worker after the other, each checked; return the median of the warm ones."""
    run = await engine.start(manifest(setup, "test -f package-lock.json", WORKERS))
    await run.wait()
    took = []
    for worker in (await engine.view(run.id)).workers:
        await anyio.sleep(PAUSE_S)
        start = time.perf_counter()
        reply = await engine.land(worker.worker)
        took.append(time.perf_counter() - start)
        if type(reply).__name__ != LANDED:
            raise SystemExit(f"not landed: {reply}")
    return {"warm": statistics.median(took[1:])}


async def attempt(engine: Engine, _setup: str | None) -> dict[str, float]:
    """Run one worker after the other, each alone; return the median of each phase."""
    took: dict[str, list[float]] = defaultdict(list)
    for _ in range(ATTEMPTS):
        run = await engine.start(manifest(None, None, 1))
        phase, began = "", 0.0
        async for told in engine.events(0, run=run.id):
            event, now = told.event, time.perf_counter()
            if type(event).__name__ == "WorkerMoved":
                if phase in PARTS:
                    took[PARTS[phase]].append(now - began)
                phase, began = str(event.after), now
            elif type(event).__name__ == ENDED:
                break
    return {part: statistics.median(figures[1:]) for part, figures in took.items()}


async def main(what: str, setup: str | None) -> None:
    """Measure in a fresh repository with a home and state of its own."""
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="plait-bench-") as folder:
        root = Path(folder)
        environment = {**os.environ, "HOME": folder, "PLAIT_STATE_HOME": str(root / "state")}
        names = {
            f"GIT_{who}_{part}": "bench@localhost"
            for who in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        }
        environment |= names
        os.environ.update(names)
        async with Engine.open(repository(root), environment=environment) as engine:
            figures = await (landing if what == "land" else attempt)(engine, setup)
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    anyio.run(main, given["what"], given["setup"])

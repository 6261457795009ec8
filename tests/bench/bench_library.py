"""Agents in parallel beside a perfect list schedule: `python tests/bench/bench_library.py`.

24 prompts, one in three eight times as long, as scripted sleeps. A perfect list schedule gives each
to the first place that is free and costs nothing else; what is over it is ours: worktrees, sandbox,
start, collecting, waiting for a place.
"""

import heapq
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import anyio

from engine import Agent, Success
from engine.api import make_repository

SHORT_S, LONG_S = 1.0, 8.0
JOBS = [LONG_S if n % 3 == 0 else SHORT_S for n in range(24)]


def list_schedule(jobs: list[float], places: int) -> float:
    """Return when the last job ends if each begins, in order, at the first place that is free."""
    free = [0.0] * places
    for job in jobs:
        heapq.heapreplace(free, free[0] + job)
    return max(free)


async def measure(repo: Path, places: int, isolation: str) -> tuple[float, float]:
    """The time that the prompts take, and the time that one short prompt takes beyond its sleep."""
    command = ["sh", "-c", "sleep $0", "{prompt}"]
    async with Agent(command=command, repo=repo, isolation=isolation) as agent:
        async with agent.fork() as warm:
            await warm.prompt("0")
            began = perf_counter()
            await warm.prompt("0")
            alone = perf_counter() - began
        began = perf_counter()
        results = await agent.run_parallel_prompts(map(str, JOBS), max_parallel_runs=places)
        took = perf_counter() - began
    assert all(isinstance(result, Success) for result in results), results
    return took, alone


async def main(repo: Path) -> None:
    """Print one line for each number of places."""
    await make_repository(repo, dict(os.environ), message="Begin")
    for isolation in ("directory", "worktree"):
        for places in (3, 6, 8):
            took, alone = await measure(repo, places, isolation)
            perfect = list_schedule(JOBS, places)
            honest = list_schedule([job + alone for job in JOBS], places)
            print(
                f"{isolation:9} k={places}: {took:5.1f} s; of the bare sleeps {took / perfect:.2f};"
                f" of prompts that cost {alone:.2f} s each by themselves {took / honest:.2f}"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAIT_STATE_HOME"] = f"{folder}/state"
        sample = Path(folder, "repo")
        sample.mkdir()
        (sample / "a.txt").write_text("a\n")
        anyio.run(main, sample)

"""Measure how the cost of the core and its journal grows with a run: `python -m` this.

No attempt runs: facts stand for them, so one machine shows what a hundred thousand of them would
ask of the engine. Facts and events go through the real core into a real journal.
"""

import os
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance, is_idle
from engine.core.effects import PrepareWorkspace, Publish
from engine.core.state import initial_state
from engine.ids import RunId
from engine.messages.results import Change
from engine.policies import MergeMode
from engine.run.journal import Journal
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore
from tests.support.measuring import Row
from tests.support.plans import a_plan, a_step

FOLDER = os.environ.get("BENCH_DIR", "/dev/shm")  # noqa: S108 - a folder of our own is made in it
FEW, MANY = (50, 50), (1_000, 50)
MOST = (int(os.environ.get("BENCH_WORKERS", "100000")), 5_000)
ROUNDS = 5


def played(workers: int, slots: int) -> tuple[float, int]:
    """Let so many workers come to their end, each as soon as it has a slot; CPU, and facts."""
    plan = a_plan(a_step("a", workers, merge=MergeMode.EACH), max_concurrent_workers=slots)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="plait-bench-") as folder:
        store = SqliteStore(Layout(Path(folder)))
        began = time.process_time()
        journal = Journal.create(RunId("r"), store, plan, {})
        state, count, running = initial_state(RunId("r"), plan), 0, deque[Any]()

        def feed(fact: f.Fact) -> None:
            nonlocal state, count
            state, effects = advance(state, fact)
            events = [effect.event for effect in effects if isinstance(effect, Publish)]
            journal.append(fact, events, at=fact.at)
            running.extend(e.worker for e in effects if isinstance(e, PrepareWorkspace))
            count += 1

        feed(rf.RunBegan(at=1.0))
        while running:
            of: dict[str, Any] = {"worker": running.popleft(), "attempt": 1, "at": float(count)}
            feed(f.WorkspaceReady(**of, workspace="/w", prompt="do it"))
            feed(f.AttemptEnded(**of, ok=True))
            feed(f.Collected(**of, change=Change(files=1)))
        journal.close()
        spent = time.process_time() - began
        if not is_idle(state) or count != 3 * workers + 1:
            raise SystemExit(f"{workers} workers did not come to their end")
        return spent, count


def each_us(workers: int, slots: int, rounds: int = 1) -> float:
    """Return the CPU time of one fact, in microseconds: of the quickest of some rounds."""
    runs = [played(workers, slots) for _ in range(rounds)]
    return min(spent / count for spent, count in runs) * 1e6


def main() -> None:
    """Print the table; ends with 1 when a bound was missed."""
    few, many = each_us(*FEW, ROUNDS * 4), each_us(*MANY, ROUNDS)
    most = each_us(*MOST)
    rows = [
        Row("a fact of 1,000 workers at 50 ÷ of 50, CPU", many / few, 1.1, "x"),
        Row(
            f"a fact of {MOST[0]:,} workers at {MOST[1]:,} ÷ of 50, CPU",
            most / few,
            3,
            "x",
            note=f"{most:.0f} µs each, {most * (3 * MOST[0] + 1) / 1e6:.0f} s in all",
        ),
    ]
    for row in rows:
        print(row, flush=True)
    sys.exit(not all(row.is_kept for row in rows))


if __name__ == "__main__":
    main()

"""Measure a history: searches and figures over many runs, and an engine that shares its runs.

Read bounds, not milliseconds beyond them: the machine is whatever it is. The engine is this
process, so its CPU is that of this process with all its threads, without keepers and agents.
`reads` or `cpu` behind the command measures one of the two.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio

from engine.api import Engine
from engine.history.postgres import PostgresHistory
from engine.history.seam import (
    AttemptRecord,
    HistoryDatabase,
    JournalPiece,
    Query,
    RunRecord,
)
from engine.history.sqlite import SqliteHistory
from engine.messages.results import Outcome
from engine.messages.statistics import Axis
from engine.store.store import JournalEntry
from tests.support.measuring import Row
from tests.support.postgres import Postgres, started

RUNS, ATTEMPTS = 10_000, 5
SEARCH_S, STATS_S, CPU_RATIO = 0.1, 0.3, 1.15
ROUNDS = 3
WORKERS, PER_SECOND, SECONDS, CPU_ROUNDS = 50, 100, 60, 2
CHATTER = f"""import sys, time
began = time.monotonic()
for n in range(1, {PER_SECOND * SECONDS + 1}):
    time.sleep(max(began + n / {PER_SECOND} - time.monotonic(), 0))
    sys.stdout.write(f"line {{n}}\\n")
    sys.stdout.flush()
"""
"""Says so much, by the clock: whoever falls behind catches up."""
LAST = f"line {PER_SECOND * SECONDS}"
WORDS = [
    "fix",
    "quoted",
    "field",
    "parser",
    "test",
    "refactor",
    "cache",
    "index",
    "login",
    "page",
    "error",
    "retry",
    "merge",
]
AT = 1_750_000_000.0


def runs() -> Iterator[JournalPiece]:
    random = Random(1)
    for number in range(RUNS):
        began = AT + number * 3600
        run = RunRecord(
            uid=f"{number:032x}",
            run=f"{number:06x}",
            name=random.choice(WORDS),
            repository=f"example.org/team/{number % 20}",
            person=f"person {number % 12}",
            host="host",
            began=began,
            ended=began + 600,
            outcome="success",
            seq=1,
        )
        attempts = [attempt(random, number, began, index) for index in range(ATTEMPTS)]
        event = JournalEntry(1, began, "RunStarted", "{}")
        yield JournalPiece(run=run, events=[event], attempts=attempts)


def attempt(random: Random, number: int, began: float, index: int) -> AttemptRecord:
    is_good = random.random() < 0.7
    return AttemptRecord(
        worker=f"write/worker_{index + 1}",
        attempt=1,
        step="write",
        agent=("claude", "codex", "gemini")[index % 3],
        model=("large", "small")[index % 2],
        week=f"2026-W{number // 200:02}",
        began=began,
        ended=began + 300,
        outcome="success" if is_good else "failed",
        check_passed=is_good,
        usd=random.random(),
        landed="c0ffee" if is_good and index == 0 else None,
        prompt=" ".join(random.choices(WORDS, k=60)) + f" ticket{number}",
    )


def quickest(act: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS + 2):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return min(taken)


def read(name: str, history: HistoryDatabase, settle: Callable[[], object]) -> Iterator[Row]:
    history.up()
    began = time.perf_counter()
    for piece in runs():
        history.push(piece)
    spent = time.perf_counter() - began
    settle()
    note = f"filled with {RUNS * ATTEMPTS:,} attempts at {RUNS / spent:,.0f} runs a second"
    for what, query in (
        ("rare word", Query(words=f"ticket{RUNS // 2}")),
        ("common words", Query(words="quoted par")),
        ("common word, one person", Query(words="cache", person="person 3")),
        ("the newest", Query(repository="example.org/team/7")),
    ):
        taken = quickest(lambda query=query: history.search(query))
        yield Row(f"{name}: search, {what}", taken * 1e3, SEARCH_S * 1e3, "ms", note=note)
        note = ""
    for axis in (Axis.AGENT, Axis.PERSON, Axis.WEEK):
        taken = quickest(lambda axis=axis: history.figures(axis, Query()))
        yield Row(f"{name}: stats by {axis}, all", taken * 1e3, STATS_S * 1e3, "ms")


def manifest(*, is_shared: bool) -> dict[str, Any]:
    step = {"name": "a", "run": f"python3 -S -c '{CHATTER}'", "concurrency": WORKERS}
    runtime: dict[str, Any] = {
        "isolation_strategy": "directory",
        "max_concurrent_workers": WORKERS,
        "limits": {"memory_mb": 64},
    }
    if is_shared:
        runtime["database"] = {"strategy": "shared"}
    return {"runtime": runtime, "pipelines": [{"name": "p", "steps": [step]}]}


async def cpu_of_run(url: str, *, is_shared: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as folder:
        project = Path(folder, "project")
        project.mkdir()  # noqa: ASYNC240 - before anything is measured
        state = f"{folder}/state"
        env = {**os.environ, "PLAIT_STATE_HOME": state, "PLAIT_DATABASE_URL": url}
        async with Engine.open(project, environment=env) as engine:
            run = await engine.start(manifest(is_shared=is_shared))
            began = time.process_time()
            report = await run.wait()
            assert report.outcome is Outcome.SUCCESS
            heard = [await engine.log(run.id, f"a/worker_{n + 1}", most=1) for n in range(WORKERS)]
            assert all(chunk.lines[-1].text == LAST for chunk in heard)
        return time.process_time() - began


def beside_a_run(server: Postgres) -> Row:
    url = server.database()
    with closing(PostgresHistory(url)) as history:
        history.up()
        without, beside = (
            min(
                anyio.run(lambda shared=shared: cpu_of_run(url, is_shared=shared))
                for _ in range(CPU_ROUNDS)
            )
            for shared in (False, True)
        )
        assert history.extent().runs == CPU_ROUNDS
    what = f"{WORKERS} workers, {PER_SECOND} lines/s each, {SECONDS} s: CPU"
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    note = f"{without:.2f} s without, {beside:.2f} s with PostgreSQL; load {load}"
    return Row(what, beside / without, CPU_RATIO, "x", note=note)


def main(wanted: Sequence[str]) -> int:
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(prefix="plait-bench-") as folder, started() as server:
        if "reads" in wanted:
            with closing(SqliteHistory(Path(folder, "history.db"))) as history:
                for row in read("SQLite", history, lambda: None):
                    tell(row)
            url = server.database()
            vacuum = partial(server.execute, "VACUUM ANALYZE", url)  # as the server does by itself
            with closing(PostgresHistory(url)) as shared:
                for row in read("PostgreSQL", shared, vacuum):
                    tell(row)
        if "cpu" in wanted:
            tell(beside_a_run(server))
    return 0 if all(row.is_kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ("reads", "cpu")))

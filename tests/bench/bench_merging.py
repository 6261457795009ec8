"""What merging in memory costs, beside `git merge` and `git merge --abort` in a working tree.

Each row is measured beside its peer in the same run; read ratios, not milliseconds. `python -m` it
or run the file; it ends with 1 where a bound is broken.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.api import Engine
from engine.commands import StopRun
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.runner import Repo
from engine.merge import Names, ResolutionSession, propose
from engine.supervisor.merging.conflicts import read_conflicts
from engine.supervisor.merging.preview import preview
from engine.supervisor.merging.results import result_tree
from engine.supervisor.merging.views import Lens, file_views
from tests.support.engine_runs import scripted
from tests.support.merging_runs import MergingPlace
from tests.support.repositories import RepositoryBuilder

FILES, BRANCHES, ROUNDS = 5_000, 50, 5
RATIO, EACH_S = 0.1, 0.010
WATCHED, WATCHED_FILES, WATCHED_S, SHARE = 8, 1_370, 60.0, 0.10
Work = Callable[[], Awaitable[object]]


def repository(folder: Path) -> RepositoryBuilder:
    """Many files, and branches that all change one of them in the same place, and others too."""
    built = RepositoryBuilder.with_files(folder / "repo", FILES)
    lines = "".join(f"a line of code, number {number}\n" for number in range(400))
    built.commit({"busy.py": lines}, "busy")
    start = built.head
    for number in range(BRANCHES):
        built.git("checkout", "-q", "-b", f"b{number}", start)
        edited = lines.replace("number 7\n", f"number 7, as {number} wants it\n")
        own = edited.replace(f"number {50 + number}\n", f"number {50 + number}, mine\n")
        built.commit({"busy.py": own, f"d{number % 50}/own{number}": "own\n"}, f"b{number}")
    built.git("checkout", "-q", "b0")
    built.git("gc", "-q")
    return built


def in_a_worktree(built: RepositoryBuilder) -> float:
    """Seconds of `git merge` into a checkout, and of `git merge --abort` after it."""
    built.git("checkout", "-q", "b0")
    times: list[float] = []
    for number in range(1, ROUNDS + 1):
        began = time.perf_counter()
        done = built.try_git("merge", "-q", f"b{number}")
        built.git("merge", "--abort")
        times.append(time.perf_counter() - began)
        assert done.returncode == 1, "it was to conflict"
    return sorted(times)[len(times) // 2]


async def took(work: Work) -> float:
    """Seconds of the median of several rounds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def row(name: str, seconds: float, bound: float | None) -> bool:
    """One line; whether it is within its bound."""
    verdict = "" if bound is None else ("ok" if seconds <= bound else "OVER")
    limit = "" if bound is None else f"at most {bound * 1000:8.2f} ms"
    print(f"{name:<52}{seconds * 1000:9.2f} ms   {limit:<20}{verdict}")
    return verdict != "OVER"


async def measure(built: RepositoryBuilder) -> bool:
    """Every row."""
    peer = in_a_worktree(built)
    print(f"{FILES} files, {BRANCHES} branches, git merge + abort {peer * 1000:.1f} ms")
    repo = await Repo.open(built.path, built.environment)
    merger = Merger(repo)
    base = built.git("merge-base", "b0", "b1")
    questions = [Sides(base, "b0", f"b{number}") for number in range(1, BRANCHES)]
    questions.append(Sides(base, "b1", "b2"))
    many = await took(partial(merger.preview, questions)) / len(questions)
    one = await took(partial(preview, repo, "b0", "b1"))
    made = await preview(repo, "b0", "b1")
    files = made.conflicts.files
    session = ResolutionSession(files).choose_rest("both")
    results = session.results() or ()
    read = await took(lambda: read_conflicts(repo, made.merged, made.sides, Names("b0", "b1")))
    tree = await took(lambda: result_tree(repo, made.merged, made.conflicts, results))

    async def shown() -> object:
        return file_views(session, Lens(propose=propose))

    answers = await merger.preview(questions)
    assert all(isinstance(one, MergedTrees) and one.conflicts for one in answers)
    return all(
        [
            row("a preview, one of fifty", many, RATIO * peer),
            row("a preview, one of fifty (in itself)", many, EACH_S),
            row("a preview alone, its conflicts read", one, None),
            row("  of that, reading the conflicts", read, None),
            row("the tree of what was decided", tree, None),
            row("what a console is shown, after a decision", await took(shown), 0.05),
        ]
    )


async def watching(folder: Path) -> bool:
    """The whole engine, radar included, beside workers that run and change nothing."""
    place = MergingPlace(folder, {f"d{n % 40}/f{n}": f"{n}\n" for n in range(WATCHED_FILES)})
    silent = scripted({"shell": "exec sleep 600"}, {"result": "done"})
    steps = [{"name": f"s{n}", "agent": silent} for n in range(1, WATCHED + 1)]
    plan = place.manifest(*steps, isolation_strategy="worktree")
    async with place.engine(within_s=300) as engine:
        run = await engine.start(plan)
        while not await _seen_by_radar(engine, run.id):  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(0.5)
        before = used()
        await anyio.sleep(WATCHED_S)
        share = (used() - before) / WATCHED_S
        await engine.command(StopRun(run=run.id, is_kill=True))
        await run.wait()
    name = f"radar and engine, {WATCHED} silent workers, share of a core"
    verdict = "ok" if share <= SHARE else "OVER"
    print(f"{name:<52}{share:9.1%}      at most {SHARE:8.0%}    {verdict}")
    return share <= SHARE


async def _seen_by_radar(engine: Engine, run: str) -> bool:
    return all(worker.is_radar_seen for worker in (await engine.port.view(run)).workers)


def used() -> float:
    """Seconds of processor time of this process, and of the children it has waited for."""
    return sum(os.times()[:4])


def main() -> int:
    """Measure once; 1 where a bound is broken."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        try:
            is_well = anyio.run(measure, repository(Path(folder)))
            return 0 if anyio.run(watching, Path(folder) / "watched") and is_well else 1
        except subprocess.CalledProcessError as failed:
            print(failed.stderr)
            raise


if __name__ == "__main__":
    sys.exit(main())

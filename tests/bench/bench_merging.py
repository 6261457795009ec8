"""Measure merging in memory, beside `git merge` and `git merge --abort` in a working tree.

Each row is measured beside its peer in the same run, in CPU time; read ratios. `python -m` it
or run the file; it ends with 1 where a bound is broken.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
from anyio import to_thread

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.api import Engine
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.runner import Repo
from engine.merge import ResolutionSession, propose
from engine.messages.commands import StopRun
from engine.messages.questions import ReadRun
from engine.review.preview import OpenMerge, preview
from engine.review.results import result_tree
from engine.review.showing import Lens, file_views
from tests.support.engine_runs import scripted
from tests.support.merging_runs import MergingPlace
from tests.support.repositories import RepositoryBuilder

FILES, COMMITS, BRANCHES, ROUNDS, LONE = 7_000, 300, 50, 8, 25
RATIO, FRESH_RATIO, EACH_S = 0.1, 0.15, 0.010
WATCHED, WATCHED_FILES, WATCHED_S, SHARE = 8, 1_370, 60.0, 0.10
Work = Callable[[], Awaitable[object]]


def repository(folder: Path) -> RepositoryBuilder:
    """A real-sized one: nested folders, a packed history of some thousand objects, attributes.

    Its branches all change one file in the same place, and others too.
    """
    lines = "".join(f"a line of code, number {number}\n" for number in range(400))
    names = [f"pkg{n % 30}/mod{n % 300 // 30}/sub{n % 900 // 300}/f{n}.py" for n in range(FILES)]
    files = {name: "".join(f"line {k} of {name}\n" for k in range(20)) for name in names}
    built = RepositoryBuilder(folder / "repo")
    built.commit({**files, "busy.py": lines, ".gitattributes": "*.png binary\n"}, "start")
    for number in range(COMMITS):
        built.commit({names[number * 7]: f"changed {number}\n"}, f"change {number}")
    start = built.head
    for number in range(BRANCHES):
        built.git("checkout", "-q", "-b", f"b{number}", start)
        edited = lines.replace("number 7\n", f"number 7, as {number} wants it\n")
        own = edited.replace(f"number {50 + number}\n", f"number {50 + number}, mine\n")
        built.commit({"busy.py": own, f"pkg{number % 30}/own{number}": "own\n"}, f"b{number}")
    built.git("checkout", "-q", "b0")
    built.git("gc", "-q")
    return built


def in_a_worktree(built: RepositoryBuilder, number: int) -> None:
    """`git merge` into a checkout, and `git merge --abort` after it."""
    assert built.try_git("merge", "-q", f"b{number}").returncode == 1, "it was to conflict"
    built.git("merge", "--abort")


async def worked(work: Work) -> float:
    """Processor seconds of the quickest of several rounds, all processes that end in it counted."""
    times: list[float] = []
    for _ in range(ROUNDS):
        began = used()
        await work()
        times.append(used() - began)
    return min(times)


def row(name: str, seconds: float, bound: float | None) -> bool:
    """One line; whether it is within its bound."""
    verdict = "" if bound is None else ("ok" if seconds <= bound else "OVER")
    limit = "" if bound is None else f"at most {bound * 1000:8.2f} ms"
    print(f"{name:<52}{seconds * 1000:9.2f} ms   {limit:<20}{verdict}")
    return verdict != "OVER"


async def single(repo: Repo, built: RepositoryBuilder) -> tuple[float, float, float]:
    """Processor seconds of the first preview in an engine, of each after it, and of the peer."""
    mine, peer = [0.0, 0.0], 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(repo.standing.serve)
        await anyio.lowlevel.checkpoint()
        for number in range(1, LONE + 1):
            began = used()
            await preview(repo, "b0", f"b{number}")
            if number in {1, LONE}:  # what a standing git has used only counts when it has ended
                await repo.standing._end_all()
            mine[number > 1] += used() - began
            began = used()
            await to_thread.run_sync(in_a_worktree, built, number)
            peer += used() - began
        tasks.cancel_scope.cancel()
    return mine[0], mine[1] / (LONE - 1), peer / LONE


async def measure(built: RepositoryBuilder) -> bool:
    """Every row."""
    repo = await Repo.open(built.path, built.environment)
    merger = Merger(repo)
    base = built.git("merge-base", "b0", "b1")
    questions = [Sides(base, "b0", f"b{number}") for number in range(1, BRANCHES)]
    questions.append(Sides(base, "b1", "b2"))
    first, lone, peer = await single(repo, built)
    print(f"{FILES} files, {BRANCHES} branches, git merge + abort {peer * 1000:.1f} ms, all CPU")
    many = await worked(partial(merger.preview, questions)) / len(questions)
    numbers = iter(range(1, BRANCHES))
    outside = await worked(lambda: preview(repo, "b0", f"b{next(numbers)}"))
    fresh = await worked(
        lambda: OpenMerge.begin(
            built.path, target="b0", incoming="b3", environment=built.environment
        )
    )
    made = await preview(repo, "b0", "b1")
    session = ResolutionSession(made.conflicts.files).choose_rest("both")
    results = session.results() or ()
    tree = await worked(lambda: result_tree(repo, made.merged, made.conflicts, results))

    async def shown() -> object:
        return file_views(session, Lens(propose=lambda _, hunk: propose(hunk)))

    answers = await merger.preview(questions)
    assert all(isinstance(one, MergedTrees) and one.conflicts for one in answers)
    return all(
        [
            row("a preview, one of fifty", many, RATIO * peer),
            row("a preview, one of fifty (in itself)", many, EACH_S),
            row("a preview in an engine, conflicts read", lone, RATIO * peer),
            row("  the first of them, gits started and ended", first, None),
            row("  one without an engine", outside, None),
            row("open_merge where nothing is known yet", fresh, FRESH_RATIO * peer),
            row("the tree of what was decided", tree, None),
            row("what a console is shown, after a decision", await worked(shown), 0.05),
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
    return all(worker.is_radar_seen for worker in (await engine.port.ask(ReadRun(run))).workers)


def used() -> float:
    """Seconds of CPU time of this process, and of the children it has waited for."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, whose))


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

"""A worker's way through git beside the bare commands it stands for, in one interleaved run.

python -m tests.bench.bench_git_work [FILES]        (4,000 by default)

Read ratios, not milliseconds. A row says `ok` when it is within its bound.
"""

import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from engine.api import Engine
from engine.git.collection import CollectRequest
from engine.git.composition import Composed, LandRequest, compose
from engine.git.landing import LandingDone, LandPrepared, land, prepare_landing
from engine.git.merge3 import Merger
from engine.git.removal import examine, remove
from engine.site.trash import discard, lend
from engine.store.layout import Layout
from tests.bench.bench_engine import FOLDER
from tests.support.git_lab import Lab
from tests.support.measuring import Row
from tests.support.repositories import RepositoryBuilder

ROUNDS, LANDINGS, GROWN, CROWD = 7, 50, 7_000, 8
NAP_S = 5
WORK = "for n in 1 2 3; do echo $n > new$n; done"


async def took(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that something takes."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def worked(work: Callable[[], Awaitable[object]]) -> float:
    """Processor seconds that something takes, with all the processes it starts."""

    def spent() -> float:
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))

    start = spent()
    await work()
    return spent() - start


async def apart(work: Callable[[], object]) -> None:
    """Something blocking, in a thread."""
    await to_thread.run_sync(work)


async def workers(lab: Lab, root: Path) -> list[Row]:
    """From dispatch to the collected change, and giving the worktree back."""
    built = lab.built
    whole: list[tuple[float, float]] = []
    gone: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        plain, name = root / f"plain{number}", f"r{number}/one/worker_1@1"

        def bare(plain: Path = plain, number: int = number) -> None:
            built.git("worktree", "add", "-q", "-b", f"plain{number}", str(plain))
            built.shell(f"{WORK}; git add -A; git commit -qm work", cwd=plain)

        async def ours(name: str = name) -> None:
            space = await lab.prepare(name)
            await apart(lambda: lab.agent(space, WORK))
            await lab.collect(space)

        whole.append((await took(ours), await took(lambda bare=bare: apart(bare))))
        verdict = await examine(lab.repo, await lab.prepare(name), CollectRequest(author=lab.me))
        given = await took(lambda v=verdict, n=number: remove(lab.repo, v, root / f"trash{n}"))
        words = ("worktree", "remove", "--force", str(plain))
        gone.append((given, await took(lambda w=words: apart(lambda: built.git(*w)))))
    return [
        _ratio("dispatch to collected change", whole, 1.5, "worktree add, add, commit"),
        _ratio("release", gone, 0.1, "worktree remove"),
    ]


async def landings(root: Path) -> list[Row]:
    """Fifty clean changes onto one branch: by `git merge`, and by ours, checked out or not.

    What counts is CPU time, ours and that of every git: the wall is everybody's.
    """
    lab = await Lab.open(root / "landings", _grown(root / "grown"))
    built, base = lab.built, lab.built.head
    heads = [_change(built, base, n) for n in range(LANDINGS)]

    async def merge_all() -> None:
        for head in heads:
            await apart(lambda head=head: built.git("merge", "-q", "--no-ff", "-m", "x", head))

    def back() -> None:
        built.git("reset", "-q", "--hard", base)
        time.sleep(1)  # git reads files again that are as new as its index
        built.git("update-index", "-q", "--refresh")

    built.git("branch", "aside", base)
    theirs, here, aside = [], [], []
    for _ in range(3):
        await apart(back)
        theirs.append(await worked(merge_all))
        await apart(back)
        here.append(await worked(lambda: _land_all(lab, base, heads, "main")))
        assert built.status() == ""
        built.git("update-ref", "refs/heads/aside", base)
        aside.append(await worked(lambda: _land_all(lab, base, heads, "aside")))
        assert built.rev("aside^{tree}") == built.rev("main^{tree}")
    merge = min(theirs)
    each = f"CPU time; git merge takes {merge / LANDINGS * 1000:.0f} ms"
    return [
        Row(f"{LANDINGS} landings, target checked out", min(here) / merge, 0.25, "x", note=each),
        Row(
            f"{LANDINGS} landings, target not checked out", min(aside) / merge, 0.1, "x", note=each
        ),
    ]


async def _land_all(lab: Lab, base: str, heads: list[str], target: str) -> None:
    merger = Merger(lab.repo)
    async with anyio.create_task_group() as group:
        await group.start(_serving, lab)
        for head in heads:
            request = LandRequest(
                target=target, base=base, head=head, message="x", author=lab.me,
                committer=lab.me,
            )  # fmt: skip
            made = await compose(lab.repo, merger, request)
            assert isinstance(made, Composed), made
            plan = await prepare_landing(lab.repo, made)
            assert isinstance(plan, LandPrepared), plan
            assert isinstance(await land(lab.repo, plan), LandingDone)
        group.cancel_scope.cancel()


async def _serving(lab: Lab, *, task_status: TaskStatus[None]) -> None:
    task_status.started()
    await lab.repo.standing.serve()


def _name(number: int) -> str:
    return f"{'abcdefgh'[number % 8]}{number % 16}/m{number % 120}/s{number % 1500}/f{number}.py"


def _ten_each(number: int) -> str:
    return f"d{number // 100}/e{number // 10 % 10}/f{number}.py"


def _grown(place: Path, name: Callable[[int], str] = _name) -> RepositoryBuilder:
    """As repositories grow: files in many nested folders, a history, tags, all packed."""
    dice, built = random.Random(1), RepositoryBuilder(place)

    def text() -> str:
        lines = "".join(f"line {n} {dice.random()}\n" for n in range(40))
        return f"data {len(lines)}\n{lines}\n"

    stream: list[str] = []
    for commit in range(400):
        who = f"A <a@example.org> {1_700_000_000 + commit * 60} +0000"
        stream.append(f"commit refs/heads/main\ncommitter {who}\ndata 2\nx\n")
        written = range(GROWN) if commit == 0 else dice.sample(range(GROWN), 10)
        stream += [f"M 100644 inline {name(n)}\n{text()}" for n in written]
        stream.append(f"reset refs/tags/v{commit}\nfrom refs/heads/main\n\n")
    built.git("fast-import", "--quiet", stdin="".join(stream).encode())
    built.git("reset", "-q", "--hard", "main")
    built.git("gc", "-q")
    return built


def _change(built: RepositoryBuilder, base: str, number: int) -> str:
    index = {"GIT_INDEX_FILE": f"{built.path}/.git/bench-index"}
    built.git("read-tree", base, env=index)
    blob = built.git("hash-object", "-w", "--stdin", stdin=f"{number}\n".encode())
    entry = f"100644,{blob},{_name(number * 137 % GROWN)}"
    built.git("update-index", "--add", "--cacheinfo", entry, env=index)
    tree = built.git("write-tree", env=index)
    return built.git("commit-tree", tree, "-p", base, "-m", "x")


async def crowds(root: Path) -> list[Row]:
    """Runs of one, three and five sleeping agents in real worktrees."""
    built = RepositoryBuilder.with_files(root / "napping", 400)
    environment = {**os.environ, **built.environment, "PLAIT_STATE_HOME": str(root / "state")}
    agent = {"adapter": "command", "argv": ["sh", "-c", f"sleep {NAP_S}; echo done > done"]}

    def manifest(count: int) -> dict[str, Any]:
        step = {
            "name": "nap", "agent": "n", "prompt": "x", "concurrency": count, "policy": "settled",
        }  # fmt: skip
        if count == 1:
            del step["concurrency"]
        return {
            "runtime": {"limits": {"memory_mb": 128}},
            "agents": {"n": agent},
            "pipelines": [{"name": "p", "steps": [step]}],
        }

    seen: dict[int, list[float]] = {1: [], 3: [], 5: []}
    async with Engine.open(str(built.path), environment=environment) as engine:
        for _ in range(3):
            for count, times in seen.items():

                async def once(count: int = count) -> None:
                    run = await engine.start(manifest(count))
                    report = await run.wait()
                    assert report.steps["nap"].success_count == count, report

                times.append(await took(once))
    one = statistics.median(seen[1])
    note = f"one takes {one:.2f} s, of which {NAP_S} s asleep"
    return [
        Row("three workers over one", statistics.median(seen[3]) / one, 1.2, "x", note=note),
        Row("five workers over one", statistics.median(seen[5]) / one, 1.5, "x", note=note),
    ]


class Pool:
    """A trash that lends trees of released workspaces."""

    def __init__(self, lab: Lab, root: Path, layout: Layout) -> None:
        self.lab, self.root, self.layout = lab, root, layout

    async def release(self, name: str) -> None:
        space = await self.lab.prepare(name)
        request = CollectRequest(author=self.lab.me)
        await discard(self.lab.repo, self.layout, await examine(self.lab.repo, space, request))

    async def begin(self, name: str) -> None:
        place = self.root / f"spare-{name.replace('/', '-')}"
        spare = await lend(self.lab.repo, self.layout, self.lab.built.head, place)
        assert spare is not None
        await self.lab.prepare(name, base=self.lab.built.head, spare=spare)

    async def bare(self, name: str) -> None:
        words = ("worktree", "add", "-q", "--detach", str(self.root / name.replace("/", "-")))
        await apart(lambda: self.lab.built.git(*words))


async def at_once(work: Callable[[str], Awaitable[object]], names: list[str]) -> None:
    """Do the same for several names, beside each other."""
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(work, name)


async def released(root: Path) -> list[Row]:
    """Workspaces that begin with released trees, one by one and eight at once, in CPU."""
    lab = await Lab.open(root / "released", _grown(root / "lending", _ten_each))
    pool = Pool(lab, root, await to_thread.run_sync(Layout, lab.repo.plait_dir))
    await apart(pool.layout.make)
    await pool.release("r8/first/worker_1@1")
    single: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        name = f"r8/one/worker_{number + 1}@1"
        ours = await worked(partial(pool.begin, name))
        single.append((ours, await worked(partial(pool.bare, name))))
        await pool.release(name)
    first = [f"r7/first/worker_{number + 1}@1" for number in range(CROWD)]
    for name in first:
        await lab.prepare(name)
    for name in first:
        await pool.release(name)
    names = [f"r9/crowd/worker_{number + 1}@1" for number in range(CROWD)]
    ours = await worked(partial(at_once, pool.begin, names))
    crowd = [(ours, await worked(partial(at_once, pool.bare, names)))]
    peer = "worktree add"
    return [
        _ratio(f"a workspace of {GROWN:,} files from a released one", single, 0.25, peer),
        _ratio(f"{CROWD} at once", crowd, 0.3, peer),
    ]


def _ratio(what: str, pairs: list[tuple[float, float]], bound: float, peer: str) -> Row:
    ours = statistics.median(pair[0] for pair in pairs)
    theirs = statistics.median(pair[1] for pair in pairs)
    note = f"{ours * 1000:.0f} ms; {peer}: {theirs * 1000:.0f} ms"
    return Row(what, ours / theirs, bound, "x", note=note)


async def main(files: int) -> int:
    """Measure; how many bounds were missed."""
    missed = 0
    folder = tempfile.mkdtemp(prefix="plait-bench-", dir=FOLDER)
    try:
        root = Path(folder)
        lab = await Lab.open(root, RepositoryBuilder.with_files(root / "repo", files))
        print(f"{files} files")
        groups = (
            lambda: workers(lab, root),
            lambda: released(root),
            lambda: landings(root),
            lambda: crowds(root),
        )
        for group in groups:
            for row in await group():
                print(row, flush=True)
                missed += not row.is_kept
    finally:
        await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
    return missed


if __name__ == "__main__":
    sys.exit(bool(anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 4_000)))

"""A worker's way through git beside the bare commands it stands for, in one interleaved run.

python -m tests.bench.bench_git_work [FILES]        (4,000 by default)

Read ratios, not milliseconds. A row says `ok` when it is within its bound.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from engine.api import Engine
from engine.git import (
    CollectRequest,
    Landed,
    LandPrepared,
    LandRequest,
    Merger,
    compose,
    examine,
    land,
    prepare_landing,
    remove,
)
from engine.git.composition import Composed
from tests.bench.bench_engine import FOLDER
from tests.support.git_lab import Lab
from tests.support.measuring import Row
from tests.support.repositories import RepositoryBuilder

ROUNDS, LANDINGS = 7, 50
NAP_S = 5
WORK = "for n in 1 2 3; do echo $n > new$n; done"


async def took(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that something takes."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


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


async def landings(lab: Lab) -> list[Row]:
    """Fifty clean changes onto one branch: by `git merge`, and by ours, checked out or not."""
    built = lab.built
    base = built.head
    heads = [_change(built, base, n) for n in range(LANDINGS)]

    def merge_all() -> None:
        for head in heads:
            built.git("merge", "-q", "--no-ff", "-m", "x", head)

    def back() -> None:
        built.git("reset", "-q", "--hard", base)

    async def land_all(target: str) -> None:
        merger = Merger(lab.repo)
        for head in heads:
            request = LandRequest(
                target=target, base=base, head=head, message="x", author=lab.me, committer=lab.me
            )
            made = await compose(lab.repo, merger, request)
            assert isinstance(made, Composed), made
            plan = await prepare_landing(lab.repo, made)
            assert isinstance(plan, LandPrepared), plan
            assert isinstance(await land(lab.repo, plan), Landed)

    built.git("branch", "aside", base)
    theirs = await took(lambda: apart(merge_all))
    await apart(back)
    here = await took(lambda: land_all("main"))
    assert built.status() == ""
    aside = await took(lambda: land_all("aside"))
    assert built.rev("aside^{tree}") == built.rev("main^{tree}")
    await apart(back)
    each = f"git merge takes {theirs / LANDINGS * 1000:.0f} ms"
    return [
        Row(f"{LANDINGS} landings, target checked out", here / theirs, 0.25, "x", note=each),
        Row(f"{LANDINGS} landings, target not checked out", aside / theirs, 0.25, "x", note=each),
    ]


def _change(built: RepositoryBuilder, base: str, number: int) -> str:
    index = {"GIT_INDEX_FILE": f"{built.path}/.git/bench-index"}
    built.git("read-tree", base, env=index)
    blob = built.git("hash-object", "-w", "--stdin", stdin=f"{number}\n".encode())
    built.git(
        "update-index",
        "--cacheinfo",
        f"100644,{blob},d{number % 40}/f{number % 40 * 100 + number}.txt",
        "--add",
        env=index,
    )
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
        groups = (lambda: workers(lab, root), lambda: landings(lab), lambda: crowds(root))
        for group in groups:
            for row in await group():
                print(row, flush=True)
                missed += not row.is_kept
    finally:
        await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
    return missed


if __name__ == "__main__":
    sys.exit(bool(anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 4_000)))

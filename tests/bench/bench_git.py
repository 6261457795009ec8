"""Measure the git room beside plain git, in one run: read the ratios, not the milliseconds.

python -m tests.bench.bench_git [FILES]        (40,000 by default)
"""

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import anyio

from engine.git.base import dirty_paths
from engine.git.checktree import CheckTree, fill_check_tree
from engine.git.diff import changed_files
from engine.git.merge3 import Merger, Sides
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder

AT_ONCE = 20


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that something takes."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def plain(work: Callable[[], object]) -> float:
    """Seconds that something blocking takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def row(name: str, ours: float, theirs: float | None, other: str) -> None:
    """One line of the table."""
    ratio = f"{ours / theirs:5.2f} x {other}" if theirs else ""
    print(f"{name:<44} {ours * 1000:9.1f} ms   {ratio}")


async def workspaces(lab: Lab, root: Path) -> None:
    """One workspace, then twenty at once, against `git worktree add`."""
    built = lab.built
    base = plain(lambda: built.git("worktree", "add", "-q", "--detach", str(root / "plain")))
    row("prepare one workspace", await timed(lambda: lab.prepare("r1/one/worker_1@1")), base, "add")

    async def many() -> None:
        async with anyio.create_task_group() as group:
            for n in range(AT_ONCE):
                group.start_soon(lab.prepare, f"r2/many/worker_{n + 1}@1")

    row(f"prepare {AT_ONCE} at once, each", await timed(many) / AT_ONCE, base, "add")


async def collecting(lab: Lab) -> None:
    """A small change in a large tree, against add and commit."""
    space = await lab.prepare("r1/one/worker_1@1")
    script = "for n in 1 2 3; do echo $n > new$n; done; git add -A; git commit -qm w"
    plainly = plain(lambda: lab.agent(space, script))
    lab.agent(space, "for n in 4 5 6; do echo $n > new$n; done")
    row("collect three new files", await timed(lambda: lab.collect(space)), plainly, "add, commit")
    space = await lab.prepare("r1/one/worker_1@1")
    row(
        "collect again, nothing new",
        await timed(lambda: lab.collect(space)),
        plainly,
        "add, commit",
    )


async def merging(lab: Lab) -> None:
    """All pairs of eight workers, against `git merge-tree` for each."""
    built = lab.built
    names = [f"plait/r2/many/worker_{n + 1}" for n in range(8)]
    heads = []
    for number, name in enumerate(names):
        blob = built.git("hash-object", "-w", "--stdin", stdin=f"{number}\n".encode())
        index = {"GIT_INDEX_FILE": f"{built.path}/.git/bench-index"}
        built.git("read-tree", name, env=index)
        entry = f"100644,{blob},clash{number % 4}"
        built.git("update-index", "--add", "--cacheinfo", entry, env=index)
        tree = built.git("write-tree", env=index)
        heads.append(built.git("commit-tree", tree, "-p", name, "-m", "x"))
    pairs = [(one, other) for n, one in enumerate(heads) for other in heads[n + 1 :]]
    plainly = plain(lambda: [built.try_git("merge-tree", "--write-tree", *pair) for pair in pairs])
    merger = Merger(lab.repo)
    questions = [Sides("main", *pair) for pair in pairs]
    first = await timed(lambda: merger.preview(questions))
    row(f"preview {len(pairs)} pairs, first time", first, plainly, "merge-tree each")
    again = await timed(lambda: merger.preview(questions))
    row(f"preview {len(pairs)} pairs, again", again, plainly, "merge-tree each")
    single = [await timed(lambda: merger.merge3("main", *pairs[0])) for _ in range(5)]
    row("merge3, one", median(single), plainly / len(pairs), "merge-tree")


async def reading(lab: Lab) -> None:
    """State and differences, against the plain commands."""
    built = lab.built
    built.write("d0/f1.txt", "edited\n")
    status = plain(lambda: built.git("status", "--porcelain"))
    row(
        "dirty paths of the user's tree",
        await timed(lambda: dirty_paths(lab.repo)),
        status,
        "status",
    )
    work = "plait/r1/one/worker_1"
    diff = plain(lambda: built.git("diff", "--numstat", "main", work))
    row("changed files", await timed(lambda: changed_files(lab.repo, "main", work)), diff, "diff")


async def checking(lab: Lab, root: Path) -> None:
    """A cold check tree, then a warm one at another commit."""
    place = CheckTree(path=root / "check", folder=root / "ours")
    cold = await timed(lambda: fill_check_tree(lab.repo, place, "main"))
    row("check tree, cold", cold, None, "")
    work = "plait/r1/one/worker_1"
    row(
        "check tree, warm",
        await timed(lambda: fill_check_tree(lab.repo, place, work)),
        cold,
        "cold",
    )


async def main(files: int) -> None:
    """Build a repository of so many files and measure everything in it."""
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as folder:
        root = Path(folder)
        lab = await Lab.open(root, RepositoryBuilder.with_files(root / "repo", files))
        print(f"{files} files")
        await workspaces(lab, root)
        await collecting(lab)
        await merging(lab)
        await reading(lab)
        await checking(lab, root)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)

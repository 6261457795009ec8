"""The common ancestors of two commits are found without git, and are always those of git."""

import random
from pathlib import Path

import anyio
import pytest

from engine.git.ancestry import base_of
from engine.git.runner import Repo
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
COMMITS, GRAPHS = 14, 5


def grown(built: RepositoryBuilder, dice: random.Random) -> list[str]:
    """Commits of one random history, some of them merges, in one process."""
    stream: list[str] = []
    for number in range(1, COMMITS + 1):
        older = dice.sample(range(1, number), min(number - 1, dice.choice([1, 1, 1, 2])))
        parents = [f"from :{older[0]}"] if older else []
        parents += [f"merge :{one}" for one in older[1:]]
        head = f"commit refs/heads/c{number}\nmark :{number}\ncommitter a <a@b> {number % 3} +0000"
        stream.append("\n".join([head, f"data <<E\n{dice.random()}\nE", *parents, ""]))
    built.git("fast-import", "--quiet", "--force", stdin="\n".join(stream).encode())
    return built.git("rev-parse", *(f"c{n}" for n in range(1, COMMITS + 1))).split()


async def test_a_base_that_is_told_is_the_only_one_that_git_knows(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    repo = await Repo.open(built.path, built.environment)
    told = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(repo.standing.serve)
        await anyio.wait_all_tasks_blocked()
        for seed in range(GRAPHS):
            dice = random.Random(seed)
            commits = grown(built, dice)
            for _ in range(10):
                one, other = dice.choices(commits, k=2)
                found = await base_of(repo, one, other)
                if found is not None:
                    assert built.git("merge-base", "--all", one, other).split() == [found]
                    told += 1
        tasks.cancel_scope.cancel()
    assert told > GRAPHS, "it is of use"

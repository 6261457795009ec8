"""Puts a try on, or takes it back, and kills itself at the n-th thing it does to the world.

python -m tests.support.try_victim on REPOSITORY HOME N TREE
python -m tests.support.try_victim back REPOSITORY HOME N TREE
"""

import sys
from pathlib import Path

import anyio

from engine.git.runner import Repo
from engine.review.trying import put_on, take_back
from tests.support.checkouts import result_of
from tests.support.git_victim import count_down
from tests.support.repositories import RepositoryBuilder, plain_environment


async def main() -> None:
    what, place, home, n, tree = sys.argv[1:]
    repo = await Repo.open(Path(place), plain_environment(Path(home)))
    result = result_of(RepositoryBuilder(Path(place), init=False), tree)
    count_down(int(n))
    if what == "on":
        await put_on(repo, result, now=1.0)
    else:
        await take_back(repo)


if __name__ == "__main__":
    anyio.run(main)

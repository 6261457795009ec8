"""Does one thing with a repository and kills itself at the n-th thing it does to the world.

    python -m tests.support.git_victim land REPOSITORY HOME N PLAN.json
    python -m tests.support.git_victim prepare REPOSITORY HOME N SPACES
    python -m tests.support.git_victim collect REPOSITORY HOME N SPACES

What counts is what Python reports to audit hooks: every file opened for writing, linked, renamed,
removed, every folder made or removed, every process started.
"""

import json
import os
import signal
import sys
from pathlib import Path

import anyio

from engine.git.landing import LandPrepared, land
from engine.git.runner import Repo
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder, plain_environment

EVENTS = {"os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "subprocess.Popen"}


def count_down(n: int) -> None:
    """Kill this process at the n-th event from now on; 0 lets it live."""
    left = n

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        is_writing = event == "open" and isinstance(arguments[1], str) and arguments[1][0] in "wax"
        if event in EVENTS or is_writing:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


async def land_plan(place: Path, home: Path, n: int, plan: Path) -> None:
    repo = await Repo.open(place, plain_environment(home))
    said = json.loads(await anyio.Path(plan).read_text())
    said["paths"] = tuple(path.encode() for path in said["paths"])
    async with anyio.create_task_group() as group:
        group.start_soon(repo.standing.serve)
        await anyio.wait_all_tasks_blocked()
        count_down(n)
        await land(repo, LandPrepared(**said))
        group.cancel_scope.cancel()


async def work_in(what: str, place: Path, n: int, spaces: Path) -> None:
    lab = await Lab.open(spaces.parent, RepositoryBuilder(place, init=False))
    if what == "prepare":
        count_down(n)
        await lab.prepare()
        return
    space = await lab.prepare()
    count_down(n)
    await lab.collect(space)


async def main() -> None:
    what, place, home, n, last = sys.argv[1:]
    if what == "land":
        await land_plan(Path(place), Path(home), int(n), Path(last))
    else:
        await work_in(what, Path(place), int(n), Path(last))


if __name__ == "__main__":
    anyio.run(main)

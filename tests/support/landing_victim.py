"""Lands a prepared change and kills itself at the n-th thing it does to the world.

    python -m tests.support.landing_victim REPOSITORY HOME PLAN.json N

What counts is what Python reports to audit hooks: every file opened for writing, linked, renamed,
removed, every folder made or removed, every process started.
"""

import json
import os
import signal
import sys
from pathlib import Path

import anyio

from engine.git import LandPrepared, Repo, land
from tests.support.repositories import plain_environment

EVENTS = {"os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "subprocess.Popen"}


def count_down(n: int) -> None:
    """Kill this process at the n-th event; print how many there were if there are fewer."""
    left = n

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        is_writing = event == "open" and isinstance(arguments[1], str) and arguments[1][0] in "wax"
        if event in EVENTS or is_writing:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


async def main() -> None:
    place, home, plan, n = sys.argv[1:]
    repo = await Repo.open(place, plain_environment(Path(home)))
    said = json.loads(await anyio.Path(plan).read_text())
    said["paths"] = tuple(path.encode() for path in said["paths"])
    count_down(int(n))
    await land(repo, LandPrepared(**said))


if __name__ == "__main__":
    anyio.run(main)

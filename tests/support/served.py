"""Runs whose workers have a program to look at, and what a browser would see of it."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import anyio
from anyio import to_thread

from engine.api import Engine, Run
from engine.messages.questions import ReadServed, ServeWorker
from engine.messages.served import Served, ServedState
from tests.support.engine_runs import scripted
from tests.support.merging_runs import MergingPlace

ROOT = Path(__file__).parents[2]
PYTHON = "python3 -m http.server $PORT --bind 127.0.0.1"
SLOW = f"sleep 2; exec {PYTHON}"
CRASHES = "echo going to crash; exit 3"
STUBBORN = f"trap '' TERM; {PYTHON}"
ELSEWHERE = "exec python3 -m http.server 0 --bind 127.0.0.1"


def plan(
    place: MergingPlace,
    command: str,
    *,
    network: str = "open",
    workers: int = 1,
    ready: str = "",
    waits: str = "true",
    **more: Any,
) -> dict[str, Any]:
    """A manifest whose workers each write a page that says who they are.

    `waits` is a command that all but the first run before.
    """
    page = {"write": {"path": "index.html", "text": "made by {index}\n"}}
    first = [page, {"result": "done"}]
    agent = scripted({"shell": waits}, *first, workers={"1": first})
    found = place.manifest(
        {
            "name": "site",
            "agent": agent,
            "concurrency": workers,
            "policy": "settled",
        },
        isolation_strategy="worktree",
        workspace={"serve": {"command": command, "ready": ready or None}, **more},
    )
    found["runtime"]["sandbox"]["network"] = network
    return found


async def begin(engine: Engine, run: Run, worker: str = "site/worker_1") -> Served:
    """Start a worker's program."""
    return await engine.ask(ServeWorker(run.id, worker))


async def wait_served(
    engine: Engine,
    run: Run,
    *states: ServedState,
    worker: str = "site/worker_1",
    note: str = "",
    has_port: bool = False,
) -> Served:
    """A program as soon as it is in one of these states, and its note says something."""
    seen: Served | None = None
    with anyio.fail_after(60):
        while True:
            log = await engine.ask(ReadServed(run.id, worker, 10**9, seen))
            seen = log.served
            if seen is None or seen.state not in states or note not in seen.note:
                continue
            if seen.port or not has_port:
                return seen


async def now(engine: Engine, run: Run, worker: str = "site/worker_1") -> Served:
    """A worker's program as a console sees it."""
    found = (await engine.view(run.id)).worker(worker).served
    assert found is not None
    return found


async def ready(engine: Engine, run: Run, worker: str = "site/worker_1") -> Served:
    """A worker's program, started and ready."""
    await begin(engine, run, worker)
    found = await wait_served(engine, run, ServedState.READY, ServedState.ENDED, worker=worker)
    assert found.state is ServedState.READY, found
    return found


async def wait_said(engine: Engine, run: Run, text: str, worker: str = "site/worker_1") -> None:
    """Return once a worker's program has written a text."""
    seen, after = None, 0
    with anyio.fail_after(60):
        while True:
            log = await engine.ask(ReadServed(run.id, worker, after, seen))
            if any(text in line for line in log.lines):
                return
            seen, after = log.served, log.count


async def page(url: str, path: str = "") -> str:
    """A page, as a browser of the user's gets it."""
    return await to_thread.run_sync(_page, f"{url}{path}")


def _page(url: str) -> str:
    with urlopen(url, timeout=60) as answer:  # noqa: S310  a page of our own
        text: str = answer.read().decode()
    return text


def is_reached(port: int) -> bool:
    """Return True if anybody answers at a port of this machine."""
    try:
        _page(f"http://127.0.0.1:{port}/")
    except OSError:  # nobody listens, or whoever does hangs up
        return False
    return True


def left_over(place: MergingPlace) -> list[Path]:
    """Return what is left of programs that are no longer served: their folders and recordings."""
    roots = (place.project / ".git/plait/runs", place.tmp_path / "state")
    rooms = [one for root in roots for one in root.rglob(".served/*")]
    return rooms + [one for root in roots for one in root.rglob("attempt_*+serve*")]


def served_elsewhere(
    place: MergingPlace, plan: Mapping[str, Any]
) -> tuple[subprocess.Popen[str], tuple[list[int], int]]:
    """A detached engine in a process of its own, whose two workers' programs are served.

    With it come their ports, and the process of the agent that still works.
    """
    engine = subprocess.Popen(
        [sys.executable, "-m", "tests.support.serving_process", str(place.project)],
        cwd=ROOT,
        env=place.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(json.dumps(plan))
    engine.stdin.close()
    *ports, agent = map(int, engine.stdout.readline().split())
    engine.stdout.close()
    return engine, (ports, agent)


def links(lines: Iterable[str], count: int) -> dict[str, str]:
    """The first so many links that `plait open` tells, by worker."""
    found: dict[str, str] = {}
    for line in lines:
        worker, _, link = line.strip().partition(" is at ")
        if link:
            found[worker] = link
        if len(found) == count:
            break
    return found

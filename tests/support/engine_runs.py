"""Real engines on plain folders: manifests in few words, and looking for what they leave behind."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from engine.api import Engine, Run
from engine.keeper import proc
from engine.messages.results import RunReport, RunView, WorkerView
from engine.sandbox.probe import probe
from engine.store.layout import state_home
from tests.support.repositories import RepositoryBuilder


@cache
def _machine(tmp: Path) -> str:
    """Return what this machine can enforce, found out once for all tests of a session.

    A probe keeps only what works; a test engine is to be spared the next probe in any case.
    """
    return json.dumps(probe(dict(os.environ), tmp / "probed").to_json())


class Place:
    """A plain folder to work for, with a state home of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.project = tmp_path / "project"
        self.project.mkdir(exist_ok=True)
        self.outside = tmp_path / "outside"
        self.outside.mkdir(exist_ok=True)
        self.environment = {**os.environ, "PLAIT_STATE_HOME": str(tmp_path / "state")}
        machine = state_home(self.environment) / "machine"
        machine.mkdir(mode=0o700, parents=True, exist_ok=True)
        (machine / "machine.json").write_text(_machine(tmp_path.parent))

    @asynccontextmanager
    async def engine(self, **options: Any) -> AsyncIterator[Engine]:
        """An engine on it; what is done with it must not take forever."""
        with anyio.fail_after(options.pop("within_s", 90)):
            async with Engine.open(self.project, environment=self.environment, **options) as engine:
                yield engine

    def manifest(self, *steps: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """A manifest whose workers may write into the folder `outside`."""
        return manifest(*steps, sandbox={"paths": [f"{self.outside}:rw"]}, **more)

    def open_gate(self, name: str) -> None:
        """Release everybody who waits at a gate."""
        (self.outside / name).touch()

    def waits_at(self, name: str) -> str:
        """A shell command that waits until a gate is opened."""
        return f"until test -e '{self.outside / name}'; do sleep 0.01; done"

    async def survivors(self) -> set[int]:
        """Return the living processes of all that were ever started for this place; no zombies.

        A keeper that was just released has a moment to end by itself.
        """
        alive = await to_thread.run_sync(self.living)
        with anyio.move_on_after(30):
            while alive:
                await anyio.sleep(0.02)
                alive = await to_thread.run_sync(self.living)
        return alive

    def living(self) -> set[int]:
        """By the folder in their environment, their arguments or their open files.

        Agents and tools have it in the first two; keepers and zygotes, whose environment is empty,
        hold files of it open.
        """
        found = set()
        for pid in proc.everybody():
            process = proc.look(pid)
            if process is None or process.is_dead or pid == os.getpid():
                continue
            with suppress(OSError):
                if self._is_ours(Path(f"/proc/{pid}"), process.name):
                    found.add(pid)
        return found

    def names(self) -> set[str]:
        """Return what those who live are called."""
        return {process.name for process in map(proc.look, self.living()) if process is not None}

    def _is_ours(self, process: Path, name: str) -> bool:
        wanted = os.fsencode(self.tmp_path)
        told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        if name.startswith("plait-"):
            told += b" ".join(os.fsencode(link.readlink()) for link in (process / "fd").iterdir())
        return wanted in told


class ChildPlace(Place):
    """A repository whose workers live in a child process of the engine."""

    def __init__(self, tmp_path: Path) -> None:
        RepositoryBuilder.small(tmp_path / "project")
        super().__init__(tmp_path)

    def manifest(self, *steps: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """A manifest whose workers live there, in worktrees, and may write into `outside`."""
        return super().manifest(
            *steps, isolation_strategy="worktree", sites={"default": "child"}, **more
        )


def scripted(*steps: Any, **branches: Any) -> dict[str, Any]:
    """A scripted agent: its steps, or `attempts=`, `workers=` and so on."""
    return {"adapter": "scripted", "script": {"steps": list(steps), **branches}}


def manifest(
    *steps: Mapping[str, Any],
    agents: Mapping[str, Any] | None = None,
    workspace: Mapping[str, Any] | None = None,
    **runtime: Any,
) -> dict[str, Any]:
    """A manifest without git; a step's `agent` may be given in place."""
    known = dict(agents or {})
    placed = []
    for step in steps:
        placed.append({**step} if "run" in step else {"prompt": "do it", **step})
        if isinstance(step.get("agent"), Mapping):
            known[step["name"]] = step["agent"]
            placed[-1]["agent"] = step["name"]
    found: dict[str, Any] = {
        "runtime": {"isolation_strategy": "directory", **runtime},
        "pipelines": [{"name": "p", "steps": placed}],
    }
    if known:
        found["agents"] = known
    if workspace:
        found["workspace"] = dict(workspace)
    return found


async def wait_view(
    engine: Engine, run: Run, is_so: Callable[[RunView], object], within_s: float = 60
) -> RunView:
    """The run as a console sees it, as soon as something holds of it."""
    with anyio.fail_after(within_s):
        while True:
            view = await engine.view(run.id)
            if is_so(view):
                return view
            await anyio.sleep(0.005)


async def wait_worker(
    engine: Engine, run: Run, worker: str, is_so: Callable[[WorkerView], object]
) -> WorkerView:
    """One worker of it, likewise."""
    view = await wait_view(engine, run, lambda view: is_so(view.worker(worker)))
    return view.worker(worker)


def phases(report: RunReport) -> dict[str, str]:
    """Return where each worker stands in a report."""
    return {
        w.worker: str(w.phase) if w.cause is None else f"{w.phase} {w.cause}"
        for step in report.steps.values()
        for w in step.worker_results
    }

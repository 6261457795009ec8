"""Measure the start of a sandbox beside a bare `git worktree add`: `python -m` this [FILES].

Rounds are interleaved, so that whatever else runs here weighs on all alike; read ratios. A worker's
start is all of it: its worktree and private repository, its cgroups and profile, and its keeper
until a program has run inside. Also: what a keeper that samples costs while an agent works, and
what the proof after an attempt costs. Files lie in memory unless BENCH_DIR says otherwise.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
from anyio import to_thread

from engine.core.state import RunState
from engine.git.workspace import Workspace, WorkspaceRequest, prepare
from engine.host.local import LocalHost
from engine.ids import AttemptId, WorkerId
from engine.limits import Limits
from engine.proof.tampering import Proof
from engine.sandbox.confine import confine, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from engine.sandbox.request import ConfineRequest
from engine.site.local import LocalSite
from engine.site.place import find_place
from engine.site.shelter import Shelter
from engine.site.sites import Sites
from engine.work.run_ports import RunPort
from tests.bench.bench_keeper import IN_MEMORY, _cpu_s, _named
from tests.support.git_lab import Lab
from tests.support.measuring import Row
from tests.support.processes import attempt, read_all
from tests.support.repositories import RepositoryBuilder

ROUNDS, WATCHED_S = 25, 8.0
_ONE = WorkerId("one", 1)
LIMITS = Limits(memory_mb=2048, pids=4096, disk_mb=20480, output_mb=512, time_seconds=3600)
"""Those of a worker for whom the manifest says nothing."""
AT_WORK = (
    "import subprocess as s, time\n"
    "idle = [s.Popen(['sleep', '99']) for _ in range(8)]\n"
    "while True: s.run(['true']); held = bytearray(64 << 20); time.sleep(0.05)"
)


class Start:
    """One user's repository, in which workers are started and plain worktrees added."""

    def __init__(self, lab: Lab, host: LocalHost, machine: MachineSupport) -> None:
        self.lab, self.host, self.machine = lab, host, machine
        self.base = lab.built.git("rev-parse", "HEAD")
        self._number = 0

    async def whole(self) -> None:
        """Everything up to a program that has run inside."""
        self._number += 1
        await self._run(await self._prepare(), ("true",))

    async def bare(self) -> None:
        """Return what a script would do: a worktree, and the program in it."""
        self._number += 1
        path = self.lab.root / f"plain-{self._number}"
        add = ("worktree", "add", "-q", "-b", f"plain-{self._number}", str(path))
        await to_thread.run_sync(self.lab.built.git, *add)
        await to_thread.run_sync(partial(subprocess.run, ["true"], cwd=path, check=True))

    async def layout(self) -> None:
        """The worktree and its private repository alone."""
        self._number += 1
        await self._prepare()

    def clear(self) -> None:
        """Take all worktrees away: a list of hundreds is nobody's ordinary case."""
        shutil.rmtree(self.lab.root)
        shutil.rmtree(self.lab.built.path / ".git/worktrees")

    async def _prepare(self) -> Workspace:
        """From a commit, because a run finds out its base once for all of its workers."""
        name = AttemptId.parse(f"r{self._number}/one/worker_1@1")
        wanted = WorkspaceRequest(
            attempt=name,
            base=self.base,
            path=self.lab.root / name.path,
            directory=self.lab.repo.plait_dir / "runs" / name.path,
        )
        return await prepare(self.lab.repo, wanted)

    async def _run(self, space: Workspace, argv: tuple[str, ...]) -> None:
        directory = Path(space.directory)
        for name in ("home", "tmp"):
            (directory.parent / name).mkdir(exist_ok=True)
        request = ConfineRequest(
            name=str(space.attempt).translate(str.maketrans("/@", "..")),
            workspace=Path(space.path),
            home=directory.parent / "home",
            temp=directory.parent / "tmp",
            private_clone=Path(space.git_dir or ""),
            git_file=Path(space.gitfile or ""),
            git_objects=tuple(map(Path, space.objects)),
            hide=(self.lab.built.path,),
            env=os.environ,
            limits=LIMITS,
        )
        profile = await to_thread.run_sync(confine, self.machine, request)
        env = await to_thread.run_sync(environment, self.machine, request)
        folder = directory.parent / "kept"
        await to_thread.run_sync(partial(folder.mkdir, exist_ok=True))
        plain = attempt(folder, *argv, cwd=Path(space.path), limits=LIMITS)
        await self.host.start(replace(plain, attempt=space.attempt, env=env, profile=profile))
        _, end = await read_all(self.host, space.attempt)
        assert end.exit_code == 0, end
        await self.host.forget(space.attempt)
        await to_thread.run_sync(release, profile)


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def starting(start: Start) -> list[Row]:
    """The two bars of a start, and what of it is the layout."""
    await start.whole()
    ways = {"whole": start.whole, "bare": start.bare, "layout": start.layout}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            times[name].append(await seconds(way))
        await to_thread.run_sync(start.clear)
    whole, bare, layout = (statistics.median(times[name]) * 1000 for name in ways)
    note = f"{whole:.0f} ms beside {bare:.0f}; the layout alone {layout:.0f}"
    return [
        Row("whole start ÷ `git worktree add`, p50", whole / bare, 1.5, "x", note=note),
        Row("sandbox, limits and keeper on top, p50", whole - layout, 40, "ms"),
    ]


async def sampling(root: Path) -> list[Row]:
    """A keeper that holds all limits by looking, over an agent with ten processes."""
    host_folder = root / "sampled"
    host_folder.mkdir()
    rows = []
    for number, (what, code) in enumerate((("at work", AT_WORK), ("asleep", "input()"))):
        async with LocalHost(host_folder) as host:
            argv = (sys.executable, "-c", code)
            spec = attempt(host_folder, *argv, number=number + 1, limits=LIMITS, keeps_stdin=True)
            await host.start(spec)
            await anyio.sleep(2)
            (keeper,) = await to_thread.run_sync(_named, "plait-keeper")
            before = _cpu_s([keeper])
            await anyio.sleep(WATCHED_S)
            share = (_cpu_s([keeper]) - before) / WATCHED_S * 100
            rows.append(Row(f"a sampling keeper, agent {what}", share, 0.5, "% core"))
            await _stop(host, spec)
    return rows


async def _stop(host: LocalHost, spec: Any) -> None:
    from engine.phases import StopCause  # noqa: PLC0415 - only to clean up

    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    await read_all(host, spec.attempt)
    await host.forget(spec.attempt)


async def proving(lab: Lab, root: Path, env: dict[str, str]) -> list[Row]:
    """A look before and one after, behind a sandbox and without."""
    place = await find_place(lab.built.path, lab.built.environment)
    rows = []
    for what, rung, bound in (("fenced", "bwrap", 10), ("unfenced", "none", 250)):
        machine = probe({**env, "PLAIT_SANDBOX": rung}, root / "state")
        shelter = Shelter(machine=machine, layout=place.layout, project=place.project, environ=env)
        here = cast("LocalSite", SimpleNamespace())
        once = partial(_prove, Proof(place, shelter, Sites(here)), _state())
        took = statistics.median([await seconds(once) for _ in range(9)]) * 1000
        rows.append(Row(f"proof of an attempt, {what}", took, bound, "ms"))
    return rows


async def _prove(proof: Proof, state: RunState) -> None:
    run = cast("RunPort", SimpleNamespace(state=state))
    before = await proof.look(state, AttemptId(state.run, _ONE, 1))
    await proof.compare(run, _ONE, before)


def _state() -> RunState:
    """As much of a run as a proof asks for."""
    network = SimpleNamespace(mode="open", allow=())
    holes = SimpleNamespace(
        env=(), paths=(), has_docker=False, has_ssh_agent=False, network=network
    )
    runtime = SimpleNamespace(
        holes=holes,
        branch_prefix="plait",
        execution_mode="process",
        isolation="worktree",
        history=None,
        site="",
    )
    plan = SimpleNamespace(runtime=runtime)
    one = SimpleNamespace(begun=SimpleNamespace(workspace=None, site=""))
    state = SimpleNamespace(run="r", workers={_ONE: one}, plan=plan, agent_of=lambda _: None)
    return cast("RunState", state)


async def main(files: int) -> int:
    """Print a table; how many bars were missed."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", IN_MEMORY)) as folder:
        root = Path(folder)
        lab = await Lab.open(root, RepositoryBuilder.with_files(root / "repo", files))
        env = dict(os.environ)
        machine = probe(env, root / "state")
        print(f"{files} files; {ROUNDS} rounds")
        async with LocalHost(root / "repo" / ".git" / "plait") as host:
            rows = await starting(Start(lab, host, machine))
        rows += await proving(lab, root, env)
        rows += await sampling(root)
        for row in rows:
            print(row)
    return sum(not row.is_kept for row in rows)


if __name__ == "__main__":
    sys.exit(anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 4_000))

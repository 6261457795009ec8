"""A scope of the user's systemd around an attempt; skipped where no user manager answers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptSpec
from engine.ids import AttemptId
from engine.limits import Dimension, Level, Limits
from engine.phases import StopCause
from engine.sandbox.cgroups import read
from engine.sandbox.confine import confine, release, row, set_limits
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from tests.support.kept import keep
from tests.support.needs import need
from tests.support.processes import read_all, wait_until
from tests.support.sandboxes import EXCESSES, PYTHON, Scene

pytestmark = pytest.mark.anyio


@pytest.fixture
def machine(tmp_path: Path) -> MachineSupport:
    found = probe({**os.environ, "PLAIT_FORCE_OFF": "cgroup2,cgroup1"}, tmp_path / "state")
    need("systemd")
    (tmp_path / "keeping").mkdir()
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


async def test_a_scope_ends_an_attempt_that_is_out_of_memory(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=128, pids=100))
    words = (PYTHON, "-I", str(EXCESSES), "hog", "4", "100")
    kept = await keep(machine, request, tmp_path / "keeping", *words)
    assert kept.end.cause is StopCause.MEMORY, kept
    assert kept.end.unkillable == ()


async def test_a_scope_lets_no_way_to_the_manager_through(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=512))
    kept = await keep(machine, request, tmp_path / "keeping", "env")
    assert kept.end.exit_code == 0, kept.err
    assert b"XDG_RUNTIME_DIR" not in kept.out


async def test_limits_of_a_living_scope_can_be_changed(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=128))
    profile = await to_thread.run_sync(confine, machine, request)
    memory = row(profile, Dimension.MEMORY)
    assert (memory.level, memory.mechanism) == (Level.ENFORCED, "systemd")
    spec = AttemptSpec(
        attempt=AttemptId.parse("run/step/worker_1@1"),
        directory=str(tmp_path / "keeping"),
        argv=("sleep", "60"),
        env=await to_thread.run_sync(environment, machine, request),
        cwd=str(request.workspace),
        mark=request.name,
        profile=profile,
    )
    maximum = Path(profile.cgroups[0].path, "memory.max")
    async with LocalHost(tmp_path) as host:
        await host.start(spec)
        await wait_until(lambda: maximum.exists() and read(maximum) == str(128 << 20))
        await to_thread.run_sync(set_limits, profile, Limits(memory_mb=256), os.environ)
        await wait_until(lambda: read(maximum) == str(256 << 20))
        await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
        await read_all(host, spec.attempt)
    assert await to_thread.run_sync(release, profile) == ()
    await wait_until(lambda: not maximum.exists())

"""Profiles carried out by a real keeper: the same attacks, and limits that end an attempt."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec, Stream
from engine.ids import AttemptId
from engine.limits import Dimension, Limits
from engine.phases import StopCause
from engine.sandbox.confine import confine, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import Machine, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.request import ConfineRequest
from tests.support.attacks import ATTACKS
from tests.support.processes import read_all
from tests.support.sandboxes import PROGRAM, PYTHON, Scene

pytestmark = pytest.mark.anyio


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """This machine, with what the parameter's variables force."""
    forced: dict[str, str] = getattr(request, "param", {})
    found = probe({**os.environ, **forced}, tmp_path / "state")
    rung = forced.get("PLAIT_SANDBOX")
    if rung and not found.has(Mechanism(rung)):
        pytest.skip(found.finding(Mechanism(rung)).reason)
    (tmp_path / "keeping").mkdir()
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


async def kept(
    machine: Machine, request: ConfineRequest, folder: Path, *argv: str
) -> tuple[bytes, AttemptExit]:
    """What an attempt under a real keeper says, and how it ends."""
    env = await to_thread.run_sync(environment, machine, request)
    profile = await to_thread.run_sync(confine, machine, request)
    spec = AttemptSpec(
        attempt=AttemptId.parse("run/step/worker_1@1"),
        directory=str(folder),
        argv=(PYTHON, "-I", str(PROGRAM), *argv),
        env=env,
        cwd=str(request.workspace),
        mark=request.name,
        limits=request.limits,
        profile=profile,
    )
    try:
        async with LocalHost(folder.parent) as host:
            await host.start(spec)
            frames, end = await read_all(host, spec.attempt)
    finally:
        left = await to_thread.run_sync(release, profile)
    assert left == ()
    out = b"".join(frame.data for frame in frames if frame.stream is Stream.OUT)
    err = b"".join(frame.data for frame in frames if frame.stream is Stream.ERR)
    assert end.not_started is None, (end, err)
    return out, end


on_each_rung = pytest.mark.parametrize(
    "machine",
    [{"PLAIT_SANDBOX": "bwrap"}, {"PLAIT_SANDBOX": "landlock"}],
    ids=["bwrap", "landlock"],
    indirect=True,
)
with_and_without_cgroups = pytest.mark.parametrize(
    "machine",
    [{}, {"PLAIT_FORCE_OFF": "cgroup2,cgroup1,systemd"}],
    ids=["best", "sampled"],
    indirect=True,
)


@on_each_rung
async def test_a_kept_attempt_gets_no_further_than_its_profile(
    machine: Machine, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=512, pids=100, disk_mb=100))
    file = await to_thread.run_sync(_noted, scene)
    out, end = await kept(machine, request, tmp_path / "keeping", file, *ATTACKS)
    assert end.exit_code == 0
    got = {name for name, worked in json.loads(out).items() if worked}
    assert got - {"replace_git_file"} == {"tcp", "udp"}
    assert ("replace_git_file" in got) is (machine.demanded == "landlock")


@with_and_without_cgroups
async def test_children_out_of_memory_end_the_whole_attempt(
    machine: Machine, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=128))
    _, end = await kept(machine, request, tmp_path / "keeping", "hog", "4", "100")
    assert end.cause is StopCause.MEMORY
    assert end.limit is not None
    assert (end.limit.dimension, end.limit.allowed) == (Dimension.MEMORY, 128)
    assert end.unkillable == ()


@with_and_without_cgroups
async def test_the_same_children_end_well_below_their_limit(
    machine: Machine, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=1024))
    out, end = await kept(machine, request, tmp_path / "keeping", "hog", "4", "100")
    assert (end.cause, end.exit_code, json.loads(out)) == (None, 0, {"alive": 4})


def _noted(scene: Scene) -> str:
    file = scene.workspace / "scene.json"
    file.write_text(json.dumps(scene.facts))
    return str(file)

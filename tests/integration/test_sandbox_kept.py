"""Profiles carried out by a real keeper: the same attacks, and limits that end an attempt."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from engine.limits import Dimension, Limits
from engine.phases import StopCause
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from tests.support.attacks import ATTACKS
from tests.support.kept import keep
from tests.support.matrix import let_through
from tests.support.needs import need
from tests.support.sandboxes import EXCESSES, PROGRAM, PYTHON, Scene

ATTACKING = (PYTHON, "-I", str(PROGRAM))
TAKING = (PYTHON, "-I", str(EXCESSES))
pytestmark = pytest.mark.anyio


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> MachineSupport:
    """This machine, with what the parameter's variables force."""
    forced: dict[str, str] = getattr(request, "param", {})
    found = probe({**os.environ, **forced}, tmp_path / "state")
    rung = forced.get("PLAIT_SANDBOX")
    if rung:
        need("bubblewrap" if rung == "bwrap" else rung)
    (tmp_path / "keeping").mkdir()
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


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
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=512, pids=100, disk_mb=100))
    file = await to_thread.run_sync(_noted, scene)
    kept = await keep(machine, request, tmp_path / "keeping", *ATTACKING, file, *ATTACKS)
    assert kept.end.exit_code == 0, kept.err
    got = {name for name, worked in json.loads(kept.out).items() if worked}
    assert got == let_through(machine.demanded)


@with_and_without_cgroups
async def test_children_out_of_memory_end_the_whole_attempt(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=128))
    # It keeps what it has until somebody has looked.
    words = ("hog", "4", "100", "100")
    end = (await keep(machine, request, tmp_path / "keeping", *TAKING, *words)).end
    assert end.cause is StopCause.MEMORY
    assert end.limit is not None
    assert (end.limit.dimension, end.limit.allowed) == (Dimension.MEMORY, 128)
    assert end.unkillable == ()


@with_and_without_cgroups
async def test_the_same_children_end_well_below_their_limit(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(limits=Limits(memory_mb=1024))
    kept = await keep(machine, request, tmp_path / "keeping", *TAKING, "hog", "4", "100")
    assert (kept.end.cause, kept.end.exit_code) == (None, 0)
    assert json.loads(kept.out) == {"alive": 4}


async def test_an_agent_on_a_terminal_has_one_and_its_size(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = scene.request(has_terminal=True)
    script = "test -t 0 && stty size && echo typed > /dev/tty"
    keeping = tmp_path / "keeping"
    kept = await keep(machine, request, keeping, "sh", "-c", script, terminal=(33, 99))
    assert kept.end.exit_code == 0, (kept.out, kept.err)
    assert kept.out.split() == [b"33", b"99", b"typed"]


def _noted(scene: Scene) -> str:
    file = scene.workspace / "scene.json"
    file.write_text(json.dumps(scene.facts))
    return str(file)

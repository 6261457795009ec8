"""Cgroups and rlimits of an attempt: values read back, peaks that hold, and nothing left over."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from engine.limits import Dimension, Level, Limits
from engine.sandbox.cgroups import PREFIX, CgroupRefused, limit, make, read
from engine.sandbox.confine import confine, release, row, set_limits
from engine.sandbox.machine import Hierarchy, MachineSupport, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest
from engine.sandbox.room import room
from tests.support import needs
from tests.support.sandboxes import EXCESSES, PYTHON, attempts_with_cgroups, run


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> MachineSupport:
    return probe(os.environ, tmp_path_factory.mktemp("state"))


@pytest.fixture
def request_(tmp_path: Path) -> ConfineRequest:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    return ConfineRequest(
        name=f"limits-{os.getpid()}",
        workspace=tmp_path / "work",
        home=tmp_path / "home",
        read_only=(EXCESSES, Path(PYTHON).parents[1]),
        env=os.environ,
    )


@pytest.fixture
def wrapped(machine: MachineSupport, request_: ConfineRequest) -> Iterator[Callable[..., Profile]]:
    """Makes a profile with these limits; its cgroups go at the end of the test."""
    made: list[Profile] = []

    def wrap(**limits: int | None) -> Profile:
        made.append(confine(machine, replace(request_, limits=Limits(**limits))))
        return made[-1]

    yield wrap
    for profile in made:
        assert release(profile) == ()


def run_program(
    profile: Profile, request: ConfineRequest, *words: str
) -> "subprocess.CompletedProcess[str]":
    argv = [PYTHON, "-I", str(EXCESSES), *words]
    return run(profile, argv, env=dict(os.environ), cwd=request.workspace)


def answer(profile: Profile, request: ConfineRequest, *words: str) -> Mapping[str, int]:
    done = run_program(profile, request, *words)
    assert done.returncode == 0, done.stderr
    said: dict[str, int] = json.loads(done.stdout)
    return said


def group(profile: Profile, controller: str) -> Path:
    return next(Path(each.path) for each in profile.cgroups if controller in each.controllers)


def peak_mb(profile: Profile) -> int:
    found = group(profile, "memory")
    names = ("memory.max_usage_in_bytes", "memory.peak")
    return next(int(read(found / name)) >> 20 for name in names if (found / name).exists())


def test_memory_of_several_children_stays_below_the_cap(
    machine: MachineSupport, request_: ConfineRequest, wrapped: Callable[..., Profile]
):
    needs.need("cgroup memory")
    profile = wrapped(memory_mb=96)
    done = run_program(profile, request_, "hog", "4", "60")
    # Version 2 ends the whole group; in version 1 the parent lives on, and the keeper ends it.
    assert done.returncode == -signal.SIGKILL or json.loads(done.stdout)["alive"] < 4
    assert peak_mb(profile) <= 96
    assert row(profile, Dimension.MEMORY).value == "96 MB"


def test_the_same_children_all_live_without_a_cap(
    machine: MachineSupport, request_: ConfineRequest, wrapped: Callable[..., Profile]
):
    needs.need("cgroup memory")
    profile = wrapped()
    assert answer(profile, request_, "hog", "4", "60")["alive"] == 4
    assert peak_mb(profile) >= 240


def test_a_fork_bomb_ends_at_the_limit_of_processes(
    machine: MachineSupport, request_: ConfineRequest, wrapped: Callable[..., Profile]
):
    needs.need("cgroup pids")
    assert 0 < answer(wrapped(pids=24), request_, "bomb", "100")["forks"] < 24
    assert answer(wrapped(pids=200), request_, "bomb", "100")["forks"] == 100


def test_one_file_grows_no_bigger_than_the_disk_allowed(
    request_: ConfineRequest, wrapped: Callable[..., Profile]
):
    words = ("fill", str(request_.workspace / "big"), "5")
    assert answer(wrapped(disk_mb=2), request_, *words)["megabytes"] == 2
    assert answer(wrapped(), request_, *words)["megabytes"] == 5


def test_folders_in_memory_hold_no_more_than_half_the_memory(
    machine: MachineSupport, request_: ConfineRequest, wrapped: Callable[..., Profile]
):
    needs.need("bubblewrap")
    for place in ("/tmp/big", "/dev/shm/big"):  # noqa: S108 - of the sandbox
        assert answer(wrapped(memory_mb=64), request_, "fill", place, "64")["megabytes"] == 32


def test_every_value_asked_for_is_read_back(
    machine: MachineSupport, wrapped: Callable[..., Profile]
):
    needs.need("cgroup cpu")
    profile = wrapped(cpu_percent=150, memory_mb=256, pids=77)
    values = [row(profile, Dimension(each)).value for each in ("cpu", "memory", "pids")]
    assert values == ["150 %", "256 MB", "77 processes"]
    assert row(profile, Dimension.CPU).level is Level.ENFORCED


def test_limits_of_a_living_attempt_move_up_and_down_and_away(
    machine: MachineSupport, wrapped: Callable[..., Profile]
):
    needs.need("cgroup memory")
    profile = wrapped(memory_mb=128, pids=10)
    for memory in (512, 64, 1024, None):
        seen = set_limits(profile, Limits(memory_mb=memory, pids=20), os.environ)
        expected = "unlimited" if memory is None else f"{memory} MB"
        assert seen[Dimension.MEMORY] == expected
    again = wrapped(memory_mb=32, pids=10)
    assert row(again, Dimension.MEMORY).value == "32 MB"
    assert again.cgroups == profile.cgroups


def test_cgroups_made_inside_those_of_an_attempt_go_with_them(
    machine: MachineSupport, request_: ConfineRequest
):
    needs.need("cgroup memory")
    profile = confine(machine, request_)
    group(profile, "memory").joinpath("made-inside").mkdir()
    assert request_.name in attempts_with_cgroups(machine)
    assert release(profile) == ()
    assert request_.name not in attempts_with_cgroups(machine)
    assert release(profile) == (), "a second time nothing is there, and that is well"


def test_a_group_in_use_is_named_and_not_removed(
    machine: MachineSupport, request_: ConfineRequest, monkeypatch: pytest.MonkeyPatch
):
    needs.need("cgroup pids")
    monkeypatch.setattr("engine.sandbox.cgroups._REMOVAL_S", 0.05)
    profile = confine(machine, request_)
    path = group(profile, "pids")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    (path / "cgroup.procs").write_text(str(child))
    assert release(profile) == (str(path),)
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)
    monkeypatch.undo()
    assert release(profile) == ()


def test_a_value_that_does_not_stick_is_told(tmp_path: Path):
    # A folder that swallows what is written, as a hierarchy without the controller would.
    place = Hierarchy(
        mechanism=Mechanism.CGROUP2, version=2, controllers=("pids",), parent=str(tmp_path)
    )
    groups = make([place], "x")
    (tmp_path / f"{PREFIX}x" / "pids.max").symlink_to(os.devnull)
    with pytest.raises(CgroupRefused, match="should be 5, but is"):
        limit(groups, Limits(pids=5))


def test_a_place_that_is_gone_is_told_and_leaves_nothing(tmp_path: Path):
    places = [
        Hierarchy(mechanism=Mechanism.CGROUP1, version=1, controllers=(each,), parent=str(parent))
        for each, parent in (("cpu", tmp_path), ("memory", tmp_path / "gone"))
    ]
    with pytest.raises(CgroupRefused, match="No such file"):
        make(places, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_limit_that_the_kernel_refuses_is_told_and_leaves_nothing(
    machine: MachineSupport, request_: ConfineRequest
):
    needs.need("cgroup pids")
    with pytest.raises(CgroupRefused, match="Invalid argument"):
        confine(machine, replace(request_, limits=Limits(pids=-5)))
    assert request_.name not in attempts_with_cgroups(machine)


def test_forced_off_cgroups_leave_sampling_and_say_why(tmp_path: Path, request_: ConfineRequest):
    env = {**os.environ, "PLAIT_FORCE_OFF": "cgroup2,cgroup1,systemd"}
    machine = probe(env, tmp_path / "state")
    profile = confine(machine, replace(request_, limits=Limits(memory_mb=64)))
    memory = row(profile, Dimension.MEMORY)
    assert profile.cgroups == ()
    assert (memory.level, memory.mechanism, memory.value) == (Level.SAMPLED, "sampling", "64 MB")
    assert "PLAIT_FORCE_OFF=cgroup2,cgroup1,systemd" in memory.reason


def test_room_is_no_more_than_the_group_around_us_leaves(
    machine: MachineSupport, wrapped: Callable[..., Profile], tmp_path: Path
):
    needs.need("cgroup memory")
    profile = wrapped(memory_mb=300)
    free = room(tmp_path)
    assert free.memory_mb > 300
    assert free.disk_mb > 0
    script = "from pathlib import Path; from engine.sandbox.room import room; "
    script += "print(room(Path('/')).memory_mb)"
    outside = Profile(cgroups=profile.cgroups)
    cwd = Path(__file__).parents[2]
    done = run(outside, [sys.executable, "-c", script], env=dict(os.environ), cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert 200 < int(done.stdout) <= 300

"""Mechanisms that this machine lacks work with substitutes: cgroup version 2, `systemd-run`.

A folder stands in for a cgroup: it takes what is written, and the test plays the kernel's part.
"""

import os
import stat
from pathlib import Path

import pytest

from engine.keeper.cgroups import Cgroups
from engine.keeper.request import CgroupPath
from engine.limits import Dimension, Limits
from engine.sandbox.cgroups import CgroupRefused, limit
from engine.sandbox.machine import Mechanism
from engine.sandbox.profile import Cgroup
from engine.sandbox.scope import probe_scope

CONTROLLERS = ("memory", "cpu", "pids")


@pytest.fixture
def group(tmp_path: Path) -> Cgroup:
    (tmp_path / "memory.swap.max").write_text("max")
    return Cgroup(version=2, controllers=CONTROLLERS, path=str(tmp_path))


def test_limits_of_version_2_are_written_with_no_swap_and_for_the_whole_group(group: Cgroup):
    seen = limit([group], Limits(memory_mb=512, cpu_percent=150, pids=77))
    said = {
        name: Path(group.path, name).read_text()
        for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max")
    }
    assert said == {
        "memory.max": str(512 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
        "pids.max": "77",
    }
    assert [seen[Dimension(each)] for each in CONTROLLERS] == ["512 MB", "150 %", "77 processes"]
    limit([group], Limits())
    assert Path(group.path, "memory.max").read_text() == "max"
    assert Path(group.path, "memory.swap.max").read_text() == "max"


@pytest.mark.parametrize("name", ["memory.max", "memory.swap.max", "memory.oom.group", "cpu.max"])
def test_a_limit_of_version_2_that_does_not_stick_is_told(group: Cgroup, name: str):
    Path(group.path, name).unlink(missing_ok=True)
    Path(group.path, name).symlink_to(os.devnull)
    with pytest.raises(CgroupRefused, match=name):
        limit([group], Limits(memory_mb=512, cpu_percent=150))


def test_a_kill_by_the_kernel_in_version_2_is_seen(tmp_path: Path):
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    path = {"version": 2, "controllers": ["memory"], "path": str(tmp_path), "is_joined": True}
    watched = Cgroups([CgroupPath(path)])
    assert watched.oom_kills() == 0, "those before this attempt are not its own"
    (tmp_path / "memory.events").write_text("low 0\noom 4\noom_kill 3\n")
    (tmp_path / "memory.peak").write_text("1048576\n")
    assert (watched.oom_kills(), watched.memory_peak()) == (1, 1 << 20)


def manager(folder: Path, script: str) -> dict[str, str]:
    """An environment in which `systemd-run` is this script."""
    program = folder / "systemd-run"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.defpath}"}


def test_a_manager_whose_scopes_take_limits_is_believed(tmp_path: Path):
    values = f"echo /sys/fs/cgroup/u.slice/a.scope; echo {64 << 20}; echo 50000 100000; echo 16"
    finding, place = probe_scope(manager(tmp_path, values))
    assert finding.works
    assert place is not None
    assert (place.mechanism, place.parent) == (Mechanism.SYSTEMD, "/sys/fs/cgroup/u.slice")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo /g/a.scope; echo max; echo max 100000; echo max", "the limits of a scope read"),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', ""),
        ("echo Failed to connect to bus >&2; exit 1", "Failed to connect to bus"),
    ],
    ids=["limits without effect", "nothing but the program", "no manager"],
)
def test_a_manager_that_only_pretends_is_not_believed(tmp_path: Path, script: str, reason: str):
    finding, place = probe_scope(manager(tmp_path, script))
    assert (finding.works, place) == (False, None)
    assert reason in finding.reason
    assert finding.fix

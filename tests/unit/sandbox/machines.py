"""Machines and requests made up for tests that touch no world."""

from pathlib import Path

from engine.limits import Limits
from engine.sandbox.machine import Hierarchy, MachineSupport, Mechanism, MechanismFinding
from engine.sandbox.request import ConfineRequest, NetworkAccess, SandboxHoles

_ALL = ("memory", "cpu", "pids")

FULL = MachineSupport(
    identity="full",
    uid=1000,
    findings=tuple(MechanismFinding(mechanism=each, works=True) for each in Mechanism),
    hierarchies=(
        Hierarchy(mechanism=Mechanism.CGROUP2, version=2, controllers=_ALL, parent="/c2"),
        Hierarchy(mechanism=Mechanism.SYSTEMD, version=2, controllers=_ALL, parent="/scope"),
        Hierarchy(mechanism=Mechanism.CGROUP1, version=1, controllers=_ALL, parent="/c1"),
    ),
    python=("python",),
    python_home="/usr",
    launcher="/plait/landlock.py",
    landlock_abi=7,
)
"""Everything works, and nothing of it is looked at."""


def asking(
    limits: Limits | None = None,
    *,
    docker: bool = False,
    network: NetworkAccess = NetworkAccess.OPEN,
) -> ConfineRequest:
    return ConfineRequest(
        name="x",
        workspace=Path("/w"),
        home=Path("/h"),
        private_clone=Path("/g"),
        limits=limits or Limits(),
        network=network,
        way_dir=Path("/e"),
        holes=SandboxHoles(docker=docker),
    )

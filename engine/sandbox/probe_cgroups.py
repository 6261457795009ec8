"""Trying out cgroups: where this user can make them, and which limits are really taken.

A place counts only when a group was made there, a limit read back, and a process moved into it.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine.limits import Limits
from engine.sandbox import cgroups
from engine.sandbox.machine import Hierarchy, Mechanism, MechanismFinding
from engine.sandbox.profile import Cgroup
from engine.sandbox.trials import is_container
from engine.system import IS_PORTABLE
from engine.values import dataclass

_LIMITED = ("memory", "cpu", "pids")
_V1_CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "freezer")
_TRIAL = Limits(memory_mb=64, cpu_percent=50, pids=16)
_DELEGATION = (
    "Start plait in a session that systemd gave its own cgroup, or let the administrator delegate "
    "one: `systemctl edit user@.service` with `[Service]` and `Delegate=cpu memory pids`."
)
_CONTAINER = (
    "In a container: start it with `--cgroupns=private` and a writable /sys/fs/cgroup, or rely "
    "on the container's own limits for all attempts together."
)


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One mounted hierarchy, and the group in it that this process is in."""

    mechanism: Mechanism
    controllers: tuple[str, ...]
    root: Path
    own: Path

    @property
    def is_unified(self) -> bool:
        """Version 2: one hierarchy for all controllers."""
        return self.mechanism is Mechanism.CGROUP2

    @property
    def version(self) -> int:
        """The number by which everyone knows it."""
        return 2 if self.is_unified else 1


def mounts() -> tuple[Mount, ...]:
    """The hierarchies mounted here that are of use."""
    if IS_PORTABLE:
        return ()
    own = dict(_own_groups(Path("/proc/self/cgroup").read_text()))
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        _, _, _, top, point = before.split(" ")[:5]
        words = options.split(" ")[-1].split(",")
        named = tuple(each for each in _V1_CONTROLLERS if each in words)
        if kind == "cgroup2" or named:
            path = own.get(named[0] if named else "", "/")
            inner = os.path.relpath(path, top) if path.startswith(top) else "."
            root = Path(point)
            found.append(
                Mount(
                    mechanism=Mechanism.CGROUP1 if named else Mechanism.CGROUP2,
                    controllers=named,
                    root=root,
                    own=(root / inner).resolve(),
                )
            )
    return tuple(found)


def _own_groups(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def probe_cgroups() -> tuple[list[MechanismFinding], list[Hierarchy]]:
    """Probe what cgroups can do here: the findings, and the places, version 2 first."""
    found = sorted(mounts(), key=lambda mount: -mount.version)
    tried = [(mount, *_try(mount)) for mount in found]
    places = [place for _, place, _ in tried if place is not None]
    findings = [
        _finding(Mechanism.CGROUP2, [each for each in tried if each[0].is_unified]),
        _finding(Mechanism.CGROUP1, [each for each in tried if not each[0].is_unified]),
    ]
    killer = next((each for each in places if each.mechanism is Mechanism.CGROUP2), None)
    findings.append(
        MechanismFinding(
            mechanism=Mechanism.CGROUP_KILL,
            works=killer is not None,
            detail=killer.parent if killer else "",
            reason="" if killer else "plait cannot create a version 2 cgroup",
        )
    )
    return findings, places


_Tried = tuple[Mount, Hierarchy | None, str]


def _finding(mechanism: Mechanism, tried: list[_Tried]) -> MechanismFinding:
    taken = [
        each for _, place, _ in tried if place for each in place.controllers if each in _LIMITED
    ]
    reasons = dict.fromkeys(why for _, _, why in tried if why)
    reason = "; ".join(reasons) or ("" if tried else "it is not mounted")
    works = bool(taken)
    return MechanismFinding(
        mechanism=mechanism,
        works=works,
        detail=", ".join(taken),
        reason=reason if not works or set(taken) != set(_LIMITED) else "",
        fix="" if works else _CONTAINER if is_container() else _DELEGATION,
    )


def _try(mount: Mount) -> tuple[Hierarchy | None, str]:
    """The best parent for our groups in one hierarchy: our own group, or one above it."""
    why = ""
    best: Hierarchy | None = None
    for parent in (mount.own, *mount.own.parents):
        if not parent.is_relative_to(mount.root) or (not mount.is_unified and parent != mount.own):
            break
        try:
            controllers = _controllers_below(mount, parent)
        except OSError as problem:
            why = why or f"plait cannot create a group: {problem.strerror}"
            continue
        if best is None or len(controllers) > len(best.controllers):
            best = Hierarchy(
                mechanism=mount.mechanism,
                version=mount.version,
                controllers=controllers,
                parent=str(parent),
            )
    if best is not None and mount.is_unified and not best.controllers:
        why = why or "no controller for memory, cpu or pids"
    return best, why


def _controllers_below(mount: Mount, parent: Path) -> tuple[str, ...]:
    """Return the limits that a group made here takes; raise where none can be made or joined."""
    if mount.is_unified:
        _enable(parent)
    group = Path(tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}probe-", dir=parent))
    try:
        _join(group)
        there = mount.controllers
        if mount.is_unified:
            there = tuple(cgroups.read(group / "cgroup.controllers").split())
        wanted = [each for each in (*_LIMITED, "cpuacct", "freezer") if each in there]
        return tuple(each for each in wanted if _is_taken(group, mount.version, each))
    finally:
        cgroups.remove([Cgroup(version=mount.version, controllers=(), path=str(group))])


def _enable(parent: Path) -> None:
    """Ask for the controllers below; a group with processes of its own refuses (EBUSY)."""
    offered = cgroups.read(parent / "cgroup.controllers").split()
    enabled = cgroups.read(parent / "cgroup.subtree_control").split()
    for controller in _LIMITED:
        if controller in offered and controller not in enabled:
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")


def _join(group: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        try:
            (group / "cgroup.procs").write_text(str(child.pid))
            if str(child.pid) not in cgroups.read(group / "cgroup.procs").split():
                raise OSError(0, "a process did not stay in the group")
        finally:
            child.kill()


def _is_taken(group: Path, version: int, controller: str) -> bool:
    try:
        cgroups.limit([Cgroup(version=version, controllers=(controller,), path=str(group))], _TRIAL)
    except (cgroups.CgroupRefused, ValueError):
        return False
    return True

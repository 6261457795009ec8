"""Cgroups of our own, version 1 and 2: made, limited, read back, and removed.

Every value written is read back, because a kernel may round it and an old group may keep another.
Who is put into a group, and what is read from it while it lives, is the keeper's work.
"""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from engine.errors import EngineError
from engine.limits import Dimension, Limits
from engine.sandbox.machine import Hierarchy
from engine.sandbox.profile import Cgroup

PREFIX = "plait-"
_PERIOD_US = 100_000
_V1_NO_LIMIT = 1 << 62
_REMOVAL_S = 2.0
_FORGOTTEN_S = 3600.0


class CgroupRefused(EngineError):
    """The kernel did not take a limit that it took when it was probed."""

    def __init__(self, where: str, wanted: str, found: str) -> None:
        self.where, self.wanted, self.found = where, wanted, found
        super().__init__(f"{where} should be {wanted}, but is {found}")


def make(hierarchies: Iterable[Hierarchy], name: str) -> tuple[Cgroup, ...]:
    """The cgroups of one attempt, without limits yet; made already is fine.

    Hierarchies come best first: a controller is taken from the first that has it.

    Raises:
        CgroupRefused: One cannot be made any more; none is left.
    """
    made: list[Cgroup] = []
    taken: set[str] = set()
    for hierarchy in hierarchies:
        controllers = tuple(each for each in hierarchy.controllers if each not in taken)
        if not controllers and hierarchy.controllers:
            continue
        taken.update(controllers)
        path = Path(hierarchy.parent, PREFIX + name)
        try:
            path.mkdir(exist_ok=True)
        except OSError as problem:
            remove(made)
            raise CgroupRefused(str(path), "a cgroup", problem.strerror or "") from problem
        made.append(Cgroup(version=hierarchy.version, controllers=controllers, path=str(path)))
    return tuple(made)


def limit(cgroups: Iterable[Cgroup], limits: Limits) -> dict[Dimension, str]:
    """Set the limits, of a group that runs too; what each dimension then reads.

    Raises:
        CgroupRefused: A value read back is not the one written, or the kernel refused outright,
            such as a memory limit below what cannot be freed.
    """
    seen: dict[Dimension, str] = {}
    for group in cgroups:
        path = Path(group.path)
        for controller, dimension, write in _WRITERS:
            if controller in group.controllers:
                seen[dimension] = write(path, group.version, limits)
    return seen


def kill(cgroups: Iterable[Cgroup]) -> None:
    """Kill whatever is in these groups, until nothing is or time is up."""
    deadline = time.monotonic() + _REMOVAL_S
    for group in cgroups:
        path = Path(group.path)
        if (path / "cgroup.kill").exists():
            (path / "cgroup.kill").write_text("1")
        while (found := _processes(path)) and time.monotonic() < deadline:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            select.select([], [], [], 0.001)


def remove(cgroups: Iterable[Cgroup]) -> tuple[str, ...]:
    """Remove the groups of an attempt that is dead; the paths of those that would not go.

    The kernel says EBUSY for some milliseconds after the last process has ended.
    """
    deadline = time.monotonic() + _REMOVAL_S
    left = [Path(group.path) for group in cgroups]
    while left:
        left = [path for path in left if not _is_removed(path)]
        if not left or time.monotonic() > deadline:
            break
        select.select([], [], [], 0.005)
    return tuple(str(path) for path in left)


def sweep(hierarchies: Iterable[Hierarchy], *, older_than_s: float = _FORGOTTEN_S) -> None:
    """Remove the empty groups that engines left when they were killed.

    The kernel refuses to remove one with a process in it, frozen ones too; those of attempts that
    are only being prepared are younger.
    """
    now = time.time()
    for hierarchy in hierarchies:
        with contextlib.suppress(OSError), os.scandir(hierarchy.parent) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another engine may have removed it by now
                    if entry.name.startswith(PREFIX) and entry.stat().st_mtime < now - older_than_s:
                        os.rmdir(entry.path)  # noqa: PTH106 - a path object says no more


def read(path: Path) -> str:
    """A control file's one value."""
    return path.read_text().strip()


def _processes(path: Path) -> list[int]:
    try:
        return [int(line) for line in (path / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []


def _is_removed(path: Path) -> bool:
    try:
        for below in _groups_below(path):
            below.rmdir()
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError as problem:
        if problem.errno not in (errno.EBUSY, errno.ENOTEMPTY):
            raise
        return False
    return True


def _groups_below(path: Path) -> Iterator[Path]:
    """Groups that the attempt made itself, deepest first."""
    for root, _, _ in os.walk(path, topdown=False):
        if Path(root) != path:
            yield Path(root)


def _written(path: Path, value: str, *, is_same: Callable[[str], bool] | None = None) -> str:
    try:
        path.write_text(value)
        found = read(path)
    except OSError as problem:
        raise CgroupRefused(str(path), value, problem.strerror or "") from problem
    if not (is_same(found) if is_same else found == value):
        raise CgroupRefused(str(path), value, found)
    return found


def _memory(path: Path, version: int, limits: Limits) -> str:
    wanted = None if limits.memory_mb is None else limits.memory_mb << 20
    if version == 1:
        return _memory_v1(path, wanted)
    found = _written(path / "memory.max", "max" if wanted is None else str(wanted))
    if (path / "memory.swap.max").exists():
        _written(path / "memory.swap.max", "max" if wanted is None else "0")
    # One process out of memory must be the end of the whole: an agent that lost a child exits 0.
    _written(path / "memory.oom.group", "1")
    return _megabytes(wanted, found)


def _memory_v1(path: Path, wanted: int | None) -> str:
    value = str(-1 if wanted is None else wanted)

    def is_same(found: str) -> bool:
        return int(found) >= _V1_NO_LIMIT if wanted is None else int(found) == wanted

    plain, with_swap = path / "memory.limit_in_bytes", path / "memory.memsw.limit_in_bytes"
    if not with_swap.exists():
        return _megabytes(wanted, _written(plain, value, is_same=is_same))
    # Memory may never be allowed more than memory with swap: raise the outer one first, and
    # lower it last.
    is_raised = wanted is None or wanted > int(read(with_swap))
    for file in (with_swap, plain) if is_raised else (plain, with_swap):
        _written(file, value, is_same=is_same)
    return _megabytes(wanted, read(plain))


def _megabytes(wanted: int | None, found: str) -> str:
    return "unlimited" if wanted is None else f"{int(found) >> 20} MB"


def _cpu(path: Path, version: int, limits: Limits) -> str:
    percent = limits.cpu_percent
    quota = -1 if percent is None else max(percent * _PERIOD_US // 100, 1000)
    if version == 1:
        _written(path / "cpu.cfs_period_us", str(_PERIOD_US))
        found = _written(path / "cpu.cfs_quota_us", str(quota))
    else:
        wanted = f"{'max' if quota < 0 else quota} {_PERIOD_US}"
        found = _written(path / "cpu.max", wanted).split()[0]
    return "unlimited" if percent is None else f"{int(found) * 100 // _PERIOD_US} %"


def _pids(path: Path, _: int, limits: Limits) -> str:
    found = _written(path / "pids.max", "max" if limits.pids is None else str(limits.pids))
    return "unlimited" if limits.pids is None else f"{found} processes"


_WRITERS = (
    ("memory", Dimension.MEMORY, _memory),
    ("cpu", Dimension.CPU, _cpu),
    ("pids", Dimension.PIDS, _pids),
)

"""The room for attempts on this machine now, seen from where the engine itself is shut in.

In a container, or below a limit of systemd's, the machine's free memory is not ours to give away.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from engine.sandbox.probe_cgroups import Mount, mounts
from engine.values import dataclass

_LIMIT = {True: "memory.max", False: "memory.limit_in_bytes"}
_USAGE = {True: "memory.current", False: "memory.usage_in_bytes"}
_MB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Room:
    """The room that a machine has now."""

    memory_mb: int
    disk_mb: int


def room(folder: Path) -> Room:
    """The memory that is left here, and the disk that is left under a folder."""
    free = [psutil.virtual_memory().available, *_left_in_cgroups()]
    return Room(memory_mb=min(free) // _MB, disk_mb=shutil.disk_usage(folder).free // _MB)


def _left_in_cgroups() -> Iterator[int]:
    """Return what each group around this process still allows; file caches can be given back."""
    try:
        found = mounts()
    except FileNotFoundError:  # not Linux
        return
    for mount in found:
        if mount.is_unified or "memory" in mount.controllers:
            for group in (mount.own, *mount.own.parents):
                if group.is_relative_to(mount.root):
                    yield from _left(group, mount)


def _left(group: Path, mount: Mount) -> Iterator[int]:
    limit, usage = (group / names[mount.is_unified] for names in (_LIMIT, _USAGE))
    if not limit.exists() or not usage.exists():
        return
    allowed = limit.read_text().strip()
    if allowed.isdigit():
        lines = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        kept = next((int(value) for name, value in lines if name == "inactive_file"), 0)
        yield max(int(allowed) - int(usage.read_text()) + kept, 0)

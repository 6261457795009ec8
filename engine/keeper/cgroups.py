"""The cgroups made for one attempt: what they count, freezing and killing through them.

They are made, limited and removed by others; a keeper only looks and uses what is there.
"""

from __future__ import annotations

import os

from engine.keeper.proc import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.keeper.request import CgroupPath

_MICRO, _NANO = 1e-6, 1e-9


class Cgroups:
    """The kernel's counts of an attempt; every answer is None where no cgroup can give it."""

    def __init__(self, paths: list[CgroupPath]) -> None:
        self._unified = next((each.path for each in paths if each.version > 1), None)
        self._of: dict[str, tuple[int, str]] = {}
        for each in paths:
            for controller in each.controllers:
                self._of[controller] = (each.version, each.path)
        self._oom_before = 0
        self._oom_before = self.oom_kills()

    def has(self, controller: str) -> bool:
        """Tell whether the kernel holds this for the attempt."""
        return controller in self._of

    def memory(self) -> int | None:
        """Bytes in use."""
        return self._number("memory", "memory.usage_in_bytes", "memory.current")

    def memory_peak(self) -> int | None:
        """The most bytes that were in use."""
        return self._number("memory", "memory.max_usage_in_bytes", "memory.peak")

    def processes(self) -> int | None:
        """Processes and threads."""
        return self._number("pids", "pids.current", "pids.current")

    def cpu_s(self) -> float | None:
        """Processor seconds used."""
        nanos = self._number("cpuacct", "cpuacct.usage", "")
        if nanos is not None:
            return nanos * _NANO
        if self._unified is None:
            return None
        micros = _table(f"{self._unified}/cpu.stat").get("usage_usec")
        return micros * _MICRO if micros is not None else None

    def oom_kills(self) -> int:
        """Return how often the kernel has ended a process for want of memory."""
        version, path = self._of.get("memory", (0, ""))
        if not path:
            return 0
        name = "memory.oom_control" if version == 1 else "memory.events"
        return _table(f"{path}/{name}").get("oom_kill", 0) - self._oom_before

    def freeze(self, *, is_frozen: bool) -> bool:
        """Stop or continue everybody inside; False when no cgroup can."""
        if self._unified is not None:
            return _write(f"{self._unified}/cgroup.freeze", "1" if is_frozen else "0")
        if "freezer" in self._of:
            state = "FROZEN" if is_frozen else "THAWED"
            return _write(f"{self._of['freezer'][1]}/freezer.state", state)
        return False

    def kill(self) -> None:
        """End everybody inside, where the kernel can do so at once."""
        if self._unified is not None:
            _write(f"{self._unified}/cgroup.kill", "1")

    def _number(self, controller: str, first: str, second: str) -> int | None:
        version, path = self._of.get(controller, (0, ""))
        name = first if version == 1 else second
        text = read(f"{path}/{name}") if path and name else b""
        return int(text) if text.strip().isdigit() else None


def members(path: str) -> list[int]:
    """Everybody in a cgroup."""
    return [int(pid) for pid in read(f"{path}/cgroup.procs").split()]


def kill(path: str) -> bool:
    """End everybody in a cgroup of version 2."""
    return _write(f"{path}/cgroup.kill", "1")


def thaw(paths: list[str]) -> None:
    """Let everybody inside go on: in version 1 the frozen do not die."""
    for path in paths:
        _write(f"{path}/freezer.state", "THAWED")


def _table(path: str) -> dict[str, int]:
    pairs = (line.split() for line in read(path).decode().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) > 1 and pair[1].isdigit()}


def _write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True

"""The questions that `proc` asks /proc, asked of psutil: for systems that have no /proc.

Nothing is as cheap here, and what belongs to other users stays unknown.
"""

from __future__ import annotations

from contextlib import suppress

import psutil

_STATES = {psutil.STATUS_ZOMBIE: "Z", psutil.STATUS_DEAD: "X", psutil.STATUS_STOPPED: "T"}
_TICKS = 100
_GONE = (psutil.Error, OSError)
Facts = tuple[str, str, int, float, int, int, int]
"""Name, state, parent, seconds of processor, threads, when it began, bytes of memory."""


def facts(pid: int) -> Facts | None:
    """Return what is known of a process, if it is there."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            state = _STATES.get(process.status(), "S")
            start = round(process.create_time() * _TICKS)
            name, parent = process.name(), process.ppid()
    except _GONE:
        return None
    cpu_s, threads, memory = 0.0, 1, 0
    with suppress(*_GONE):  # a zombie has none of it, and another user's is not told
        times = process.cpu_times()
        cpu_s = times.user + times.system
        threads, memory = process.num_threads(), process.memory_info().rss
    return name, state, parent, cpu_s, threads, start, memory


def terminal(pid: int) -> str:
    """The terminal of a process, such as `pts/3`."""
    with suppress(*_GONE, AttributeError):
        return (psutil.Process(pid).terminal() or "").removeprefix("/dev/")
    return ""


def everybody() -> list[int]:
    """Every process that can be seen."""
    return psutil.pids()


def environment(pid: int) -> dict[str, str]:
    """The variables of a process; none where they may not be read."""
    with suppress(*_GONE):
        return psutil.Process(pid).environ()
    return {}


def folder(pid: int) -> str:
    """Return the working folder of a process; empty where it may not be known."""
    with suppress(*_GONE):
        return psutil.Process(pid).cwd()
    return ""


def command(pid: int) -> bytes:
    """The words of a process, each ended by a null byte."""
    with suppress(*_GONE):
        return b"".join(word.encode() + b"\0" for word in psutil.Process(pid).cmdline())
    return b""


def boot() -> str:
    """Return a name for this boot of the machine."""
    return f"booted-{psutil.boot_time():.0f}"

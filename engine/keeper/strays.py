"""Ending an attempt whose keeper was killed: finding and ending who is left, writing it down.

Without the keeper, their parent, plait cannot prove that no process is left. It finds them by what
the keeper had written down, by their cgroup, and by the mark in their environment.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

from engine.keeper import cgroups, files, proc, recording, wire
from engine.keeper.tree import catch, signal_all

LOST = "KEEPER_LOST"
_GIVE_UP_S = 5.0
_ROUND_S = 0.005


def end_lost(directory_fd: int) -> dict[str, Any] | None:
    """Return what exit.json says, written here if nobody else could; None while a keeper lives."""
    if not files.lock(directory_fd):
        return None
    written = files.load(directory_fd, files.EXIT)
    if written is not None:
        return written
    keeper = files.load(directory_fd, files.KEEPER) or {}
    is_here = keeper.get("boot") == proc.boot_id()
    unkillable = end_all(keeper) if is_here else []
    content = _content(directory_fd, keeper, unkillable)
    exit_file = files.ExitFile(directory_fd)
    exit_file.write(content)
    exit_file.close()
    return content


def end_all(keeper: dict[str, Any]) -> list[int]:
    """End everybody whom a keeper.json leads to; returns those who could not be ended."""
    paths = [path for _, path in keeper.get("cgroups", [])]
    for path in paths:
        cgroups.kill(path)
    pause, deadline = threading.Event(), time.monotonic() + _GIVE_UP_S
    living: set[int] = set()
    # Whoever was killed is asked after until it is gone: while it ends it has no mark any more.
    while living := _living(living | catch(_find(keeper, paths))):
        signal_all(living, signal.SIGKILL)
        cgroups.thaw(paths)
        if time.monotonic() > deadline:
            return sorted(living)
        pause.wait(_ROUND_S)
    return []


def _find(keeper: dict[str, Any], paths: list[str]) -> set[int]:
    known = [keeper.get("agent"), keeper.get("init"), *keeper.get("orphans", [])]
    roots = [each["pid"] for each in known if each and proc.is_alive(each["pid"], each["start"])]
    roots += [pid for path in paths for pid in cgroups.members(path)]
    roots += proc.marked(keeper["mark"]) if keeper.get("mark") else []
    return set(roots) - {os.getpid()}


def _living(pids: set[int]) -> set[int]:
    looked_at = filter(None, map(proc.look, pids))
    return {process.pid for process in looked_at if not process.is_dead}


def _content(directory_fd: int, keeper: dict[str, Any], unkillable: list[int]) -> dict[str, Any]:
    size = 0
    with suppress(OSError):
        size = os.stat(recording.FILE, dir_fd=directory_fd).st_size
    return {
        "v": wire.VERSION,
        "attempt": keeper.get("attempt"),
        "cause": LOST,
        "exit_code": None,
        "signal": None,
        "not_started": None if "agent" in keeper else "its keeper was killed before it began",
        "limit": None,
        "usage": {},
        "wall_s": 0.0,
        "paused_s": 0.0,
        "leader_end": size,
        "end": size,
        "is_truncated": False,
        "left_over": [],
        "unkillable": unkillable,
        "ended_at": time.time(),
    }

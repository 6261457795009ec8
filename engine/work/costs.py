"""Measure what plait itself uses: the engine of this process, what it runs, and its keepers."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from engine.keeper import proc
from engine.keeper.program import NAME as KEEPER
from engine.messages.timing import EngineCosts

_MB = 1 << 20


def engine_costs(runs: Path, at: float) -> EngineCosts:
    """Return what this engine has used since it began; it reads /proc, so call it in a thread.

    Args:
        runs: The folder of its runs: keepers work in there, whichever engine began them.
        at: The moment.
    """
    times, me = os.times(), psutil.Process()
    keepers = dict(_keepers(f"{runs}{os.sep}"))
    return EngineCosts(
        at=at,
        pid=me.pid,
        up=max(time.time() - me.create_time(), 0.0),
        engine=times.user + times.system,
        programs=times.children_user + times.children_system,
        keepers=sum(keepers.values()),
        attempts=len(keepers),
        memory_mb=me.memory_info().rss / _MB,
    )


def _keepers(below: str) -> Iterator[tuple[str, float]]:
    """Yield the folder of each living keeper, and its processor seconds without its agent's."""
    for pid in proc.everybody():
        process = proc.look(pid)
        if process is None or process.name != KEEPER:
            continue
        folder = proc.folder(pid)
        if not folder.startswith(below):
            continue
        with suppress(psutil.Error):  # it has just ended
            used = psutil.Process(pid).cpu_times()
            yield folder, used.user + used.system

"""Read the machine's figures for benches, and print them."""

import os
import select
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measured figure and the bound it should keep."""

    what: str
    value: float
    bound: float
    unit: str
    is_least: bool = False
    note: str = ""

    @property
    def is_kept(self) -> bool:
        return self.value >= self.bound if self.is_least else self.value <= self.bound

    def __str__(self) -> str:
        sign, verdict = ("≥" if self.is_least else "≤"), ("ok" if self.is_kept else "MISSED")
        told = f"{self.value:10.3f} {self.unit:<9} {sign} {self.bound:<8g} {verdict:<7}"
        return f"{self.what:<50} {told} {self.note}"


def said(what: str, figure: str) -> None:
    """One row of a bench."""
    sys.stdout.write(f"{what:<60} {figure}\n")
    sys.stdout.flush()


def cpu_seconds(process: int) -> float:
    """The CPU time of a process, all its threads, to the nanosecond."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def children_and_self() -> float:
    """The CPU time of this process and of all that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_for(master: int, seconds: float) -> int:
    """Read a terminal for so long; how many bytes came."""
    deadline, read = time.monotonic() + seconds, 0
    while (left := deadline - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            read += len(os.read(master, 65_536))
    return read

"""What a bench of the console reads off the machine."""

import os
import select
import sys
import time
from pathlib import Path


def said(what: str, figure: str) -> None:
    """One row of a bench."""
    sys.stdout.write(f"{what:<60} {figure}\n")
    sys.stdout.flush()


def cpu_seconds(process: int) -> float:
    """The processor time of a process, all its threads, to the nanosecond."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def read_for(master: int, seconds: float) -> int:
    """Read a terminal for so long; how many bytes came."""
    deadline, read = time.monotonic() + seconds, 0
    while (left := deadline - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            read += len(os.read(master, 65_536))
    return read

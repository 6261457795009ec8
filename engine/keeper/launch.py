"""For the engine: starting a zygote, or a keeper by itself, as a program of its own.

They get the null device as standard input and output and a file of the run for their complaints:
with the engine's own, a shell behind the engine would wait for the last keeper.
"""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from engine.keeper.{0} import main; main()"


def start(program: str, descriptors: list[int], log: Path) -> int:
    """Start `zygote` or `program`, which gets these descriptors; returns its process id."""
    boot = _BOOT.format(program)
    words = [sys.executable, "-I", "-S", "-c", boot, _ROOT, *map(str, descriptors)]
    with log.open("ab", buffering=0) as complaints:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=descriptors,
            env={},
            cwd="/",
        )
    process.returncode = 0  # whoever waits for it is told elsewhere; no warning when it is dropped
    return process.pid


def reap(pid: int) -> bool:
    """Take in a program started here, if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True

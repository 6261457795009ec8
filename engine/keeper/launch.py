"""For the engine: starting a zygote, or a keeper by itself, as a program of its own.

They get the null device as standard input and output and a file of the run for their complaints:
with the engine's own, a shell behind the engine would wait for the last keeper.
"""

import os
import subprocess
import sys
from pathlib import Path

from engine.private import private_folder
from engine.system import IS_PORTABLE, PORTABLE

_ENGINE = str(Path(__file__).resolve().parents[1])
# The package `engine` is made up on the spot, so that nothing of it is run or can be found but this
# room: neither its front door nor what lies beside it where it is installed.
_BOOT = (
    "import sys; engine = type(sys)('engine'); engine.__path__ = [sys.argv.pop(1)];"
    "sys.modules['engine'] = engine; import engine.keeper.{0} as program; {1}"
)


def words(program: str, then: str = "program.main()") -> list[str]:
    """The words that run a module of this room by itself, and what it is to do."""
    alone = ["-I"] if IS_PORTABLE else ["-I", "-S"]  # psutil lies where only `site` looks
    return [sys.executable, *alone, "-c", _BOOT.format(program, then), _ENGINE]


def start(program: str, descriptors: list[int], log: Path) -> int:
    """Start `zygote` or `program`, which gets these descriptors; returns its process id."""
    private_folder(log.parent)
    with log.open("ab", buffering=0) as complaints:
        process = subprocess.Popen(
            [*words(program), *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=descriptors,
            env={PORTABLE: "1"} if IS_PORTABLE else {},
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

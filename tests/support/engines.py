"""An engine to be killed: `engines.py FOLDER KIND COUNT PROGRAM …` starts attempts, then waits.

KIND is `detached` or `tethered`. With `-forked` a forked copy of the engine lives on, which holds
every descriptor of it open; with `-becoming` the engine's process becomes another program.
"""

import os
import signal
import sys
from pathlib import Path

import anyio

from engine.host.local import LocalHost
from tests.support.processes import attempt


def _fork_copy(folder: Path) -> None:
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    (folder / "copy.pid").write_text(str(pid))


async def _main(folder: Path, kind: str, count: int, argv: list[str]) -> None:
    host = LocalHost(folder)
    for number in range(1, count + 1):
        is_tethered = kind.startswith("tethered")
        spec = attempt(folder, *argv, number=number, is_tethered=is_tethered, grace_s=0.5)
        await host.start(spec)
    if kind.endswith("forked"):
        _fork_copy(folder)
    sys.stdout.write("started\n")
    sys.stdout.flush()
    if kind.endswith("becoming"):
        os.execvp("sleep", ["sleep", "600"])  # noqa: S606 - the same process, another program
    await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])

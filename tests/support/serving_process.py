"""A detached engine that serves the programs of two workers until it is killed.

`serving_process.py PROJECT` reads a manifest as JSON from its input. Once both are ready it says
their ports, and the process id of the agent of the second, which still works.
"""

import json
import sys
from pathlib import Path

import anyio

from engine.api import Engine
from engine.keeper import proc
from engine.phases import Phase
from tests.support.engine_runs import wait_worker
from tests.support.served import ready


async def main(project: Path, text: str) -> None:
    async with Engine.open(project, detach=True) as engine:
        run = await engine.start(json.loads(text))
        await wait_worker(engine, run, "site/worker_1", lambda w: w.phase is Phase.REVIEWING)
        await wait_worker(engine, run, "site/worker_2", lambda w: w.phase is Phase.RUNNING)
        ports = [(await ready(engine, run, f"site/worker_{n}")).port for n in (1, 2)]
        agent = min(proc.marked(f"{run.id}:{run.id}/site/worker_2@1"))
        sys.stdout.write(f"{ports[0]} {ports[1]} {agent}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.stdin.read())

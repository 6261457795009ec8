"""An engine in a process of its own, to be killed: `engine_process.py PROJECT start|go-on WAY`.

It reads a manifest as JSON from its input, or takes up whatever was left; says `run ID` and, at the
end, the report. WAY is `tethered` or `detached`.
"""

import json
import sys
from pathlib import Path

import anyio

from engine.api import Engine, Run
from engine.port.public import report_json


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _run(engine: Engine, way: str, text: str) -> Run:
    if way == "start":
        return await engine.start(json.loads(text))
    unfinished = await engine.resume_unfinished()
    return await engine.resume(unfinished[0] if unfinished else (await engine.history())[0].id)


async def main(project: Path, what: str, way: str, text: str) -> None:
    async with Engine.open(project, detach=way == "detached") as engine:
        run = await _run(engine, what, text)
        _say(f"run {run.id}")
        report = await run.wait()
        await engine.wait_idle()
        _say(json.dumps(report_json(report)))


if __name__ == "__main__":
    given = sys.stdin.read() if sys.argv[2] == "start" else ""
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], sys.argv[3], given)

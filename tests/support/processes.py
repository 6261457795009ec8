"""Attempts made short, and looking at real processes without being fooled by zombies."""

import os
from pathlib import Path
from typing import Any

from engine.host.seam import AttemptExit, AttemptSpec, Frame, Host
from engine.ids import AttemptId, RunId, WorkerId


def attempt(folder: Path, *argv: str, number: int = 1, **more: Any) -> AttemptSpec:
    """A spec for a program, with everything else as plain as can be."""
    env = {"PATH": os.environ["PATH"], **more.pop("env", {})}
    return AttemptSpec(
        attempt=AttemptId(RunId("r1"), WorkerId("step", 1), number),
        directory=str(folder / f"attempt_{number}"),
        argv=argv,
        env=tuple(env.items()),
        cwd=str(more.pop("cwd", folder)),
        mark=f"{folder}/{number}",
        **more,
    )


async def read_all(
    host: Host, which: AttemptId, offset: int = 0
) -> tuple[list[Frame], AttemptExit]:
    """Everything recorded after an offset, and the end."""
    frames: list[Frame] = []
    while True:
        chunk = await host.read(which, offset)
        frames += chunk.frames
        offset = chunk.next_offset
        if chunk.end is not None:
            return frames, chunk.end

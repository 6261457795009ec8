"""One attempt under a real keeper, from its request to its end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec, Stream
from engine.ids import AttemptId
from engine.sandbox.confine import confine, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.request import ConfineRequest
from tests.support.processes import read_all


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The output of an attempt, and its end."""

    out: bytes
    err: bytes
    end: AttemptExit


async def keep(
    machine: MachineSupport, request: ConfineRequest, folder: Path, *argv: str, **more: Any
) -> Kept:
    """Run a program in the profile of a request; the folder becomes the attempt's own."""
    env = await to_thread.run_sync(environment, machine, request)
    profile = await to_thread.run_sync(confine, machine, request)
    spec = AttemptSpec(
        attempt=AttemptId.parse("run/step/worker_1@1"),
        directory=str(folder),
        argv=argv,
        env=env,
        cwd=str(request.workspace),
        mark=request.name,
        limits=request.limits,
        profile=profile,
        **more,
    )
    try:
        async with LocalHost(folder.parent) as host:
            await host.start(spec)
            frames, end = await read_all(host, spec.attempt)
    finally:
        left = await to_thread.run_sync(release, profile)
    assert left == ()
    said = {
        stream: b"".join(frame.data for frame in frames if frame.stream is stream)
        for stream in Stream
    }
    assert end.not_started is None, (end, said)
    return Kept(out=said[Stream.OUT], err=said[Stream.ERR], end=end)

"""Attempts made short, and looking at real processes without being fooled by zombies."""

import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from engine.host.seam import AttemptExit, AttemptSpec, Frame, Host, Stream
from engine.ids import AttemptId, RunId, WorkerId
from engine.keeper import files, proc
from tests.support.zoo import KINDS


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


async def wait_until(is_so: Callable[[], object], within_s: float = 60) -> None:
    """Return as soon as a condition holds; fail when it does not hold in time."""
    with anyio.fail_after(within_s):
        while not await to_thread.run_sync(is_so):  # noqa: ASYNC110 - other processes set no event of ours
            await anyio.sleep(0.002)


async def wait_output(host: Host, which: AttemptId, wanted: bytes) -> bytes:
    """Read until the output contains something; returns all of it."""
    offset, seen = 0, b""
    with anyio.fail_after(30):
        while wanted not in seen:
            chunk = await host.read(which, offset)
            seen += output(chunk.frames)
            offset = chunk.next_offset
            if chunk.end is not None and wanted not in seen:
                raise AssertionError(f"ended with {chunk.end} after {seen!r}")
    return seen


def output(frames: Iterable[Frame]) -> bytes:
    """Return what the agent wrote, both streams in order of arrival."""
    return b"".join(frame.data for frame in frames if frame.stream in (Stream.OUT, Stream.ERR))


async def keeper_of(spec: AttemptSpec) -> int:
    """Return who keeps, or kept, an attempt."""
    return await to_thread.run_sync(_recorded_keeper, spec)


def _recorded_keeper(spec: AttemptSpec) -> int:
    fd = files.open_directory(spec.directory)
    try:
        content = files.load(fd, files.KEEPER)
    finally:
        os.close(fd)
    assert content is not None
    return int(content["keeper"]["pid"])


async def living(pids: Iterable[int]) -> set[int]:
    """Return which of these still run: a zombie that nobody has taken in yet is dead."""
    return await to_thread.run_sync(living_now, pids)


def living_now(pids: Iterable[int]) -> set[int]:
    """The same, where blocking does not matter."""
    looked_at = filter(None, map(proc.look, pids))
    return {process.pid for process in looked_at if not process.is_dead}


async def marked(spec: AttemptSpec) -> set[int]:
    """Everybody alive who carries the mark of an attempt."""
    return await to_thread.run_sync(lambda: living_now(proc.marked(spec.mark)))


def zoo(folder: Path, *more: str) -> tuple[str, ...]:
    """The words that start a zoo whose animals sign in a folder."""
    folder.mkdir(exist_ok=True)
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("zoo.py")), str(folder), *more)


def signed(folder: Path, what: str) -> dict[str, int]:
    """Return which animals have written that file, and their process ids."""
    return {path.stem: int(path.read_text()) for path in folder.glob(f"*.{what}")}


async def wait_zoo(folder: Path) -> dict[str, int]:
    """The animals of a zoo, once all are there and the stopped one has stopped."""
    await wait_until(lambda: len(signed(folder, "pid")) == len(KINDS))
    animals = signed(folder, "pid")

    def has_stopped() -> bool:
        process = proc.look(animals["stopped"])
        return process is not None and process.state == "T"

    await wait_until(has_stopped)
    return animals


def kill_all(pids: Iterable[int]) -> None:
    """Make sure that a test leaves nobody."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

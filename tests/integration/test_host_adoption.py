"""Test what is left when something is killed with -9: engines, zygotes and keepers, at bad moments.

The engine that dies is a process of its own, `tests/support/engines.py`; the one that picks up the
pieces is the test.
"""

import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptSpec
from engine.ids import AttemptId
from engine.keeper import files, proc
from engine.phases import StopCause
from tests.support.processes import (
    attempt,
    keeper_of,
    kill_all,
    living,
    living_now,
    marked,
    output,
    read_all,
    signed,
    wait_output,
    wait_until,
    wait_zoo,
    zoo,
)

pytestmark = pytest.mark.anyio

LINES = 400
COUNTING = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); done; sleep 0.05; exit 3"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


@pytest.fixture
def engines(tmp_path: Path) -> Iterator["Engines"]:
    with ExitStack() as stack:
        yield Engines(tmp_path, stack)


class Engines:
    """Engines in processes of their own, each with attempts of a shell script."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack

    async def start(self, kind: str, count: int, *argv: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.support.engines", str(self.folder), kind, str(count)]
        engine = await to_thread.run_sync(_popen, [*words, *argv])
        self._stack.callback(_bury, engine)
        assert engine.stdout is not None
        await to_thread.run_sync(engine.stdout.readline)  # all have been started
        return engine


def _popen(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def _bury(engine: subprocess.Popen[bytes]) -> None:
    engine.kill()
    engine.wait()
    if engine.stdout is not None:
        engine.stdout.close()


def specs(folder: Path, count: int) -> list[AttemptSpec]:
    return [attempt(folder, "-", number=number) for number in range(1, count + 1)]


async def parent_of(pid: int) -> int:
    process = await to_thread.run_sync(proc.look, pid)
    assert process is not None
    return process.parent


async def adopt(host: LocalHost, wanted: list[AttemptSpec]) -> tuple[AttemptId, ...]:
    return await host.attempts([spec.directory for spec in wanted])


async def test_a_detached_attempt_outlives_its_engine_and_loses_nothing(
    host: LocalHost, engines: Engines, tmp_path: Path
) -> None:
    engine = await engines.start("detached", 4, "sh", "-c", COUNTING)
    engine.kill()
    wanted = specs(tmp_path, 4)
    assert await adopt(host, wanted) == tuple(spec.attempt for spec in wanted)
    for spec in wanted:
        frames, end = await read_all(host, spec.attempt)
        assert output(frames).splitlines() == [b"line %d" % i for i in range(LINES)]
        assert (end.exit_code, end.cause) == (3, None)


async def test_reading_goes_on_exactly_where_it_stopped(
    host: LocalHost, engines: Engines, tmp_path: Path
) -> None:
    await engines.start("detached", 1, "sh", "-c", COUNTING)
    (spec,) = specs(tmp_path, 1)
    offset, data, end = 0, b"", None
    while end is None:  # a new engine for every piece
        async with LocalHost(tmp_path / "other") as other:
            (tmp_path / "other").mkdir(exist_ok=True)
            await adopt(other, [spec])
            chunk = await other.read(spec.attempt, offset)
            data, offset, end = data + output(chunk.frames), chunk.next_offset, chunk.end
            await other.aclose(detach=True)
    assert data.splitlines() == [b"line %d" % i for i in range(LINES)]


async def test_tethered_attempts_die_with_their_engine_although_a_forked_copy_lives(
    engines: Engines, tmp_path: Path
) -> None:
    engine = await engines.start("tethered-forked", 2, *zoo(tmp_path / "zoo"))
    wanted = specs(tmp_path, 2)
    alive = {pid for spec in wanted for pid in await marked(spec)}
    copy = int((tmp_path / "copy.pid").read_text())
    engine.kill()
    try:
        exits = [Path(spec.directory, files.EXIT) for spec in wanted]
        await wait_until(lambda: all(path.exists() for path in exits))
        assert await living(alive | set(signed(tmp_path / "zoo", "pid").values())) == set()
        assert await living([copy]) == {copy}
    finally:
        kill_all([copy])


async def test_tethered_attempts_die_with_an_engine_that_becomes_another_program(
    engines: Engines, tmp_path: Path
) -> None:
    engine = await engines.start("tethered-becoming", 1, "sleep", "600")
    (spec,) = specs(tmp_path, 1)
    await wait_until(Path(spec.directory, files.EXIT).exists)
    assert await marked(spec) == set()
    assert await living([engine.pid]) == {engine.pid}


async def test_a_detached_attempt_does_not_die_with_its_engine(
    host: LocalHost, engines: Engines, tmp_path: Path
) -> None:
    engine = await engines.start("detached", 1, "sh", "-c", "echo on; exec sleep 600")
    (spec,) = specs(tmp_path, 1)
    await to_thread.run_sync(_bury, engine)
    await adopt(host, [spec])
    await wait_output(host, spec.attempt, b"on")
    assert len(await marked(spec)) == 1
    await host.cancel(spec.attempt, StopCause.USER)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.USER


async def test_a_killed_zygote_takes_nobody_with_it_and_is_replaced(
    host: LocalHost, tmp_path: Path
) -> None:
    first = attempt(tmp_path, "sh", "-c", "echo on; read x; echo $x; exit 3", keeps_stdin=True)
    await host.start(first)
    await wait_output(host, first.attempt, b"on")
    zygote = await parent_of(await keeper_of(first))
    os.kill(zygote, signal.SIGKILL)
    second = attempt(tmp_path, "echo", "two", number=2)
    await host.start(second)
    frames, _ = await read_all(host, second.attempt)
    assert output(frames) == b"two\n"
    await host.send(first.attempt, 1, b"still\n")
    frames, end = await read_all(host, first.attempt)
    assert output(frames) == b"on\nstill\n"
    assert end.exit_code == 3


async def test_a_killed_keeper_is_reported_and_leaves_nobody(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"))
    await host.start(spec)
    animals = await wait_zoo(tmp_path / "zoo")
    os.kill(await keeper_of(spec), signal.SIGKILL)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.KEEPER_LOST
    await wait_until(lambda: living_now(animals.values()) == set())


async def test_without_a_zygote_the_orphans_of_a_killed_keeper_are_found_too(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"))
    await host.start(spec)
    animals = await wait_zoo(tmp_path / "zoo")
    keeper = await keeper_of(spec)
    zygote = await parent_of(keeper)
    daemons = [str(animals[kind]) for kind in ("daemon", "scrubbed")]
    known = Path(spec.directory, files.KEEPER)
    await wait_until(lambda: all(pid in known.read_text() for pid in daemons))
    os.kill(zygote, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.KEEPER_LOST
    assert await living(animals.values()) == set()


async def test_an_attempt_lost_once_is_not_started_again(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sh", "-c", "echo ran >> ran; exec sleep 600", is_tethered=False)
    await host.start(spec)
    ran = tmp_path / "ran"
    await wait_until(lambda: ran.exists() and ran.read_text())
    os.kill(await keeper_of(spec), signal.SIGKILL)
    async with LocalHost(tmp_path) as other:
        await other.start(spec)
        _, end = await read_all(other, spec.attempt)
    assert end.cause is StopCause.KEEPER_LOST
    assert ran.read_text() == "ran\n"


@pytest.mark.parametrize("seed", range(6))
async def test_killing_engines_and_zygotes_at_random_moments_loses_no_line(
    host: LocalHost, engines: Engines, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    engine = await engines.start("detached", 3, "sh", "-c", COUNTING)
    wanted = specs(tmp_path, 3)
    await anyio.sleep(dice.random() * 0.03)
    victims = [engine.pid]
    if dice.random() < 0.5:
        children = await to_thread.run_sync(proc.children, engine.pid)
        victims += children
    kill_all(victims)
    await adopt(host, wanted)
    for spec in wanted:
        frames, end = await read_all(host, spec.attempt)
        assert output(frames).splitlines() == [b"line %d" % i for i in range(LINES)]
        assert end.exit_code == 3
        assert await marked(spec) == set()


@pytest.mark.parametrize("seed", range(6))
async def test_killing_keepers_at_random_moments_leaves_nobody(
    host: LocalHost, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    spec = attempt(tmp_path, "sh", "-c", "setsid sleep 600 & (sleep 600 &) ; echo on; wait")
    async with anyio.create_task_group() as group:
        group.start_soon(host.start, spec)
        known = Path(spec.directory, files.KEEPER)
        await wait_until(lambda: known.exists() and known.stat().st_size)
        await anyio.sleep(dice.random() * 0.02)
        kill_all([await keeper_of(spec)])
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.KEEPER_LOST
    await wait_until(lambda: living_now(proc.marked(spec.mark)) == set())

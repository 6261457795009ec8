"""A keeper that keeps one attempt after another: when it may, and what it must not mix."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec
from engine.limits import Limits
from engine.phases import StopCause
from tests.support.processes import (
    attempt,
    keeper_of,
    living,
    living_now,
    output,
    read_all,
    wait_until,
)

pytestmark = pytest.mark.anyio

_HOG = (sys.executable, "-I", "-S", "-c", "b = b'x' * (96 << 20); sum(range(3_000_000))")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


async def run(host: LocalHost, spec: AttemptSpec) -> tuple[bytes, AttemptExit, int]:
    """Return what it wrote, how it ended, and who kept it."""
    await host.start(spec)
    frames, end = await read_all(host, spec.attempt)
    await host.forget(spec.attempt)
    return output(frames), end, await keeper_of(spec)


async def test_a_keeper_that_is_free_keeps_the_next_and_counts_anew(
    host: LocalHost, tmp_path: Path
) -> None:
    _, first, one = await run(host, attempt(tmp_path, *_HOG, first_input=b"unread"))
    said, second, other = await run(host, attempt(tmp_path, "pwd", number=2, cwd="/"))
    assert one == other
    assert said == b"/\n"
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert (first.usage.memory_peak_mb or 0) > 96
    assert (second.usage.memory_peak_mb or 0) < 48
    assert (second.usage.cpu_seconds or 0) < (first.usage.cpu_seconds or 0)


async def test_a_free_keeper_hands_nothing_of_the_last_attempt_on(
    host: LocalHost, tmp_path: Path
) -> None:
    limits = Limits(output_mb=1, time_seconds=30)
    told = attempt(tmp_path, "sh", "-c", "exit 7", env={"TOKEN": "secret"}, limits=limits)
    _, end, one = await run(host, told)
    words = "cat /proc/$$/environ; ls /proc/$$/fd; yes | head -c 3000000"
    said, after, other = await run(host, attempt(tmp_path, "sh", "-c", words, number=2))
    assert (one, end.exit_code) == (other, 7)
    assert b"secret" not in said
    assert said.rpartition(b"\0")[2].split()[:4] == [b"0", b"1", b"2", b"y"]
    assert (len(said) > 3_000_000, after.cause, after.limit) == (True, None, None)


@pytest.mark.parametrize("words", ["kill -9 $$", "sleep 600", "setsid sleep 600 & exit 0"])
async def test_a_keeper_that_had_to_force_an_end_goes(
    host: LocalHost, tmp_path: Path, words: str
) -> None:
    spec = attempt(tmp_path, "sh", "-c", f"trap '' TERM; {words}")
    await host.start(spec)
    if "kill" not in words:
        await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    await host.forget(spec.attempt)
    keeper = await keeper_of(spec)
    _, after, other = await run(host, attempt(tmp_path, "true", number=2))
    assert after.exit_code == 0
    assert (keeper == other) == (end.signal == signal.SIGKILL and end.cause is None)


async def test_a_free_keeper_that_was_killed_is_not_missed(host: LocalHost, tmp_path: Path) -> None:
    _, _, one = await run(host, attempt(tmp_path, "true"))
    os.kill(one, signal.SIGKILL)
    _, end, other = await run(host, attempt(tmp_path, "true", number=2))
    assert end.exit_code == 0
    assert one != other


async def test_a_free_keeper_goes_by_itself_and_with_its_host(tmp_path: Path) -> None:
    async with LocalHost(tmp_path) as host:
        _, _, one = await run(host, attempt(tmp_path, "true"))
        await wait_until(lambda: living_now([one]) == set())
        _, end, other = await run(host, attempt(tmp_path, "true", number=2))
        assert (end.exit_code, await living([other])) == (0, {other})
    await wait_until(lambda: living_now([other]) == set())


async def test_many_at_once_after_each_other_are_kept_apart(
    host: LocalHost, tmp_path: Path
) -> None:
    keepers: set[int] = set()
    slots = anyio.CapacityLimiter(4)

    async def one(number: int) -> None:
        async with slots:
            said, _, keeper = await run(host, attempt(tmp_path, "echo", f"{number}", number=number))
            assert said == f"{number}\n".encode()
            keepers.add(keeper)

    async with anyio.create_task_group() as group:
        for number in range(1, 81):
            group.start_soon(one, number)
    assert 3 <= len(keepers) < 40  # each goes after some, and most are used again

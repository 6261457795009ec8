"""A keeper that keeps one attempt after another: when it may, and what it must not mix."""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

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

_FREE_S = 0.9  # a little less than a free keeper waits
_HOG = (sys.executable, "-I", "-S", "-c", "b = b'x' * (96 << 20); sum(range(3_000_000))")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


class Ran(NamedTuple):
    """The output of an attempt, its end, and its keeper."""

    said: bytes
    end: AttemptExit
    keeper: int


async def run(host: LocalHost, spec: AttemptSpec) -> Ran:
    """Return what it wrote, how it ended, and who kept it."""
    await host.start(spec)
    frames, end = await read_all(host, spec.attempt)
    await host.forget(spec.attempt)
    return Ran(output(frames), end, await keeper_of(spec))


async def in_a_row(
    host: LocalHost, first: Callable[[int], AttemptSpec], second: Callable[[int], AttemptSpec]
) -> tuple[Ran, Ran]:
    """Return what came of two attempts that one keeper is to keep.

    A keeper waits a second for the next: where this machine was too busy for that, two more run.
    """
    for number in range(1, 60, 2):
        began = time.monotonic()
        ran = await run(host, first(number)), await run(host, second(number + 1))
        if ran[0].keeper == ran[1].keeper or time.monotonic() - began < _FREE_S:
            return ran
    return ran


async def test_a_keeper_that_is_free_keeps_the_next_and_counts_anew(
    host: LocalHost, tmp_path: Path
) -> None:
    (_, first, one), (said, second, other) = await in_a_row(
        host,
        lambda n: attempt(tmp_path, *_HOG, number=n, first_input=b"unread"),
        lambda n: attempt(tmp_path, "pwd", number=n, cwd="/"),
    )
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
    words = "cat /proc/$$/environ; ls /proc/$$/fd; yes | head -c 3000000"

    def told(number: int) -> AttemptSpec:
        env = {"TOKEN": "secret"}
        return attempt(tmp_path, "sh", "-c", "exit 7", number=number, env=env, limits=limits)

    (_, end, one), (said, after, other) = await in_a_row(
        host, told, lambda n: attempt(tmp_path, "sh", "-c", words, number=n)
    )
    assert (one, end.exit_code) == (other, 7)
    assert b"secret" not in said
    assert said.rpartition(b"\0")[2].split()[:4] == [b"0", b"1", b"2", b"y"]
    assert (len(said) > 3_000_000, after.cause, after.limit) == (True, None, None)


@pytest.mark.parametrize("words", ["sleep 600", "setsid sleep 600 & exit 0"])
async def test_a_keeper_that_had_to_force_an_end_goes(
    host: LocalHost, tmp_path: Path, words: str
) -> None:
    spec = attempt(tmp_path, "sh", "-c", f"trap '' TERM; {words}")
    await host.start(spec)
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    await read_all(host, spec.attempt)
    await host.forget(spec.attempt)
    _, after, other = await run(host, attempt(tmp_path, "true", number=2))
    assert after.exit_code == 0
    assert other != await keeper_of(spec)


async def test_a_keeper_whose_attempt_killed_itself_stays(host: LocalHost, tmp_path: Path) -> None:
    """The control: nobody had to force that end."""
    (_, end, one), (_, after, other) = await in_a_row(
        host,
        lambda n: attempt(tmp_path, "sh", "-c", "kill -9 $$", number=n),
        lambda n: attempt(tmp_path, "true", number=n),
    )
    assert (end.signal, end.cause, after.exit_code) == (signal.SIGKILL, None, 0)
    assert one == other


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
        for number in range(2, 30):  # it waits a second: a busy machine may look too late
            _, end, other = await run(host, attempt(tmp_path, "true", number=number))
            if is_free := await living([other]) == {other}:
                break
        assert (end.exit_code, is_free) == (0, True)
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

"""A keeper and what stands between it and its agent: bubblewrap, Landlock, hard limits."""

import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from engine.host.local import LocalHost
from engine.keeper import files
from engine.phases import StopCause
from engine.sandbox.profile import Profile
from tests.support.processes import (
    attempt,
    living_now,
    marked,
    output,
    read_all,
    signed,
    wait_output,
    wait_until,
    zoo,
)
from tests.support.zoo import DEAF, KINDS

pytestmark = pytest.mark.anyio

BWRAP = shutil.which("bwrap")
needs_bwrap = pytest.mark.needs("bubblewrap")
SANDBOX = Profile(
    wrapper=(
        *(BWRAP or "bwrap", "--json-status-fd", "{status_fd}", "--die-with-parent"),
        *("--unshare-user", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--"),
    ),
    has_pid_namespace=True,
)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


@needs_bwrap
async def test_the_agents_own_exit_is_told_through_the_sandbox(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "ls /proc/self/fd; exit 1", profile=SANDBOX)
    await host.start(spec)
    frames, end = await read_all(host, spec.attempt)
    assert output(frames).split() == [b"0", b"1", b"2", b"3"]  # 3 is of `ls` itself
    assert (end.exit_code, end.not_started) == (1, None)


@needs_bwrap
async def test_a_program_that_is_not_there_is_told_from_an_exit_with_1(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "no-such-program", profile=SANDBOX)
    await host.start(spec)
    _, end = await read_all(host, spec.attempt)
    assert end.not_started is not None
    assert "no-such-program" in end.not_started
    assert end.exit_code is None


@needs_bwrap
async def test_a_stop_reaches_those_inside_and_leaves_nobody(
    host: LocalHost, tmp_path: Path
) -> None:
    # With the leader the sandbox ends at once, so here it waits for the others.
    signed_by_all = f"test $(ls {tmp_path}/zoo | grep -c 'term$') = {len(KINDS) - 1}"
    patient = f'trap : TERM; "$@" & wait; until {signed_by_all}; do sleep 0.02; done'
    spec = attempt(tmp_path, "sh", "-c", patient, "sh", *zoo(tmp_path / "zoo"), profile=SANDBOX)
    await host.start(spec)
    await wait_until(lambda: len(signed(tmp_path / "zoo", "pid")) == len(KINDS))
    everybody = await marked(spec)
    await host.cancel(spec.attempt, StopCause.USER, grace_s=60)
    _, end = await read_all(host, spec.attempt)
    assert len(everybody) > len(KINDS)
    assert await marked(spec) == set()
    assert (end.cause, end.unkillable) == (StopCause.USER, ())
    assert set(signed(tmp_path / "zoo", "term")) == set(KINDS) - {DEAF}


@needs_bwrap
async def test_a_stop_while_the_sandbox_is_put_up_does_not_wait_for_an_agent_that_never_heard_it(
    host: LocalHost, tmp_path: Path
) -> None:
    for moment in range(16):  # from before bubblewrap runs until after the agent does
        spec = attempt(tmp_path, "sh", "-c", "sleep 600", number=moment + 1, profile=SANDBOX)
        await host.start(spec)
        await anyio.sleep(moment * 0.00075)
        with anyio.fail_after(50):
            await host.cancel(spec.attempt, StopCause.USER, grace_s=60)
            _, end = await read_all(host, spec.attempt)
        assert end.cause is StopCause.USER
        await host.forget(spec.attempt)


@needs_bwrap
async def test_a_kill_ends_the_sandbox(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sh", "-c", "setsid sleep 600 & echo on; wait", profile=SANDBOX)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.USER
    assert await marked(spec) == set()


@needs_bwrap
async def test_a_killed_keeper_takes_its_sandbox_with_it(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sh", "-c", "setsid sleep 600 & echo on; wait", profile=SANDBOX)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    everybody = await marked(spec)
    fd = files.open_directory(spec.directory)
    content = await anyio.to_thread.run_sync(files.load, fd, files.KEEPER)
    os.close(fd)
    assert content is not None
    os.kill(content["keeper"]["pid"], signal.SIGKILL)
    await wait_until(lambda: living_now(everybody) == set())


@needs_bwrap
async def test_an_interrupt_reaches_the_agent_inside(host: LocalHost, tmp_path: Path) -> None:
    agent = "trap 'echo interrupted; exit 6' INT; echo on; while :; do sleep 0.02; done"
    spec = attempt(tmp_path, "sh", "-c", agent, profile=SANDBOX)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await host.interrupt(spec.attempt)
    _, end = await read_all(host, spec.attempt)
    assert end.exit_code == 6


async def test_hard_limits_are_set_on_the_agent_alone(host: LocalHost, tmp_path: Path) -> None:
    profile = Profile(rlimits=(("NOFILE", 77),))
    spec = attempt(tmp_path, "sh", "-c", "ulimit -n", profile=profile)
    await host.start(spec)
    frames, _ = await read_all(host, spec.attempt)
    assert output(frames) == b"77\n"


async def test_the_agent_is_the_first_to_go_when_memory_is_short(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "cat", "/proc/self/oom_score_adj")
    await host.start(spec)
    frames, _ = await read_all(host, spec.attempt)
    assert output(frames) == b"500\n"


@pytest.mark.needs("landlock")
async def test_files_are_fenced_where_rules_say_so(host: LocalHost, tmp_path: Path) -> None:
    rules = (("/", "ro"), (str(tmp_path / "mine"), "rw"), ("/dev", "rw"))
    (tmp_path / "mine").mkdir()
    agent = "echo a > mine/a && echo b > b; ls mine"
    spec = attempt(tmp_path, "sh", "-c", agent, profile=Profile(landlock_rules=rules))
    free = attempt(tmp_path, "sh", "-c", "echo c > c", number=2)
    for each in (spec, free):
        await host.start(each)
    frames, _ = await read_all(host, spec.attempt)
    await read_all(host, free.attempt)
    assert b"Permission denied" in output(frames)
    assert (tmp_path / "mine" / "a").exists()
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "c").exists()

"""Whole trees of stubborn processes are ended; each guard beside the weaker one that fails."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.limits import Dimension, Limits
from engine.phases import StopCause
from tests.support.processes import (
    attempt,
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
from tests.support.zoo import DEAF, KINDS, OUT_OF_GROUP

pytestmark = pytest.mark.anyio


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


async def test_a_stop_leaves_nobody_and_lets_all_finish_who_listen(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"))
    await host.start(spec)
    animals = await wait_zoo(tmp_path / "zoo")
    await host.cancel(spec.attempt, StopCause.USER, grace_s=60)
    await wait_until(lambda: set(signed(tmp_path / "zoo", "term")) == set(KINDS) - {DEAF})
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert await living(animals.values()) == set()
    assert (end.cause, end.unkillable) == (StopCause.USER, ())


async def test_a_kill_leaves_nobody(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"))
    await host.start(spec)
    animals = await wait_zoo(tmp_path / "zoo")
    await host.cancel(spec.attempt, StopCause.RACE_LOST, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert await living(animals.values()) == set()
    assert signed(tmp_path / "zoo", "term") == {}
    assert end.signal == signal.SIGKILL


async def test_whom_the_leader_leaves_behind_is_told_then_ended(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo", "leave"))
    await host.start(spec)
    _, end = await read_all(host, spec.attempt)
    animals = signed(tmp_path / "zoo", "pid")
    assert len(animals) == len(KINDS)
    assert await living(animals.values()) == set()
    assert set(signed(tmp_path / "zoo", "term")) == set(KINDS) - {DEAF, "leader"}
    assert (end.cause, end.exit_code) == (None, 0)
    assert len(end.left_over) == len(KINDS) - 1


async def test_killing_the_group_alone_would_leave_some(tmp_path: Path) -> None:
    start = partial(subprocess.Popen, zoo(tmp_path / "zoo"), start_new_session=True)
    leader = await to_thread.run_sync(start)
    try:
        animals = await wait_zoo(tmp_path / "zoo")
        os.killpg(leader.pid, signal.SIGKILL)
        grouped = [pid for kind, pid in animals.items() if kind not in OUT_OF_GROUP]
        await wait_until(lambda: living_now(grouped) == set())
        alive = await living(animals.values())
        assert {kind for kind, pid in animals.items() if pid in alive} == OUT_OF_GROUP
    finally:
        kill_all(signed(tmp_path / "zoo", "pid").values())
        leader.kill()
        leader.wait()


async def test_a_fork_bomb_is_ended_whole_by_the_sampled_limit(
    host: LocalHost, tmp_path: Path
) -> None:
    # It ends by itself after a while, so that a failure of this test harms nobody else.
    bomb = "import os, time\nend = time.monotonic() + 10\nwhile time.monotonic() < end: os.fork()"
    limits = Limits(pids=100)
    spec = attempt(tmp_path, sys.executable, "-I", "-S", "-c", bomb, limits=limits)
    await host.start(spec)
    with anyio.fail_after(30):
        _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.PIDS
    assert end.limit is not None
    assert (end.limit.dimension, end.limit.allowed) == (Dimension.PIDS, 100)
    assert end.limit.seen > 100
    assert await marked(spec) == set()


async def test_a_chain_that_forks_and_exits_is_caught(host: LocalHost, tmp_path: Path) -> None:
    chain = (
        "import os\nprint('on', flush=True)\n"
        "while True:\n    if os.fork():\n        os._exit(0)\n    os.setsid()"
    )
    script = f'"{sys.executable}" -I -S -c "$CHAIN" & wait; exec sleep 600'
    spec = attempt(tmp_path, "sh", "-c", script, env={"CHAIN": chain})
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert end.unkillable == ()
    assert await marked(spec) == set()


async def test_a_helper_of_a_cleanup_handler_is_not_told_to_end(
    host: LocalHost, tmp_path: Path
) -> None:
    helper = "trap 'echo cut-short' TERM; sleep 0.3; echo cleaned"
    agent = "trap 'sh -c \"$HELPER\"; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    spec = attempt(tmp_path, "sh", "-c", agent, env={"HELPER": helper})
    await host.start(spec)
    await wait_output(host, spec.attempt, b"ready")
    await host.cancel(spec.attempt, StopCause.USER, grace_s=60)
    frames, end = await read_all(host, spec.attempt)
    assert b"cleaned" in output(frames)
    assert b"cut-short" not in output(frames)
    assert end.exit_code == 3


async def test_all_of_the_leaders_output_is_there_when_a_grandchild_holds_the_pipe(
    host: LocalHost, tmp_path: Path
) -> None:
    agent = "setsid sleep 600 & i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"
    spec = attempt(tmp_path, "sh", "-c", agent)
    began = time.monotonic()
    await host.start(spec)
    frames, end = await read_all(host, spec.attempt)
    assert time.monotonic() - began < 30  # the grandchild sleeps for 600
    assert output(frames).count(b"\n") == 2000
    assert len(end.left_over) == 1
    assert end.exit_code == 0


async def test_output_ends_although_a_foreign_process_holds_the_pipe(
    host: LocalHost, tmp_path: Path
) -> None:
    # Somebody outside the tree has opened the agent's output: no kill of the tree closes it.
    spec = attempt(tmp_path, "sh", "-c", "echo $$; read x", keeps_stdin=True)
    await host.start(spec)
    pid = int(await wait_output(host, spec.attempt, b"\n"))
    foreign = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
    try:
        await host.send(spec.attempt, 1, None)
        with anyio.fail_after(30):
            _, end = await read_all(host, spec.attempt)
    finally:
        os.close(foreign)
    assert end.exit_code == 1


async def test_a_stop_after_the_leader_has_ended_does_not_make_its_end_a_stop(
    host: LocalHost, tmp_path: Path
) -> None:
    deaf = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    agent = 'echo $$; sh -c "$DEAF" & read go < go; exit 0'
    os.mkfifo(tmp_path / "go")
    spec = attempt(tmp_path, "sh", "-c", agent, env={"DEAF": deaf})
    await host.start(spec)
    leader = int((await wait_output(host, spec.attempt, b"on")).split()[0])
    await to_thread.run_sync((tmp_path / "go").write_text, "go\n")
    await wait_until(lambda: living_now([leader]) == set())
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert (end.cause, end.exit_code) == (None, 0)
    assert "sh" in end.left_over


async def test_a_second_stop_may_shorten_the_grace_but_not_lengthen_it(
    host: LocalHost, tmp_path: Path
) -> None:
    deaf = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    spec = attempt(tmp_path, "sh", "-c", deaf)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    began = time.monotonic()
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0.3)
    await host.cancel(spec.attempt, StopCause.SHUTDOWN, grace_s=60)
    _, end = await read_all(host, spec.attempt)
    assert time.monotonic() - began < 30
    assert end.cause is StopCause.USER

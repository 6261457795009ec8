"""The local host as its callers see it: start, read, tell, end; real keepers, real processes."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.errors import HostLost
from engine.host.local import LocalHost
from engine.host.seam import Stream
from engine.keeper import proc
from engine.phases import StopCause
from engine.sandbox.profile import Profile
from tests.support.processes import (
    attempt,
    keeper_of,
    living_now,
    marked,
    output,
    read_all,
    wait_output,
    wait_until,
)

pytestmark = pytest.mark.anyio


async def test_an_attempt_is_read_to_its_end(tmp_path: Path) -> None:
    async with LocalHost(tmp_path) as host:
        spec = attempt(tmp_path, "echo", "hello")
        await host.start(spec)
        frames, end = await read_all(host, spec.attempt)
    assert [frame.data for frame in frames if frame.stream is Stream.OUT] == [b"hello\n"]
    assert (end.exit_code, end.signal, end.cause, end.not_started) == (0, None, None, None)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


async def test_streams_are_told_apart_and_input_is_recorded(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "cat; echo oops >&2", first_input=b"given\n")
    await host.start(spec)
    frames, _ = await read_all(host, spec.attempt)
    by_stream = {frame.stream: frame.data for frame in frames if frame.stream is not Stream.NOTE}
    assert by_stream == {Stream.IN: b"given\n", Stream.OUT: b"given\n", Stream.ERR: b"oops\n"}
    assert [frame.at_s for frame in frames] == sorted(frame.at_s for frame in frames)


async def test_a_child_that_fails_before_it_may_go_says_why(
    host: LocalHost, tmp_path: Path
) -> None:
    """The keeper's word to go meets nobody then, which must not end the keeper."""
    more: dict[str, Any] = {"cwd": "/no/such/folder", "profile": _FORKED, "is_held": True}
    spec = attempt(tmp_path, "true", **more)
    await host.start(spec)
    keeper = await keeper_of(spec)
    await wait_until(lambda: not living_now(proc.children(keeper)))
    with anyio.fail_after(30):
        await host.go(spec.attempt)
        _, end = await read_all(host, spec.attempt)
    assert "/no/such/folder" in (end.not_started or "")


async def test_a_held_attempt_begins_on_go_and_input_sent_before_comes_after_the_first(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "cat", is_held=True, keeps_stdin=True, first_input=b"first ")
    await host.start(spec)
    assert not await marked(spec)
    async with anyio.create_task_group() as group:
        for n, data in ((1, b"second"), (2, None)):
            group.start_soon(host.send, spec.attempt, n, data)
            await anyio.wait_all_tasks_blocked()
        await host.go(spec.attempt)
        await host.go(spec.attempt)
        frames, _ = await read_all(host, spec.attempt)
    assert output(frames) == b"first second"


async def test_a_held_attempt_that_is_cancelled_never_begins(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "touch", "began", is_held=True)
    await host.start(spec)
    await host.cancel(spec.attempt, StopCause.USER)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.USER
    assert end.not_started is not None
    assert not (tmp_path / "began").exists()


_FORKED = Profile(rlimits=(("NOFILE", 64),))


@pytest.mark.parametrize(
    ("program", "more", "why"),
    [
        ("no-such-program", {}, "No such file"),
        ("no-such-program", {"profile": _FORKED}, "No such file"),
        ("/etc/passwd", {}, "Permission denied"),
        ("true", {"cwd": "/no/such/folder"}, "/no/such/folder"),
        ("true", {"cwd": "/no/such/folder", "profile": _FORKED}, "/no/such/folder"),
    ],
)
async def test_what_cannot_be_executed_is_an_exit_that_says_why(
    tmp_path: Path, program: str, more: dict[str, Any], why: str
) -> None:
    spec = attempt(tmp_path, program, **more)
    async with LocalHost(tmp_path) as host:
        await host.start(spec)
        with anyio.fail_after(30):
            _, end = await read_all(host, spec.attempt)
    assert end.not_started is not None
    assert why in end.not_started
    assert (end.exit_code, end.signal) == (None, None)


async def test_an_attempt_whose_folder_cannot_be_made_is_an_exit_too(
    host: LocalHost, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    spec = attempt(tmp_path / "file", "true", cwd=tmp_path)
    await host.start(spec)
    chunk = await host.read(spec.attempt, 0)
    assert chunk.end is not None
    assert chunk.end.not_started


async def test_the_agent_gets_its_own_environment_and_no_descriptor_of_ours(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "env -0 | tr '\\0' '\\n'; ls /proc/self/fd; ulimit -n")
    await host.start(spec)
    frames, _ = await read_all(host, spec.attempt)
    lines = output(frames).decode().splitlines()
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names <= {"PATH", "PLAIT_MARK", "PWD", "_", "SHLVL"}
    assert [line for line in lines if line.isdigit()][:4] == ["0", "1", "2", "3"]  # 3 is of `ls`


async def test_starting_the_same_attempt_twice_runs_it_once(tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sh", "-c", "echo ran >> ran; sleep 0.1")
    async with LocalHost(tmp_path) as one, LocalHost(tmp_path) as other:
        async with anyio.create_task_group() as group:
            for host in (one, other, one, other):
                group.start_soon(host.start, spec)
        for host in (one, other):
            _, end = await read_all(host, spec.attempt)
            assert end.exit_code == 0
        await other.start(spec)
    assert (tmp_path / "ran").read_text() == "ran\n"


async def test_a_repeated_message_is_written_once(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "cat", keeps_stdin=True)
    await host.start(spec)
    for n in (1, 1, 2, 1):
        await host.send(spec.attempt, n, b"%d\n" % n)
    await host.send(spec.attempt, 3, None)
    frames, _ = await read_all(host, spec.attempt)
    assert output(frames) == b"1\n2\n"


async def test_whoever_sends_more_than_the_agent_reads_waits_and_nothing_is_lost(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "read go < go; wc -c", keeps_stdin=True)
    os.mkfifo(tmp_path / "go")
    await host.start(spec)
    data = b"x" * 600_000
    with anyio.move_on_after(0.2) as patience:
        await host.send(spec.attempt, 1, data)
    assert patience.cancelled_caught
    await to_thread.run_sync((tmp_path / "go").write_text, "go\n")
    await host.send(spec.attempt, 1, data)
    await host.send(spec.attempt, 2, None)
    frames, _ = await read_all(host, spec.attempt)
    assert output(frames).strip() == b"600000"


async def test_input_that_is_never_read_does_not_keep_an_attempt_from_ending(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "sleep 0.1; exit 5", keeps_stdin=True)
    await host.start(spec)
    with anyio.fail_after(30):
        await host.send(spec.attempt, 1, b"x" * 600_000)
        _, end = await read_all(host, spec.attempt)
    assert end.exit_code == 5


async def test_an_interrupt_reaches_the_leader(host: LocalHost, tmp_path: Path) -> None:
    agent = "trap 'echo interrupted; exit 6' INT; echo on; while :; do sleep 0.02; done"
    spec = attempt(tmp_path, "sh", "-c", agent)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await host.interrupt(spec.attempt)
    frames, end = await read_all(host, spec.attempt)
    assert b"interrupted" in output(frames)
    assert end.exit_code == 6


@pytest.mark.parametrize("profile", [Profile(), Profile(rlimits=(("CORE", 0),))])
async def test_a_terminal_agent_has_a_controlling_terminal_of_the_size_told(
    host: LocalHost, tmp_path: Path, profile: Profile
) -> None:
    agent = "trap 'stty size; exit 7' WINCH; stty size < /dev/tty; while :; do sleep 0.02; done"
    spec = attempt(
        tmp_path, "sh", "-c", agent, terminal=(20, 70), keeps_stdin=True, profile=profile
    )
    await host.start(spec)
    await wait_output(host, spec.attempt, b"20 70")
    await host.resize(spec.attempt, 30, 90)
    frames, end = await read_all(host, spec.attempt)
    assert b"30 90" in output(frames)
    assert end.exit_code == 7


async def test_the_end_of_input_of_a_terminal_is_a_key(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "cat", terminal=(20, 70), keeps_stdin=True)
    await host.start(spec)
    await host.send(spec.attempt, 1, b"typed\n")
    await host.send(spec.attempt, 2, None)
    frames, end = await read_all(host, spec.attempt)
    assert output(frames) == b"typed\r\ntyped\r\n"
    assert end.exit_code == 0


@pytest.mark.needs("Linux")
async def test_a_very_long_path_of_the_folder_does_not_matter(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 60] * 4)
    spec = attempt(deep, "sh", "-c", "echo on; read x", cwd=tmp_path, keeps_stdin=True)
    async with LocalHost(tmp_path) as one, LocalHost(tmp_path) as other:
        await one.start(spec)
        await other.attempts([spec.directory])
        await wait_output(other, spec.attempt, b"on")
        await other.send(spec.attempt, 1, None)
        assert (await read_all(other, spec.attempt))[1].exit_code == 1


async def test_a_folder_removed_under_its_keeper_does_not_hide_the_end(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sh", "-c", "echo on; read x; exit 8", keeps_stdin=True)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await to_thread.run_sync(shutil.rmtree, spec.directory)
    await host.send(spec.attempt, 1, None)
    _, end = await read_all(host, spec.attempt)
    assert end.exit_code == 8


async def test_several_readers_all_see_everything(host: LocalHost, tmp_path: Path) -> None:
    agent = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.02; done"
    spec = attempt(tmp_path, "sh", "-c", agent)
    await host.start(spec)
    seen: list[bytes] = []

    async def read() -> None:
        frames, _ = await read_all(host, spec.attempt)
        seen.append(output(frames))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(read)
    assert seen == [b"1\n2\n3\n4\n5\n6\n"] * 4


async def test_an_attempt_that_ended_is_read_until_it_is_forgotten(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "echo", "once")
    await host.start(spec)
    first = await read_all(host, spec.attempt)
    assert await read_all(host, spec.attempt) == first
    await host.forget(spec.attempt)
    with pytest.raises(HostLost):
        await host.read(spec.attempt, 0)


async def test_closing_a_host_ends_its_attempts_and_its_zygote(tmp_path: Path) -> None:
    before = await to_thread.run_sync(zygotes)
    host = LocalHost(tmp_path)
    spec = attempt(tmp_path, "sleep", "600")
    await host.start(spec)
    begun = await to_thread.run_sync(zygotes) - before
    assert len(begun) == (0 if os.environ.get("PLAIT_PORTABLE") else 1)  # only Linux has zygotes
    await host.aclose(detach=False)
    assert not await marked(spec)
    assert not await to_thread.run_sync(zygotes) & begun


def zygotes() -> set[int]:
    """Return the zygotes of this process; another test may have left some."""
    children = filter(None, map(proc.look, proc.children(os.getpid())))
    return {child.pid for child in children if child.name == "plait-zygote"}


async def test_a_wide_host_tells_what_it_has(host: LocalHost) -> None:
    has = await host.capacity()
    assert has.cores > 0
    assert 0 < has.memory_available_mb < has.memory_mb
    assert has.disk_free_mb > 0


async def test_a_held_attempt_that_is_frozen_begins_frozen(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sh", "-c", "i=0; while :; do echo $i; i=1; done", is_held=True)
    await host.start(spec)
    await host.freeze(spec.attempt)
    await host.go(spec.attempt)
    seen = await host.read(spec.attempt, 0, wait=False)
    with anyio.fail_after(30):  # one that is not frozen writes on forever
        while True:
            await anyio.sleep(0.1)
            more = await host.read(spec.attempt, seen.next_offset, wait=False)
            if not more.frames:
                break
            seen = more
    await host.thaw(spec.attempt)
    await wait_output(host, spec.attempt, b"1")

"""Limits that a keeper holds by itself, each beside an attempt that stays below it.

The kernel's own limits are taken from real cgroups where this user may make some.
"""

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec, Stream
from engine.keeper import proc
from engine.keeper.limits import DiskWatch
from engine.keeper.sampler import Excess
from engine.limits import Dimension, Limits
from engine.phases import StopCause
from engine.sandbox.profile import Cgroup, Profile
from tests.support.needs import DELEGATED
from tests.support.processes import (
    attempt,
    kill_all,
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
from tests.support.zoo import DEAF, KINDS

pytestmark = pytest.mark.anyio

_V1 = Path("/sys/fs/cgroup")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


def python(folder: Path, code: str, **more: Any) -> AttemptSpec:
    return attempt(folder, sys.executable, "-I", "-S", "-c", code, **more)


async def run(host: LocalHost, spec: AttemptSpec) -> AttemptExit:
    await host.start(spec)
    with anyio.fail_after(120):
        _, end = await read_all(host, spec.attempt)
    return end


async def test_memory_over_its_limit_ends_the_whole_tree(host: LocalHost, tmp_path: Path) -> None:
    # A child takes it, in steps, beside a leader that does nothing. It takes no more than that,
    # however late somebody looks.
    hog = (
        "import os, signal\nif os.fork(): os.wait()\n"
        "kept = [b'x' * (8 << 20) for _ in range(40)]\nsignal.pause()"
    )
    spec = python(tmp_path, hog, limits=Limits(memory_mb=200))
    end = await run(host, spec)
    assert end.cause is StopCause.MEMORY
    assert end.limit is not None
    assert (end.limit.dimension, end.limit.allowed, end.limit.unit) == (
        Dimension.MEMORY,
        200,
        "MB",
    )
    assert 200 < end.limit.seen < 400
    assert await marked(spec) == set()


async def test_memory_shared_by_forks_is_not_counted_for_each(
    host: LocalHost, tmp_path: Path
) -> None:
    sharers = (
        "import os, signal, time\nkept = bytearray(b'x') * (100 << 20)\n"
        "pids = [os.fork() or signal.pause() for _ in range(4)]\n"
        "time.sleep(0.8)\n[os.kill(pid, 9) for pid in pids]"
    )
    spec = python(tmp_path, sharers, limits=Limits(memory_mb=300))
    end = await run(host, spec)
    assert (end.cause, end.exit_code) == (None, 0)
    assert end.usage.memory_peak_mb is not None
    assert 100 < end.usage.memory_peak_mb <= 300


async def test_time_is_over_by_the_clock(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sleep", "600", limits=Limits(time_seconds=0.2))
    end = await run(host, spec)
    assert end.cause is StopCause.TIMEOUT
    assert end.limit is not None
    assert end.limit.dimension is Dimension.TIME
    assert 0.2 <= end.limit.seen < 60


async def test_a_frozen_attempt_and_a_held_clock_do_not_use_up_time(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "sleep", "600", limits=Limits(time_seconds=0.4), is_held=True)
    known = Path(spec.directory, "keeper.json")
    await host.start(spec)
    await host.freeze(spec.attempt)  # before it begins: else its time runs until this is heard
    await host.go(spec.attempt)
    await wait_until(lambda: '"agent"' in known.read_text())
    await anyio.sleep(0.3)
    await host.hold_clock(spec.attempt, held=True)
    await host.thaw(spec.attempt)
    await anyio.sleep(0.3)
    await host.hold_clock(spec.attempt, held=False)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.TIMEOUT
    assert end.paused_s >= 0.6
    assert end.wall_s >= 1.0
    assert end.limit is not None
    assert 0.4 <= end.limit.seen <= end.wall_s - 0.5
    assert end.usage.active_s is not None
    assert 0.4 <= end.usage.active_s <= end.wall_s - 0.5


@pytest.mark.parametrize("is_at_work", [True, False])
async def test_work_while_a_human_is_awaited_uses_up_time(
    host: LocalHost, tmp_path: Path, *, is_at_work: bool
) -> None:
    code = "while 1: pass" if is_at_work else "import time; time.sleep(600)"
    # What it works while it starts counts too.
    spec = python(tmp_path, code, limits=Limits(time_seconds=3.0), is_held=True)
    await host.start(spec)
    await host.hold_clock(spec.attempt, held=True)
    await host.go(spec.attempt)
    if not is_at_work:
        await anyio.sleep(4.5)
        assert await marked(spec) != set()
        await host.cancel(spec.attempt, StopCause.USER)
    with anyio.fail_after(30):
        _, end = await read_all(host, spec.attempt)
    assert end.cause is (StopCause.TIMEOUT if is_at_work else StopCause.USER)


async def test_a_frozen_tree_does_nothing_and_goes_on_later(
    host: LocalHost, tmp_path: Path
) -> None:
    ticks = "sh -c 'while :; do echo tick; sleep 0.01; done' & wait"
    spec = attempt(tmp_path, "sh", "-c", ticks)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"tick")
    await host.freeze(spec.attempt)
    still = await host.read(spec.attempt, 0, wait=False)
    with anyio.fail_after(30):  # what it wrote before comes; one that is not frozen ticks forever
        while True:
            await anyio.sleep(0.2)
            later = await host.read(spec.attempt, still.next_offset, wait=False)
            if not output(later.frames):
                break
            still = later
    await host.thaw(spec.attempt)
    with anyio.fail_after(30):
        while not output((await host.read(spec.attempt, still.next_offset)).frames):
            pass


async def test_what_the_agent_stopped_itself_stays_stopped_after_a_thaw(
    host: LocalHost, tmp_path: Path
) -> None:
    agent = "sleep 600 & echo $!; kill -STOP $!; echo stopped; wait"
    spec = attempt(tmp_path, "sh", "-c", agent)
    await host.start(spec)
    pid = int((await wait_output(host, spec.attempt, b"stopped")).split()[0])
    status = Path(f"/proc/{pid}/stat")
    await wait_until(lambda: ") T " in status.read_text())
    await host.freeze(spec.attempt)
    await host.thaw(spec.attempt)
    assert ") T " in await to_thread.run_sync(status.read_text)


async def test_a_frozen_attempt_can_be_stopped_gracefully(host: LocalHost, tmp_path: Path) -> None:
    agent = "trap 'echo cleaned; exit 4' TERM; echo on; while :; do sleep 0.02; done"
    spec = attempt(tmp_path, "sh", "-c", agent)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    await host.freeze(spec.attempt)
    await host.cancel(spec.attempt, StopCause.USER)
    frames, end = await read_all(host, spec.attempt)
    assert b"cleaned" in output(frames)
    assert end.exit_code == 4


async def test_processor_time_is_held_to_its_share(host: LocalHost, tmp_path: Path) -> None:
    spin = "import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass"
    spec = python(tmp_path, spin, limits=Limits(cpu_percent=25))
    end = await run(host, spec)
    assert end.exit_code == 0
    assert end.usage.cpu_seconds is not None
    assert end.usage.cpu_seconds < 0.25 * end.wall_s + 0.2
    assert end.usage.cpu_seconds > 0.1


async def test_a_growing_folder_is_noticed_and_what_was_there_before_is_not_counted(
    host: LocalHost, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "before").write_bytes(b"x" * (40 << 20))
    fill = "for i in range(100):\n open(str(i), 'wb').write(b'x' * (1 << 20))"
    profile = Profile(disk_paths=(str(work),))
    limits = Limits(disk_mb=30)
    kept = python(tmp_path, fill.replace("100", "10"), cwd=work, limits=limits, profile=profile)
    assert (await run(host, kept)).cause is None
    fill += "\nimport signal; signal.pause()"  # more it does not write, however late one counts
    spec = python(tmp_path, fill, number=2, cwd=work, limits=limits, profile=profile)
    end = await run(host, spec)
    assert end.cause is StopCause.DISK
    assert end.limit is not None
    assert (end.limit.dimension, end.limit.allowed) == (Dimension.DISK, 30)
    assert 30 < end.limit.seen <= 101


def test_what_is_written_while_the_first_count_goes_on_is_growth(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "before").write_bytes(b"x" * (5 << 20))
    os.utime(work / "before")
    tick(tmp_path)
    watch = DiskWatch([str(work)], 30)
    tick(tmp_path)
    (work / "before").chmod(0o600)  # no change of what is in it
    for number in range(29):
        (work / f"{number}").write_bytes(b"x" * (1 << 20))
    counted(watch)
    assert watch.growth == 29 << 20
    for number in range(5):
        (work / f"more-{number}").write_bytes(b"x" * (1 << 20))
    with pytest.raises(Excess, match="disk"):
        counted(watch)


def tick(folder: Path) -> None:
    """Wait until the clock of the disk, which may go in steps, is past this moment."""
    now, file = time.time(), folder / "tick"
    while True:
        file.write_text("x")
        if file.stat().st_mtime > now:
            return


def counted(watch: DiskWatch) -> None:
    """Let it look until it has nothing more to count."""
    for _ in range(200):
        watch.step()


async def test_output_over_its_cap_is_cut_visibly_and_ends_the_attempt(
    host: LocalHost, tmp_path: Path
) -> None:
    spec = attempt(tmp_path, "yes", limits=Limits(output_mb=1))
    await host.start(spec)
    frames, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.OUTPUT
    assert end.is_truncated
    assert len(output(frames)) == 1 << 20
    assert [frame.data for frame in frames if frame.stream is Stream.NOTE][1:] == [b"truncated"]


async def test_limits_can_be_changed_while_it_runs(host: LocalHost, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sleep", "600", limits=Limits(time_seconds=600))
    await host.start(spec)
    await host.set_limits(spec.attempt, Limits(time_seconds=0.1))
    with anyio.fail_after(30):
        _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.TIMEOUT


async def test_an_agent_cannot_raise_its_own_limits(host: LocalHost, tmp_path: Path) -> None:
    talk = (
        "import json, os, socket, time\n"
        "link = socket.socket(socket.AF_UNIX)\n"
        "link.connect(os.environ['FOLDER'] + '/control.sock')\n"
        "print(link.recv(1000), flush=True)\n"
    )
    folder = str(tmp_path / "attempt_1")
    spec = python(tmp_path, talk, env={"FOLDER": folder})
    await host.start(spec)
    frames, _ = await read_all(host, spec.attempt)
    assert output(frames) == b"b''\n"


async def test_limits_hold_while_no_engine_lives(tmp_path: Path) -> None:
    spec = attempt(tmp_path, "sleep", "600", limits=Limits(time_seconds=0.3), is_tethered=False)
    async with LocalHost(tmp_path) as first:
        await first.start(spec)
        await first.aclose(detach=True)
    await wait_until(Path(spec.directory, "exit.json").exists)
    async with LocalHost(tmp_path) as second:
        await second.attempts([spec.directory])
        _, end = await read_all(second, spec.attempt)
    assert end.cause is StopCause.TIMEOUT


@pytest.fixture
def groups() -> Iterator["Groups"]:
    made = Groups()
    yield made
    made.remove()


class Groups:
    """Real cgroups of version 1, with a limit each."""

    def __init__(self) -> None:
        self._made: list[Path] = []

    def make(self, controller: str, **limits: int) -> Cgroup:
        path = _V1 / controller / f"plait-test-{os.getpid()}"
        try:
            path.mkdir()
            self._made.append(path)
            for name, value in limits.items():
                (path / f"{controller}.{name}").write_text(str(value))
        except OSError:
            pytest.skip(f"this user may make no cgroup that limits {controller} {DELEGATED}")
        return Cgroup(version=1, controllers=(controller,), path=str(path))

    def make_unified(self) -> Cgroup:
        mounts = Path("/proc/mounts").read_text().splitlines()
        roots = [Path(line.split()[1]) for line in mounts if line.split()[2] == "cgroup2"]
        try:
            path = roots[0] / f"plait-test-{os.getpid()}"
            path.mkdir()
        except (IndexError, OSError):
            pytest.skip(f"this user may not make a cgroup of version 2 {DELEGATED}")
        self._made.append(path)
        return Cgroup(version=2, controllers=(), path=str(path))

    def remove(self) -> None:
        deadline = time.monotonic() + 30  # what is left would be in the way of the next test
        for path in self._made:
            while path.exists() and time.monotonic() < deadline:
                try:
                    path.rmdir()
                except OSError:
                    continue  # busy for some moments after the last one has ended


async def test_an_oom_kill_of_a_child_ends_the_tree_although_the_leader_is_well(
    host: LocalHost, tmp_path: Path, groups: Groups
) -> None:
    hog = "python3 -I -S -c \"x = b'x' * (200 << 20)\"; echo survived; exit 0"
    profile = Profile(cgroups=(groups.make("memory", limit_in_bytes=60 << 20),))
    limits = Limits(memory_mb=60)
    end = await run(host, attempt(tmp_path, "sh", "-c", hog, limits=limits, profile=profile))
    assert end.cause is StopCause.MEMORY
    assert end.exit_code in (0, None)  # it was well, and perhaps ended in time
    assert end.limit is not None
    assert end.limit.allowed == 60


async def test_a_bomb_under_the_kernels_limit_is_ended_soon(
    host: LocalHost, tmp_path: Path, groups: Groups
) -> None:
    bomb = (
        "import os, time\nend = time.monotonic() + 20\n"
        "while time.monotonic() < end:\n try: os.fork()\n except OSError: pass"
    )
    profile = Profile(cgroups=(groups.make("pids", max=100),))
    spec = python(tmp_path, bomb, limits=Limits(pids=100), profile=profile)
    end = await run(host, spec)
    assert end.cause is StopCause.PIDS
    assert end.limit is not None
    assert end.limit.seen == 100
    assert await marked(spec) == set()


async def test_a_frozen_group_stands_still_and_can_be_killed(
    host: LocalHost, tmp_path: Path, groups: Groups
) -> None:
    profile = Profile(cgroups=(groups.make("freezer"),))
    spec = attempt(tmp_path, "sh", "-c", "sleep 600 & echo on; wait", profile=profile)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"on")
    everybody = await marked(spec)
    await host.freeze(spec.attempt)
    frozen = _V1 / "freezer" / f"plait-test-{os.getpid()}" / "freezer.state"
    await wait_until(lambda: frozen.read_text() == "FROZEN\n")
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert end.unkillable == ()
    assert await to_thread.run_sync(living_now, everybody) == set()


async def test_a_unified_group_is_frozen_and_killed_in_one_step(
    host: LocalHost, tmp_path: Path, groups: Groups
) -> None:
    group = groups.make_unified()
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"), profile=Profile(cgroups=(group,)))
    await host.start(spec)
    animals = await wait_zoo(tmp_path / "zoo")
    await host.freeze(spec.attempt)
    events = Path(group.path, "cgroup.events")
    await wait_until(lambda: "frozen 1" in events.read_text())
    await host.cancel(spec.attempt, StopCause.USER, grace_s=60)
    await wait_until(lambda: set(signed(tmp_path / "zoo", "term")) == set(KINDS) - {DEAF})
    await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
    _, end = await read_all(host, spec.attempt)
    assert await to_thread.run_sync(living_now, animals.values()) == set()
    assert end.unkillable == ()


async def test_when_all_who_watched_are_killed_the_group_still_leads_to_everybody(
    tmp_path: Path, groups: Groups
) -> None:
    group = groups.make_unified()
    spec = attempt(tmp_path, *zoo(tmp_path / "zoo"), profile=Profile(cgroups=(group,)))
    async with LocalHost(tmp_path) as host:
        await host.start(spec)
        animals = await wait_zoo(tmp_path / "zoo")
        leader = await to_thread.run_sync(proc.look, animals["leader"])
        assert leader is not None
        keeper = await to_thread.run_sync(proc.look, leader.parent)
        assert keeper is not None
        kill_all([keeper.parent, keeper.pid])
        _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.KEEPER_LOST
    assert await to_thread.run_sync(living_now, animals.values()) == set()

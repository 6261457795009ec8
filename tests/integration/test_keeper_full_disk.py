"""A full disk: the agent waits, nothing is lost, and the end is written down all the same."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.phases import StopCause
from tests.support.processes import attempt, output, read_all, wait_until

pytestmark = pytest.mark.anyio

LINES = 32000  # more than fits beside the ballast, less than fits without it


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "plait-test", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a small disk (run it as root, in a container)")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def test_output_waits_for_space_and_nothing_is_lost(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    await to_thread.run_sync(ballast.write_bytes, b"x" * (1 << 20))
    count = f"i=0; while [ $i -lt {LINES} ]"
    agent = f"{count}; do echo line number $i of very many lines; i=$((i+1)); done"
    async with LocalHost(tmp_path) as host:
        spec = attempt(small_disk, "sh", "-c", agent)
        await host.start(spec)
        with anyio.fail_after(120):
            offset, is_clogged = 0, False
            while not is_clogged:
                chunk = await host.read(spec.attempt, offset)
                offset, is_clogged = chunk.next_offset, chunk.is_clogged
            await to_thread.run_sync(ballast.unlink)
            frames, end = await read_all(host, spec.attempt)
    assert end.exit_code == 0
    wanted = [b"line number %d of very many lines" % i for i in range(LINES)]
    assert output(frames).splitlines() == wanted


async def test_the_end_is_recorded_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    async with LocalHost(tmp_path) as host:
        spec = attempt(small_disk, "yes", cwd=tmp_path)
        await host.start(spec)
        await wait_until(partial(_is_full, small_disk))
        await host.cancel(spec.attempt, StopCause.USER, grace_s=0)
        await read_all(host, spec.attempt)
    assert (Path(spec.directory) / "exit.json").stat().st_size > 0
    async with LocalHost(tmp_path) as other:
        await other.attempts([spec.directory])
        _, end = await read_all(other, spec.attempt)
    assert end.cause is StopCause.USER


def _is_full(disk: Path) -> bool:
    return os.statvfs(disk).f_bfree == 0

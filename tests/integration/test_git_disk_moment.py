"""Moments exist only where the kernel notes every write to a file, mapped files too."""

import os
import tempfile
import time
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.git import disk_moment
from engine.git.disk_moment import DiskMoment, sees_mapped_writes

TICK = 20_000_000


@pytest.fixture
def in_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def _moves_by_a_mapped_write(file: Path) -> bool:
    """Read a mapped file, wait for the clock, write; tell if its time moved."""
    file.write_bytes(b"a" * 4096)
    with file.open("r+b") as opened, mmap(opened.fileno(), 0) as mapped:
        assert mapped[0] == ord("a")
        assert DiskMoment.next(str(file.parent)) or DiskMoment.now(str(file.parent)) is None
        while _now(file.parent) <= file.stat().st_ctime_ns:
            pass
        before = file.stat().st_ctime_ns
        mapped[0] = ord("b")
        return file.stat().st_ctime_ns > before


def _now(folder: Path) -> int:
    with tempfile.TemporaryFile(dir=folder) as made:
        return os.fstat(made.fileno()).st_ctime_ns


@pytest.mark.needs("disk")
def test_a_disk_notes_a_mapped_write_and_has_moments(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    assert _moves_by_a_mapped_write(tmp_path / "file")
    assert sees_mapped_writes(tmp_path, tmp_path.stat().st_dev)
    assert DiskMoment.now(str(tmp_path / "tree")) is not None


@pytest.mark.needs("second file system")
def test_a_file_system_is_believed_as_far_as_it_notes_mapped_writes(in_memory: Path) -> None:
    (in_memory / "tree").mkdir()
    notes = _moves_by_a_mapped_write(in_memory / "file")
    assert sees_mapped_writes(in_memory, in_memory.stat().st_dev) is notes
    assert (DiskMoment.now(str(in_memory / "tree")) is not None) is notes


@pytest.mark.needs("disk")
@pytest.mark.parametrize("held_at", range(1, 12))
def test_a_clock_gets_its_whole_time_also_if_this_process_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_at: int
) -> None:
    (tmp_path / "tree").mkdir()
    assert sees_mapped_writes(tmp_path, tmp_path.stat().st_dev)
    now, fstat, asked = time.monotonic_ns, os.fstat, [0]

    def held_up() -> int:
        asked[0] += 1
        until = now() + 100_000_000 * (asked[0] == held_at)
        while now() < until:
            pass
        return now()

    def coarse(fd: int) -> SimpleNamespace:
        seen = fstat(fd)
        return SimpleNamespace(st_dev=seen.st_dev, st_ctime_ns=seen.st_ctime_ns // TICK * TICK)

    monkeypatch.setattr("engine.git.disk_moment.time.monotonic_ns", held_up)
    monkeypatch.setattr("engine.git.disk_moment.os.fstat", coarse)
    assert DiskMoment.next(str(tmp_path / "tree")) is not None


@pytest.mark.needs("disk")
@pytest.mark.parametrize("is_before", [True, False])
def test_a_busy_machine_does_not_look_like_a_clock_that_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_before: bool
) -> None:
    """It may let a process wait between the two clocks, before or after it made its file."""
    tree = tmp_path / "tree"
    tree.mkdir()
    first, waits = DiskMoment.now(str(tree)), [0.1, 0.1]

    def kept_waiting(**given: Any) -> Any:
        wait_s = waits.pop() if waits else 0.0
        time.sleep(wait_s if is_before else 0.0)
        made = tempfile.TemporaryFile(**given)  # noqa: SIM115 - who asked closes it
        time.sleep(0.0 if is_before else wait_s)
        return made

    monkeypatch.setattr(disk_moment, "TemporaryFile", kept_waiting)
    second = DiskMoment.now(str(tree))
    assert first is not None
    assert second is not None
    assert not waits
    assert second.is_after(first)

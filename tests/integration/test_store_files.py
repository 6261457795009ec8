import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import LockHeld, StoreError
from engine.store.files import EngineLock, write_atomically


def test_bytes_are_put_in_place_whole_and_private(tmp_path: Path):
    path = tmp_path / "exit.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "inside").touch()
    with pytest.raises(StoreError, match="taken cannot be written"):
        write_atomically(taken, b"data")
    with pytest.raises(StoreError, match="cannot be written"):
        write_atomically(tmp_path / "missing" / "file", b"data")
    assert list(tmp_path.iterdir()) == [taken]


HOLDER = """
import os, signal, subprocess, sys
from pathlib import Path
from engine.store import files

lock = files.EngineLock.take(Path(sys.argv[1]), socket="/run/a.sock")
left = 0
if sys.argv[2].startswith("fork"):
    if sys.argv[2] == "fork without care":
        files._held.clear()
    left = os.fork()
    if left == 0:
        sys.stdout.close(); os.close(1)
        signal.pause()
elif sys.argv[2] == "exec":
    left = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL).pid
print(left, flush=True)
signal.pause()
"""


@contextmanager
def holder(path: Path, leaving: str = "nothing") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock; what it leaves behind when it is killed lives to the end."""
    running = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path, leaving], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    left = int(running.stdout.readline())
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
        if left:
            os.kill(left, signal.SIGKILL)


def test_a_taken_lock_is_refused_and_its_holder_named(tmp_path: Path):
    path = tmp_path / "engine.lock"
    with holder(path) as running:
        with pytest.raises(LockHeld) as caught:
            EngineLock.take(path, socket="/run/b.sock")
        assert (caught.value.pid, caught.value.socket) == (running.pid, "/run/a.sock")
        assert f"pid {running.pid}, which listens at /run/a.sock" in str(caught.value)


def test_a_lock_is_free_when_it_is_released_or_its_holder_was_killed(tmp_path: Path):
    path = tmp_path / "engine.lock"
    with holder(path) as running:
        running.kill()
        running.wait()
        with EngineLock.take(path, socket="/run/b.sock"):
            with pytest.raises(LockHeld) as caught:
                EngineLock.take(path, socket="/run/c.sock")
            assert (caught.value.pid, caught.value.socket) == (os.getpid(), "/run/b.sock")
        EngineLock.take(path, socket="/run/c.sock").release()


@pytest.mark.parametrize("leaving", ["fork", "exec"])
def test_no_child_keeps_the_lock_of_a_killed_engine(tmp_path: Path, leaving: str):
    path = tmp_path / "engine.lock"
    with holder(path, leaving) as running:
        running.kill()
        running.wait()
        taken_soon(path).release()


def taken_soon(path: Path) -> EngineLock:
    """Return the lock, once a child that was just born has had the time to release it."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return EngineLock.take(path, socket="/run/b.sock")
        except LockHeld:
            if time.monotonic() > deadline:
                raise
            threading.Event().wait(0.01)


def test_a_child_would_keep_it_without_the_care_taken_at_fork(tmp_path: Path):
    path = tmp_path / "engine.lock"
    with holder(path, "fork without care") as running:
        running.kill()
        running.wait()
        with pytest.raises(LockHeld):
            EngineLock.take(path, socket="/run/b.sock")


def test_a_lock_file_exchanged_while_it_is_taken_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "engine.lock"
    real, calls = fcntl.flock, []

    def exchanged_once(number: int, how: int) -> None:
        if not calls:
            path.unlink()
            path.touch()
        calls.append(how)
        real(number, how)

    monkeypatch.setattr(fcntl, "flock", exchanged_once)
    with EngineLock.take(path, socket="a"), pytest.raises(LockHeld):
        EngineLock.take(path, socket="b")


def test_a_lock_file_without_words_is_refused_all_the_same(tmp_path: Path):
    path = tmp_path / "engine.lock"
    with holder(path):
        path.write_text("{")
        with pytest.raises(LockHeld, match="another engine") as caught:
            EngineLock.take(path, socket="/run/b.sock")
        assert caught.value.pid is None


def test_a_lock_that_cannot_be_made_says_so(tmp_path: Path):
    with pytest.raises(StoreError, match="cannot be locked"):
        EngineLock.take(tmp_path / "missing" / "engine.lock", socket="")

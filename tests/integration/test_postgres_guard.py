"""No server of the tests, and no folder of one, outlives them: whoever kills them, and however."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("postgresql")

HOLDS = """
import signal
from tests.support.postgres import started
with started() as server:
    print(server.folder, server.pid, flush=True)
    signal.pause()
"""


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        os.sched_yield()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_the_tests_that_are_killed(number: int):
    words = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as held:
        assert held.stdout is not None
        folder, pid = held.stdout.readline().split()
        os.killpg(held.pid, number)
    wait_until(lambda: not Path(folder).exists())
    wait_until(lambda: not _lives(int(pid)))


def _lives(pid: int) -> bool:
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False

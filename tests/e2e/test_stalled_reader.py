"""A reader that stops reading `plait run --headless`: the run, its agents and others go on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.support.shells import Shell

MANIFEST = """
runtime: {isolation_strategy: directory, max_concurrent_workers: 6}
pipelines:
  - name: p
    steps:
      - name: many
        strategy: {matrix: {items: [%n]}}
        run: "seq 1 50; echo done"
      - name: last
        dependencies: [many]
        run: "until test -e %s; do sleep 0.05; done"
"""
PAGE = 4096


@pytest.fixture
def stalled(
    shell: Shell, tmp_path: Path
) -> Iterator[tuple["subprocess.Popen[str]", IO[str], Path]]:
    """A hosting command whose pipe holds one page, which is never read by itself."""
    gate = tmp_path / "gate" / "go"
    gate.parent.mkdir()
    text = MANIFEST.replace("%s", str(gate)).replace("%n", ", ".join(f"n{n}" for n in range(20)))
    text = text.replace("runtime: {", f'runtime: {{sandbox: {{paths: ["{gate.parent}:rw"]}}, ')
    (shell.folder / "plait.yaml").write_text(text)
    reading, writing = os.pipe()
    fcntl_size(writing)
    words = [sys.executable, "-m", "tui.cli", "run", "plait.yaml", "--headless", "--json"]
    host = subprocess.Popen(
        words,
        cwd=shell.folder,
        env={**os.environ, **shell.env, "PLAIT_STATE_HOME": str(shell.state)},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    with os.fdopen(reading) as pipe:
        yield host, pipe, gate
    if host.poll() is None:
        host.kill()
    host.communicate()


def fcntl_size(number: int) -> None:
    import fcntl  # noqa: PLC0415 - Linux alone has the call

    fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, PAGE)


def until_seen(shell: Shell, wanted: str) -> str:
    deadline = time.monotonic() + 60
    while wanted not in (done := shell.plait("status")).out:
        assert time.monotonic() < deadline, done
    return done.out


def test_the_run_goes_on_and_the_reader_gets_everything_later(
    shell: Shell, stalled: tuple["subprocess.Popen[str]", IO[str], Path]
):
    host, pipe, gate = stalled
    until_seen(shell, "many: success")  # another console sees the run go on
    until_seen(shell, "last/worker_1              RUNNING")
    gate.touch()
    until_seen(shell, "last: success")
    assert host.poll() is None  # it waits for its reader, and nobody else does
    events = [json.loads(line) for line in pipe]
    assert host.wait(60) == 0
    seqs = [event["seq"] for event in events if "seq" in event]
    assert seqs == list(range(1, len(seqs) + 1))
    assert events[-1]["type"] == "RunFinished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_whose_reader_stalls_can_be_ended(
    shell: Shell, stalled: tuple["subprocess.Popen[str]", IO[str], Path], number: int
):
    host, _, _ = stalled
    until_seen(shell, "many: success")
    host.send_signal(number)
    assert host.wait(60) == 130
    assert "last/worker_1              CANCELLED" in shell.plait("status").out

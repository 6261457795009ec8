"""Several terminals share one engine: the others' agents go on, whatever ends its host.

Each agent writes down that it began. One that was interrupted and paid twice would begin twice.
"""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.support.shells import Shell, end, engine_named_in, rest_of, wait_event

pytestmark = pytest.mark.long
PLAN = """
runtime: {isolation_strategy: directory, sandbox: {paths: ["%s:rw"]}}
agents:
  slow:
    adapter: command
    argv: [sh, -c, "pwd >> %s/begun; until test -e %s/go; do sleep 0.05; done"]
pipelines:
  - name: p
    steps:
      - {name: a, agent: slow, prompt: "x", merge: none}
"""
RUN = ("run", "plait.yaml", "--headless", "--json")
ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


@pytest.fixture
def gate(shell: Shell):
    folder = shell.state.parent / "gate"
    folder.mkdir()
    (shell.folder / "plait.yaml").write_text(PLAN.replace("%s", str(folder)))
    yield folder
    (folder / "go").touch()
    for engine in living(shell):
        end(engine)


def living(shell: Shell) -> list[psutil.Process]:
    """The engine of the folder, if there is one."""
    return [found for file in shell.state.rglob("engine.json") if (found := engine_named_in(file))]


def begun(gate: Path, run: str) -> int:
    """Return how often an agent of a run began."""
    return sum(run in line for line in (gate / "begun").read_text().splitlines())


def wait_begun(gate: Path, run: str, times: int = 1) -> None:
    deadline = time.monotonic() + 30
    while not (gate / "begun").exists() or begun(gate, run) < times:
        assert time.monotonic() < deadline, f"the agent of {run} never began"


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_of_a_host_ends_its_own_run_only(shell: Shell, gate: Path, ending: int):
    with shell.running(*RUN) as first:
        own = wait_event(first, "WorkerMoved", after="RUNNING")["run"]
        with shell.running(*RUN) as second:
            guest = wait_event(second, "WorkerMoved", after="RUNNING")["run"]
            wait_begun(gate, own)
            wait_begun(gate, guest)
            os.kill(first.pid, ending)
            assert first.wait() in {130, -ending}
            (gate / "go").touch()
            assert rest_of(second)[-1]["type"] == "RunFinished"
            assert second.wait() == 0
    assert begun(gate, guest) == 1
    status = shell.plait("status", guest, "--json").json()
    assert status["steps"][0]["workers"][0]["attempt"] == 1
    if ending != signal.SIGKILL:
        stopped = shell.plait("status", own, "--json").json()
        assert stopped["steps"][0]["workers"][0]["cause"] == "USER"
        # The control: the agent that was ended begins twice, and the count tells.
        assert shell.plait("retry", f"{own}/a/worker_1").code == 0
        wait_begun(gate, own, times=2)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGHUP])
def test_a_run_that_nobody_follows_goes_on_in_an_engine_of_its_own(
    shell: Shell, gate: Path, ending: int
):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        guest = shell.plait("run", "plait.yaml", "--detach").out.strip()
        wait_begun(gate, guest)
        os.kill(first.pid, ending)
        assert first.wait() == 130
        assert first.stderr is not None
        assert "other runs that started here continue" in first.stderr.read()
    assert [engine.pid != first.pid for engine in living(shell)] == [True]
    status = shell.plait("status", guest, "--json").json()
    assert status["steps"][0]["workers"][0]["phase"] == "RUNNING"
    (gate / "go").touch()
    assert shell.plait("resume", guest, "--headless").code == 0
    assert begun(gate, guest) == 1


def test_a_terminal_that_is_closed_ends_its_own_run_and_leaves_the_others(shell: Shell, gate: Path):
    master, theirs = pty.openpty()
    first = subprocess.Popen(
        shell._argv((*RUN[:3], "--yes")),  # it would be asked where nothing fences the agents
        cwd=shell.folder,
        env=shell._environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    heard = b""
    while b"RUNNING" not in heard:
        heard += os.read(master, 4096)
    with shell.running(*RUN) as second:
        guest = wait_event(second, "WorkerMoved", after="RUNNING")["run"]
        wait_begun(gate, guest)
        os.close(master)
        first.send_signal(signal.SIGHUP)
        assert first.wait() == 130
        (gate / "go").touch()
        assert rest_of(second)[-1]["type"] == "RunFinished"
        assert second.wait() == 0
    assert begun(gate, guest) == 1


def test_the_latest_run_is_the_one_that_was_begun_last(shell: Shell, gate: Path):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        with shell.running(*RUN) as second, shell.running(*RUN) as third:
            runs = [wait_event(one, "RunStarted")["run"] for one in (second, third)]
            for run in runs:
                wait_begun(gate, run)
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            latest = shell.plait("runs").out.split()[0]
            for run in runs:  # whichever of them an engine takes up last
                shell.plait("resume", run)
            assert shell.plait("status").out.split()[1] == latest
            (gate / "go").touch()
            assert (second.wait(), third.wait()) == (0, 0)

"""Engines, journals and `plait top` tell what attempts and plait itself have cost."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api import look
from engine.messages.questions import ReadRun
from engine.messages.timing import AttemptTimes, ReadCosts, ReadTimes
from tests.support.console_pty import process_in_pty
from tests.support.engine_runs import Place, manifest
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.anyio
BUSY = "echo begun; i=0; while :; do i=$((i + 1)); done"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_an_engine_and_its_journal_tell_the_same_times(place: Place):
    busy = "echo begun; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done"
    work = {"name": "work", "run": busy, "check": "true"}
    async with place.engine() as engine:
        run = await engine.start(manifest(work))
        await run.wait()
        told = await engine.ask(ReadTimes(run.id))
        view = await engine.view(run.id)
    async with look(place.project, environment=place.environment) as (journals, has_lived):
        assert not has_lived
        assert await journals.ask(ReadTimes()) == told
        assert (await journals.ask(ReadRun())).run == view.run
    (one,) = told
    assert_whole(one)
    assert (one.worker, one.attempt) == ("work/worker_1", 1)
    assert view.started_at <= one.began < one.began + one.worked <= view.ended_at


def assert_whole(one: AttemptTimes) -> None:
    stages = (one.queued, one.prepared, one.started, one.first_output, one.worked, one.collected)
    assert all(stage is not None and stage >= 0 for stage in stages), one
    assert one.started + one.first_output <= one.worked
    assert one.checked is None  # it has changed nothing
    assert one.cpu is not None
    assert one.cpu > 0


async def test_an_engine_tells_what_it_uses_itself(place: Place):
    waits = {"name": "wait", "run": place.waits_at("gate")}
    async with place.engine() as engine:
        idle = await engine.ask(ReadCosts())
        assert idle.attempts == 0
        run = await engine.start(place.manifest(waits))
        while not (costs := await engine.ask(ReadCosts())).attempts:
            pass
        place.open_gate("gate")
        await run.wait()
    assert (idle.pid, costs.attempts) == (costs.pid, 1)
    assert costs.engine > idle.engine > 0
    assert costs.up > 0
    assert costs.memory_mb > 1


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Shell]:
    """A folder where an agent computes forever."""
    folder = tmp_path / "project"
    folder.mkdir()
    shell = Shell(folder, tmp_path / "state")
    shell.git("init", "-q")
    shell.git("commit", "-q", "--allow-empty", "-m", "x")
    steps = [{"name": "busy", "run": BUSY}]
    plan = {"pipelines": [{"name": "busy", "steps": steps}]}
    (folder / "plait.yaml").write_text(json.dumps(plan))
    assert shell.plait("run", "plait.yaml", "--detach").code == 0
    try:
        yield shell
    finally:
        end_engine(shell)


def test_top_shows_who_computes(busy: Shell):
    while not (told := top_json(busy))["workers"] or not (told["workers"][0]["cpu_s"] or 0) > 0.5:
        pass
    (worker,) = told["workers"]
    assert (worker["worker"], worker["phase"]) == ("busy/worker_1", "RUNNING")
    named = json.loads((busy.folder / ".git/plait/engine.json").read_text())
    assert told["engine"]["pid"] == named["pid"]
    assert told["keepers"]["attempts"] == 1
    lines = busy.plait("top", "--every", "0.1").out.splitlines()
    assert lines[0].startswith(f"engine {named['pid']} ")
    assert lines[-1].split()[:2] == ["busy/worker_1", "RUNNING"]


def top_json(shell: Shell) -> dict[str, list[dict[str, float]]]:
    done = shell.plait("top", "--json", "--every", "0.1")
    assert done.code == 0, done.err
    told: dict[str, list[dict[str, float]]] = done.json()
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_top_on_a_terminal_goes_on_until_it_is_left_and_leaves_it_as_it_was(
    busy: Shell, number: signal.Signals
):
    script = "import sys; from tui.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ("top", "--every", "0.1", "-C", str(busy.folder))
    with process_in_pty(script, *words, PLAIT_STATE_HOME=str(busy.state)) as console:
        console.wait_written(b"busy/worker_1")
        console.wait_written_after(len(console.written), b"\x1b[H")
        assert console.end(number) == 0
    assert console.written.rstrip().endswith(b"\x1b[?25h\x1b[?1049l")


def test_top_without_an_engine_says_so(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = Shell(tmp_path, tmp_path / "state").plait("top")
    assert (done.code, done.out) == (0, "")
    assert "no engine runs" in done.err
    done = Shell(tmp_path, tmp_path / "state").plait("top", "--json")
    assert (done.code, json.loads(done.out)) == (0, {})


def test_top_on_a_terminal_says_that_the_engine_has_gone(busy: Shell):
    script = "import sys; from tui.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ("top", "--every", "0.1", "-C", str(busy.folder))
    with process_in_pty(script, *words, PLAIT_STATE_HOME=str(busy.state)) as console:
        console.wait_written(b"busy/worker_1")
        end_engine(busy)
        assert console.end() != 0
    shown = console.written.rpartition(b"\x1b[?1049l")[2]
    assert b"Traceback" not in shown
    assert b"engine" in shown, shown

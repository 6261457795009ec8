"""A user's own edits in the way of a landing: kept byte for byte, named, and no agent's fault."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.shells import Shell

pytestmark = pytest.mark.long
PLAN = """
agents:
  c: {adapter: command, argv: [sh, -c, 'echo four >> a.txt; echo "$0" > told', "{prompt}"]}
pipelines:
  - name: p
    steps:
      - {name: a, agent: c, prompt: "add a line"}
"""


@pytest.fixture
def refused(repository: Shell) -> Shell:
    """A repository whose worker could not land, because `a.txt` is being edited."""
    (repository.folder / "plait.yaml").write_text(PLAN)
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    (repository.folder / "a.txt").write_text("one\ntwo\nmine\n")
    done = repository.plait("land", "a", "--json")
    assert (done.code, done.json()["landed"]) == (1, False)
    assert "a.txt" in done.json()["reason"]
    return repository


def test_a_refused_landing_leaves_the_checkout_as_it_was(refused: Shell):
    assert (refused.folder / "a.txt").read_text() == "one\ntwo\nmine\n"
    assert refused.git("status", "--porcelain") == " M a.txt\n?? plait.yaml\n"
    assert refused.git("log", "--oneline", "main").count("\n") == 1
    assert "a.txt" in refused.plait("status").out


def test_the_next_attempt_is_not_told_of_a_landing_that_was_refused(refused: Shell):
    assert refused.plait("retry", "a", "-m", "say it twice").code == 0
    told = refused.plait("diff", "a").out
    assert "say it twice" in told
    assert "in the way" not in told


CHECKED = """
runtime: {sandbox: {paths: ["%s:rw"]}}
pipelines:
  - name: p
    steps:
      - name: a
        merge: each
        run: "echo four >> a.txt"
        check: "touch %s/checking; until test -e %s/go; do sleep 0.05; done"
"""


def wait_there(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, file


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_landing_whose_engine_ends_is_told_as_the_next_one_ends_it(
    repository: Shell, tmp_path: Path, ending: int
):
    gate = tmp_path / "gate"
    gate.mkdir()
    (repository.folder / "plait.yaml").write_text(CHECKED.replace("%s", str(gate)))
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    with repository.running("serve") as engine:
        named = repository.folder / ".git/plait/engine.json"
        wait_there(named)
        assert json.loads(named.read_text())["pid"] == engine.pid
        with repository.running("land", "a", "--json") as landing:
            wait_there(gate / "checking")
            os.kill(engine.pid, ending)
            engine.wait()
            (gate / "go").touch()
            assert landing.stdout is not None
            told = json.loads(landing.stdout.read())
            assert (landing.wait(), told["landed"], told["reason"]) == (0, True, "")
    assert repository.git("log", "-1", "--format=%H", "main").strip() == told["commit"]

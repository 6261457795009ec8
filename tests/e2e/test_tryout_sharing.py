"""Commands that share one engine, lose it, or name what is not there."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.shells import Shell, rest_of, wait_event

pytestmark = pytest.mark.long
PLAN = """
runtime: {isolation_strategy: directory}
agents:
  slow: {adapter: command, argv: [sh, -c, "until test -e %s/go; do sleep 0.05; done; echo x > x"]}
pipelines:
  - name: p
    steps:
      - {name: a, agent: slow, prompt: "x", merge: none}
"""
RUN = ("run", "plait.yaml", "--headless", "--json")


@pytest.fixture
def gate(shell: Shell):
    """A folder that agents see; they wait until `go` appears in it."""
    folder = shell.state.parent / "gate"
    folder.mkdir()
    plan = PLAN.replace("%s", str(folder))
    plan = plan.replace("directory}", f"directory, sandbox: {{paths: [{folder}]}}}}")
    (shell.folder / "plait.yaml").write_text(plan)
    return folder


def test_a_run_in_the_engine_of_another_is_followed_to_its_end(shell: Shell, gate: Path):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        with shell.running(*RUN) as second:
            wait_event(second, "WorkerMoved", after="RUNNING")
            (gate / "go").touch()
            assert rest_of(second)[-1]["type"] == "RunFinished"
            assert second.wait() == 0, second.stderr and second.stderr.read()
        assert rest_of(first)[-1]["type"] == "RunFinished"
        assert first.wait() == 0, first.stderr and first.stderr.read()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_run_goes_on_when_the_engine_it_was_given_to_ends(shell: Shell, gate: Path, ending: int):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        with shell.running(*RUN) as second:
            begun = wait_event(second, "WorkerMoved", after="RUNNING")
            os.kill(first.pid, ending)
            (gate / "go").touch()
            events = rest_of(second)
            assert second.wait() == 0
    assert events[-1]["type"] == "RunFinished"
    assert {event["run"] for event in events} == {begun["run"]}
    seqs = [begun["seq"], *(event["seq"] for event in events if "seq" in event)]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


@pytest.mark.parametrize(
    "words", ["logs a", "logs --raw a", "diff a", "resume", "land a", "check a"]
)
def test_a_command_that_needs_a_run_says_that_there_is_none(shell: Shell, words: str):
    done = shell.plait(*words.split())
    assert (done.code, done.out) == (2, "")
    assert "there is no run" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", ["status nope", "resume nope", "logs nope/a/worker_1"])
def test_a_run_that_is_not_there_is_named(shell: Shell, words: str):
    done = shell.plait(*words.split())
    assert (done.code, done.out) == (2, "")
    assert "there is no run 'nope'" in done.err


def test_a_worker_that_is_not_there_is_told_and_so_are_those_that_are(shell: Shell, gate: Path):
    (gate / "go").touch()
    assert shell.plait(*RUN).code == 0
    done = shell.plait("logs", "b/worker_1")
    assert done.code == 2
    assert "a/worker_1" in done.err


def test_prompts_beside_a_plan_are_refused_rather_than_unheard(shell: Shell, gate: Path):
    done = shell.plait(*RUN, "-p", "and this", "-n", "2")
    assert done.code == 2
    assert "-p and -n would be ignored" in done.err


def test_a_place_for_state_that_depends_on_the_folder_is_refused(shell: Shell):
    shell.env["PLAIT_STATE_HOME"] = "state"
    done = shell.plait("status")
    assert "not an absolute path" in done.err
    assert list(shell.folder.iterdir()) == []


def test_a_prompt_may_name_an_agent_of_the_manifest_beside_it(shell: Shell, gate: Path):
    (gate / "go").touch()
    done = shell.plait("run", "-", "-a", "slow", "--headless", "--json", stdin="do it")
    assert done.code in {0, 3}, done.err
    assert done.events[-1]["report"]["steps"]["do-it"]["success_count"] == 1
    assert "(do it): " in shell.plait("status", "Do it").out
    assert shell.plait("status", "do something else").code == 2
    wrong = shell.plait("run", "-a", "nobody", "--headless", "do it")
    assert wrong.code == 2
    assert "slow" in wrong.err


def test_a_word_that_is_no_command_is_named(shell: Shell):
    done = shell.plait("nonsense")
    assert done.code == 2
    assert "'nonsense' is neither a command nor a folder" in done.err


def test_a_paused_worker_and_an_interrupted_run_are_told(shell: Shell, gate: Path):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        assert shell.plait("pause", "a").code == 0
        assert "paused" in shell.plait("status").out
        stays = shell.plait("resume").err
        assert "a/worker_1 stays paused; `plait resume " in stays
        assert shell.plait("resume", stays.split("`")[1].split()[-1]).code == 0
        assert "stays paused" not in shell.plait("resume").err
        assert shell.plait("pause", "a").code == 0
        first.kill()
        first.wait()
    left = shell.plait("status")
    assert "plait resume" in left.err
    (gate / "go").touch()
    run_id = left.out.split()[1]
    assert shell.plait("resume", run_id).code == 0
    assert "plait resume" not in shell.plait("status").err


def test_a_run_whose_reader_goes_away_does_not_claim_to_be_done(shell: Shell, gate: Path):
    with shell.running(*RUN) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        assert first.stdout is not None
        first.stdout.close()
        first.stdout = None
        (gate / "go").touch()
        assert first.wait(30) == 130

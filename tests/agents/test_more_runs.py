"""Whole runs with other real agents, each through the same piece of work."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.agents.clients import HINT, WORK, Serve, work_for
from tests.agents.model_server import ModelServer, Turn
from tests.agents.real_runs import RealRun, until_running
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

AGENTS = (
    "gemini",
    "opencode",
    "copilot",
    "qwen",
    "pi",
    "cline",
    "aider",
    "mini",
    "claude-acp",
    "codex-acp",
)
HAS_TOOLS = tuple(agent for agent in AGENTS if agent != "aider")
LONGEST_CANCEL_S = 10.0


def served(agent: str, turns: list[Turn], serve: Serve) -> ModelServer:
    """A server that follows the script as this agent asks: aider offers no tools at all."""
    server = serve(turns)
    server.is_by_conversation = agent != "aider"
    server.wants_tools = agent != "aider"
    return server


@pytest.mark.parametrize("agent", AGENTS)
def test_it_works_in_the_sandbox_and_its_change_is_kept(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = served(agent, work_for(agent), serve)
    real = RealRun(folder, agent, server)
    real.plan(max_concurrent_agents=3)
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result
    assert real.committed() == "hello\n"
    assert HINT in str(server.requests)
    assert real.files_of_change() == ["hello.txt"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refusal_of_the_model_fails_the_worker(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, served(agent, [Turn(status=400)], serve))
    real.plan()
    result = real.run()
    assert (result["outcome"], result["commit"]) == ("failed", None)
    assert result["cause"] == ("NO_CHANGE" if agent == "aider" else "AGENT"), result
    if agent not in {"aider", "mini"}:
        assert "400" in result["error"]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_whose_model_hangs_is_cancelled(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, server := served(agent, [Turn(text="And", hangs=True)], serve))
    real.plan()
    with real.running() as process:
        until_running(process)
        server.wait_requests(1)
        cancelled_within_bounds(real, process)
        rest_of(process)


@pytest.mark.parametrize("agent", HAS_TOOLS)
def test_a_cancelled_agent_leaves_no_process(agent: str, folder: Path, serve: Serve) -> None:
    turns = work_for(agent, command="echo partial > hello.txt; sleep 600")
    real = RealRun(folder, agent, served(agent, turns, serve))
    real.plan()
    with real.running() as process:
        until_running(process)
        real.wait_work("hello.txt")
        cancelled_within_bounds(real, process)
        rest_of(process)
    assert real.committed() == "partial\n"


def cancelled_within_bounds(real: RealRun, process: subprocess.Popen[str]) -> None:
    """No process is left ten seconds after the word was given."""
    assert real.living()
    began = time.monotonic()
    assert real.shell.plait("cancel", "work/worker_1").code == 0
    wait_event(process, "WorkerMoved", before="STOPPING")
    assert not real.living()
    assert time.monotonic() - began < LONGEST_CANCEL_S


@pytest.mark.parametrize("agent", ["claude-acp"])
@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_an_agent_over_acp_is_answered(agent: str, answer: str, folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    real.plan(permissions="ask")
    with real.running() as process:
        wait_event(process, "Asked")
        assert real.shell.plait("answer", "work/worker_1", answer).code == 0
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    ended = {"allow": ("success", "REVIEWING"), "deny": ("unchanged", "FINISHED")}[answer]
    assert (result["outcome"], result["phase"]) == ended


@pytest.mark.parametrize("agent", ["claude-acp"])
def test_words_reach_an_agent_over_acp_after_its_turn(
    agent: str, folder: Path, serve: Serve
) -> None:
    looks = Turn(text="I look.", runs="touch begun; until test -e go; do sleep 0.05; done; rm go")
    server = served(agent, [looks, WORK[1]], serve)
    real = RealRun(folder, agent, server)
    real.plan()
    with real.running() as process:
        until_running(process)
        begun = real.wait_work("begun")
        said = real.shell.plait("steer", "work/worker_1", "Use spaces.")
        assert "it has not heard that yet" in said.err
        (begun.parent / "go").touch()
        events = rest_of(process)
    assert [e["delivery"] for e in events if e["type"] == "Steered"] == ["queued", "delivered"]
    assert "Use spaces." in str(server.requests[-1])


@pytest.mark.parametrize("agent", ["codex-acp"])
@pytest.mark.parametrize(("answer", "phase"), [("allow", "REVIEWING"), ("deny", "FAILED")])
def test_codex_over_acp_asks_for_what_its_mode_does_not_allow(
    agent: str, answer: str, phase: str, *, folder: Path, serve: Serve
) -> None:
    wish = {"sandbox_permissions": "require_escalated", "justification": "to write"}
    writes = Turn(uses=("exec_command", {"cmd": "echo hello > hello.txt", **wish}))
    server = serve([writes, Turn(text="Written.")])
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    real.plan(permissions="ask")
    with real.running() as process:
        wait_event(process, "Asked")
        assert real.shell.plait("answer", "work/worker_1", answer).code == 0
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    assert result["phase"] == phase


@pytest.mark.parametrize("agent", ["claude-acp", "codex-acp"])
def test_a_log_says_each_thing_once(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, served(agent, work_for(agent), serve))
    real.plan()
    assert real.run()["outcome"] == "success"
    lines = real.shell.plait("logs", "work/worker_1").out.splitlines()
    said = [
        line for line in lines if line.startswith("$ ") or line in {"I will write.", "Written."}
    ]
    assert [line.split()[0] for line in said] == ["I", "$", "Written."]
    assert said[1].endswith("echo hello > hello.txt")
    assert not [line for line in lines if "jsonrpc" in line or "task_started" in line]

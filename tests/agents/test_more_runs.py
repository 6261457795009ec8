"""Whole runs with other real agents, each through the same piece of work."""

from pathlib import Path

import pytest

from tests.agents.clients import WORK, Serve
from tests.agents.model_server import Turn
from tests.agents.real_runs import HINT, RealRun, until_running
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

AGENTS = ("gemini", "opencode", "claude-acp")


@pytest.mark.parametrize("agent", AGENTS)
def test_it_works_in_the_sandbox_and_its_change_is_kept(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    real.plan(max_concurrent_agents=3)
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result
    assert real.committed() == "hello\n"
    assert HINT in str(server.requests)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refusal_of_the_model_fails_the_worker(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, serve([Turn(status=400)]))
    real.plan()
    result = real.run()
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT")
    assert "400" in result["error"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_cancelled_agent_leaves_no_process(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="Hm.", runs="echo partial > hello.txt; sleep 600"), WORK[1]])
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    real.plan()
    with real.running() as process:
        until_running(process)
        real.wait_work("hello.txt")
        assert real.living()
        assert real.shell.plait("cancel", "work/worker_1").code == 0
        wait_event(process, "WorkerMoved", before="STOPPING")
        assert not real.living()
        rest_of(process)


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
    phase = {"allow": "REVIEWING", "deny": "FINISHED"}[answer]
    assert (result["outcome"], result["phase"]) == ("success", phase)

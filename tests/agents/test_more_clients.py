"""Every other agent that installs by itself, driven once through the same piece of work."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.agents.agent_events import Said, Started, ToolCalled, ToolEnded
from engine.agents.contract import LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice
from tests.agents.clients import (
    HINT,
    KEY,
    PATH,
    WORK,
    Serve,
    codex_config,
    environment,
    settings_for,
    want,
    work_for,
)
from tests.agents.model_server import ModelServer, Turn
from tests.support.agent_runs import RunningAgent, launch_request

pytestmark = pytest.mark.real_agents

PROGRAMS = {
    "gemini": "gemini",
    "opencode": "opencode",
    "copilot": "copilot",
    "qwen": "qwen",
    "pi": "pi",
    "cline": "cline",
    "mini": "mini",
    "gemini-acp": "gemini",
    "opencode-acp": "opencode",
    "copilot-acp": "copilot",
    "qwen-acp": "qwen",
    "claude-acp": "claude-agent-acp",
    "codex-acp": "codex-acp",
}


def request_for(agent: str, folder: Path, server: ModelServer) -> LaunchRequest:
    want(PROGRAMS.get(agent, agent))
    is_pi = agent == "pi"
    named = {"pi": "fake-model", "mini": "openai/fake-model"}
    # Told no model, gemini first asks one which to take, in a form that this server does not know.
    model = "gemini-2.5-flash" if "gemini" in agent else None
    choice = AgentChoice(
        name=agent,
        adapter=agent,
        model=named.get(agent, model),
        env={"PATH": PATH, "K": KEY, "CODEX_CONFIG": codex_config(server)},
        options={"args": "--provider fake"} if is_pi else {},
    )
    given: dict[str, Any] = {"environment": environment(server), "is_confined": True, "hint": 3}
    asked = launch_request(folder, choice=choice, **given)
    for path, text in settings_for(agent, server).items():
        (folder / "home" / path).parent.mkdir(parents=True)
        (folder / "home" / path).write_text(text)
    return asked


@pytest.mark.parametrize("agent", [name for name in PROGRAMS if name != "mini"])
def test_it_works_in_its_workspace_and_says_so(agent: str, folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    running = RunningAgent(adapter_named(agent), request_for(agent, folder, server))
    outcome = running.end()
    assert outcome.ok, outcome.error
    assert outcome.text == "Written."
    assert (folder / "work/hello.txt").read_text() == "hello\n"
    if agent != "cline":
        assert outcome.session == running.told(Started)[-1].session
    assert Said("I will write.") in running.events
    assert {event.state for event in running.told(ToolEnded)} == {"done"}
    assert {e.id for e in running.told(ToolEnded)} == {e.id for e in running.told(ToolCalled)}
    asked = json.dumps(server.requests)
    assert HINT in asked
    assert "Fix the parser" in asked


@pytest.mark.parametrize(
    "agent",
    ["opencode", "copilot", "qwen", "opencode-acp", "copilot-acp", "claude-acp", "codex-acp"],
)
def test_a_refusal_of_the_model_is_a_failure(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([Turn(status=400)])
    outcome = RunningAgent(adapter_named(agent), request_for(agent, folder, server)).end()
    assert not outcome.ok
    assert outcome.error


@pytest.mark.parametrize("agent", ["claude", *(name for name in PROGRAMS if "-acp" not in name)])
def test_a_kill_of_the_group_alone_leaves_the_tool_alive(
    agent: str, folder: Path, serve: Serve
) -> None:
    """A cancel must do more: each of them gives a tool a session and group of its own."""
    server = serve(work_for(agent, command="echo partial > hello.txt; sleep 604"))
    server.is_by_conversation = True
    running = RunningAgent(adapter_named(agent), request_for(agent, folder, server))
    leader = psutil.Process(running.process.pid)
    try:
        tool = wait_for(lambda: tool_of(leader, "604"))
        own = os.getpgid(tool.pid)
        assert own != os.getpgid(leader.pid)
        for process in [
            p for p in (leader, *leader.children(recursive=True)) if is_beside(leader, p)
        ]:
            process.kill()
        running.process.wait()
        assert tool.is_running()
        assert tool.status() != psutil.STATUS_ZOMBIE
        os.killpg(own, signal.SIGKILL)
    finally:
        running.process.kill()
    assert not running.end().ok


def tool_of(agent: psutil.Process, word: str) -> psutil.Process | None:
    """The tool below an agent whose arguments are `sleep` and that word."""
    for process in agent.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # one that has just ended
            if process.cmdline() == ["sleep", word]:
                return process
    return None


def is_beside(agent: psutil.Process, other: psutil.Process) -> bool:
    return os.getpgid(other.pid) == os.getpgid(agent.pid)


def wait_for(look: Callable[[], psutil.Process | None]) -> psutil.Process:
    for _ in range(2400):
        if (found := look()) is not None:
            return found
        threading.Event().wait(0.05)
    raise AssertionError("nothing came of it within two minutes")

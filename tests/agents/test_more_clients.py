"""Every other agent that installs by itself, driven once through the same piece of work."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import Said, Started, ToolCalled, ToolEnded
from engine.agents.contract import LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice
from tests.agents.clients import PATH, WORK, Serve, want
from tests.agents.model_server import ModelServer, Turn
from tests.support.agent_runs import RunningAgent, launch_request

pytestmark = pytest.mark.real_agents

KEY = "a-key-of-no-worth"
HINT = "You may spawn up to 3 concurrent sub-agents or workers for this step."
PROGRAMS = {
    "gemini": "gemini",
    "opencode": "opencode",
    "copilot": "copilot",
    "qwen": "qwen",
    "pi": "pi",
    "gemini-acp": "gemini",
    "opencode-acp": "opencode",
    "copilot-acp": "copilot",
    "qwen-acp": "qwen",
    "claude-acp": "claude-agent-acp",
}


def environment(server: ModelServer) -> dict[str, str]:
    """A user's environment in which every client asks this server."""
    openai = f"{server.url}/v1"
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": openai, "apiKey": KEY},
        "models": {"fake-model": {"name": "Fake"}},
    }
    opencode = {"model": "fake/fake-model", "provider": {"fake": provider}}
    return {
        "PATH": PATH,
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": openai,
        "OPENAI_MODEL": "fake-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_PROVIDER_BASE_URL": openai,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": server.url,
        "OPENCODE_CONFIG_CONTENT": json.dumps(opencode),
    }


def settle_pi(home: Path, server: ModelServer) -> None:
    """pi knows providers from a file only."""
    cost = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
    limits = {"contextWindow": 100_000, "maxTokens": 10_000}
    model = {"id": "fake-model", "name": "x", "reasoning": False, "input": ["text"], "cost": cost}
    provider = {
        "baseUrl": f"{server.url}/v1",
        "api": "openai-completions",
        "apiKey": "OPENAI_API_KEY",
        "models": [{**model, **limits}],
    }
    (home / ".pi/agent").mkdir(parents=True)
    (home / ".pi/agent/models.json").write_text(json.dumps({"providers": {"fake": provider}}))


def request_for(agent: str, folder: Path, server: ModelServer) -> LaunchRequest:
    want(PROGRAMS[agent])
    is_pi = agent == "pi"
    # Told no model, gemini first asks one which to take, in a form that this server does not know.
    model = "gemini-2.5-flash" if "gemini" in agent else None
    choice = AgentChoice(
        name=agent,
        adapter=agent,
        model="fake-model" if is_pi else model,
        env={"PATH": PATH},
        options={"args": "--provider fake"} if is_pi else {},
    )
    given: dict[str, Any] = {"environment": environment(server), "is_confined": True, "hint": 3}
    asked = launch_request(folder, choice=choice, **given)
    if is_pi:
        settle_pi(folder / "home", server)
    return asked


@pytest.mark.parametrize("agent", PROGRAMS)
def test_it_works_in_its_workspace_and_says_so(agent: str, folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    running = RunningAgent(adapter_named(agent), request_for(agent, folder, server))
    outcome = running.end()
    assert outcome.ok, outcome.error
    assert outcome.text == "Written."
    assert (folder / "work/hello.txt").read_text() == "hello\n"
    assert outcome.session == running.told(Started)[-1].session
    assert Said("I will write.") in running.events
    assert {event.state for event in running.told(ToolEnded)} == {"done"}
    assert {e.id for e in running.told(ToolEnded)} == {e.id for e in running.told(ToolCalled)}
    asked = json.dumps(server.requests)
    assert HINT in asked
    assert "Fix the parser" in asked


@pytest.mark.parametrize(
    "agent", ["opencode", "copilot", "qwen", "opencode-acp", "copilot-acp", "claude-acp"]
)
def test_a_refusal_of_the_model_is_a_failure(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([Turn(status=400)])
    outcome = RunningAgent(adapter_named(agent), request_for(agent, folder, server)).end()
    assert not outcome.ok
    assert outcome.error

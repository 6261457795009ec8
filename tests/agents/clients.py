"""Find the real clients, and define the one piece of work that each of them gets.

They are looked for in the folder that `PLAIT_AGENTS_BIN` names (by default the one that
`make clients` fills), else on the PATH. `PLAIT_AGENTS`
names those that are to be tested; without it all are that are there.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.model_server import ModelServer, Turn

_INSTALLED = Path(__file__).parents[2] / ".agents"
_BIN = os.pathsep.join(str(_INSTALLED / folder) for folder in ("node_modules/.bin", "bin"))
PATH = os.pathsep.join((os.environ.get("PLAIT_AGENTS_BIN", _BIN), os.environ["PATH"]))
WORK_ROOT = Path(os.environ.get("PLAIT_AGENTS_WORK", Path.home() / ".cache" / "plait-test-agents"))
WORK = [Turn(text="I will write.", runs="echo hello > hello.txt"), Turn(text="Written.")]
WANTED = os.environ.get("PLAIT_AGENTS", "").split()
KEY = "a-key-of-no-worth"
HINT = "You may spawn up to 3 concurrent sub-agents or workers for this step."
Serve = Callable[[list[Turn]], ModelServer]
_OF_THEIR_OWN = {"claude-acp", "codex-acp"}
"""Agents over ACP that are programs beside the one that they drive; the others are that one."""
_NAMED_IN_TESTS = ("aider", "mini", "codex")
"""Agents that a test without a parameter says in its name; any other such test drives claude."""


def agent_of(item: pytest.Item) -> str:
    """The agent that a test drives: its parameter, else the one that its name speaks of."""
    given = getattr(item, "callspec", None)
    agent = given.params.get("agent", "") if given else ""
    if agent:
        return agent if agent in _OF_THEIR_OWN else agent.removesuffix("-acp")
    words = item.name.partition("[")[0].split("_")
    return next((name for name in _NAMED_IN_TESTS if name in words), "claude")


def want(program: str) -> None:
    """Skip where the program is not there; fail where its absence would hide something."""
    if shutil.which(program, path=PATH) is None:
        if WANTED and os.environ.get("PLAIT_CI") == "1":
            pytest.fail(f"{program} is not installed, and CI wants it to be")
        pytest.skip(f"{program} is not installed (run `make test-agents`)")


def work_for(agent: str, *, command: str = "echo hello > hello.txt") -> list[Turn]:
    """The script in which a model lets this agent do its work, and lets it end."""
    if agent == "aider":  # it runs nothing that it is not told to: it writes what is said
        return [Turn(text="I will write.\n\nhello.txt\n```\nhello\n```\n"), Turn(text="Written.")]
    last = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" if agent == "mini" else ""
    return [Turn(text="I will write.", runs=command), Turn(text="Written.", runs=last)]


def environment(server: ModelServer) -> dict[str, str]:
    """A user's environment in which every client asks this server."""
    openai = f"{server.url}/v1"
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": openai, "apiKey": "{env:OPENAI_API_KEY}"},
        "models": {"fake-model": {"name": "Fake"}},
    }
    opencode = {"model": "fake/fake-model", "provider": {"fake": provider}}
    return {
        "PATH": PATH,
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": openai,
        "OPENAI_API_BASE": openai,
        "OPENAI_MODEL": "fake-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "fake-model",
        "COPILOT_PROVIDER_BASE_URL": openai,
        "COPILOT_PROVIDER_API_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": server.url,
        "OPENCODE_CONFIG_CONTENT": json.dumps(opencode),
    }


def settings_for(agent: str, server: ModelServer) -> dict[str, str]:
    """Files of its HOME in which an agent looks for whom to ask, where no variable says it."""
    if agent == "pi":
        cost = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
        limits = {"contextWindow": 100_000, "maxTokens": 10_000}
        kind = {"id": "fake-model", "name": "x", "reasoning": False, "input": ["text"]}
        provider: dict[str, Any] = {
            "baseUrl": f"{server.url}/v1",
            "api": "openai-completions",
            "apiKey": "OPENAI_API_KEY",
            "models": [{**kind, "cost": cost, **limits}],
        }
        return {".pi/agent/models.json": json.dumps({"providers": {"fake": provider}})}
    if agent == "cline":
        name = "openai-compatible"
        settings = {
            "provider": name,
            "apiKey": KEY,
            "model": "fake-model",
            "baseUrl": f"{server.url}/v1",
        }
        known = {name: {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z"}}
        told = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": known}
        return {".cline/data/settings/providers.json": json.dumps(told)}
    return {}


def codex_config(server: ModelServer) -> str:
    """Return what `codex-acp` takes in place of arguments."""
    provider = {"name": "x", "base_url": f"{server.url}/v1", "wire_api": "responses"}
    known = {"x": {**provider, "env_key": "K"}}
    return json.dumps({"model": "gpt-5.5", "model_provider": "x", "model_providers": known})

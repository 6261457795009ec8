"""The user's own settings of a client reach the worker in the sandbox, and no key goes along."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agents.clients import KEY, WORK, Serve, work_for
from tests.agents.model_server import ModelServer, Turn
from tests.agents.real_runs import RealRun

pytestmark = pytest.mark.real_agents

SERVER = Path(__file__).with_name("mcp_server.py")
AGENTS = ("claude", "codex")
SKILL = "---\nname: brew\ndescription: Brews the tea of plait.\n---\nBoil water.\n"
VARIABLES = {
    "gemini": "GEMINI_API_KEY={key}\nGOOGLE_GEMINI_BASE_URL='{url}'\n",
    "qwen": 'OPENAI_API_KEY="{key}"\nOPENAI_BASE_URL={url}/v1\nOPENAI_MODEL=fake-model\n',
}
TABLES = ("gemini", "qwen", "opencode", "copilot", "pi", "cline")
OVER_ACP = ("claude-acp", "codex-acp", "opencode-acp", "copilot-acp", "gemini-acp", "qwen-acp")
NO_MCP = ("pi",)
LEFT_OUT = {
    "gemini": "hooks",
    "qwen": "hooks",
    "gemini-acp": "hooks",
    "qwen-acp": "hooks",
    "opencode": "plugin",
    "opencode-acp": "plugin",
    "claude-acp": "hooks",
    "codex-acp": "notify",
}
MODELS = {"gemini": "gemini-2.5-flash", "gemini-acp": "gemini-2.5-flash"}
SKILLS = {"cline": "Available skills: brew"}
"""The words of a client that does not hand on what a skill says of itself."""
UNNAMED = "the-unnamed-value"


def write(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def settings_of(agent: str, server: ModelServer, tool: Path) -> dict[str, str]:
    """The files of a user who works by a provider of their own, with a skill and an MCP server."""
    agent = agent.removesuffix("-acp")
    if agent in {"aider", "mini"}:
        return {}
    env = {"PASSED": "sunshine", "UNNAMED": UNNAMED}
    if agent in {"gemini", "qwen"}:
        weather = {"command": "python3", "args": [str(tool)], "env": env}
        settings = {"mcpServers": {"weather": weather}, "hooks": {"BeforeTool": [{}]}}
        return {
            f".{agent}/{agent.upper()}.md": "Always greet the badger.\n",
            f".{agent}/skills/brew/SKILL.md": SKILL,
            f".{agent}/settings.json": json.dumps(settings),
            f".{agent}/.env": VARIABLES[agent].format(url=server.url, key=KEY),
        }
    if agent in {"copilot", "cline", "pi"}:
        return _settings_of_more(agent, server, {"args": [str(tool)], "env": env})
    if agent == "opencode":
        corp = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{server.url}/v1", "apiKey": "{env:CORP_KEY}"},
            "models": {"fake-model": {"name": "Fake"}},
        }
        weather = {"type": "local", "command": ["python3", str(tool)], "environment": env}
        providers = {"corp": corp, "other": {"options": {"apiKey": "of-another-host"}}}
        settings = {
            "model": "corp/fake-model",
            "provider": providers,
            "mcp": {"weather": weather},
            "plugin": ["hooked"],
        }
        return {
            ".config/opencode/AGENTS.md": "Always greet the badger.\n",
            ".config/opencode/skills/brew/SKILL.md": SKILL,
            ".config/opencode/opencode.jsonc": f"// mine\n{json.dumps(settings)}",
        }
    if agent == "claude":
        provider = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": KEY}
        hook = {"type": "command", "command": "touch hooked"}
        hooks = {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}
        weather = {"command": "python3", "args": [str(tool)], "env": env}
        return {
            ".claude/CLAUDE.md": "Always greet the badger.\n@tea.md\n",
            ".claude/tea.md": "Tea is holy.\n",
            ".claude/skills/brew/SKILL.md": SKILL,
            ".claude/settings.json": json.dumps({"env": provider, "hooks": hooks}),
            ".claude.json": json.dumps({"mcpServers": {"weather": weather}}),
        }
    told = "\n".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
    return {
        ".codex/AGENTS.md": "Always greet the badger.\n",
        ".codex/skills/brew/SKILL.md": SKILL,
        ".codex/config.toml": f"""
model = "gpt-5.1"
model_provider = "corp"
notify = ["touch", "hooked"]
[model_providers.corp]
name = "corp"
base_url = "{server.url}/v1"
wire_api = "responses"
env_key = "CORP_KEY"
[mcp_servers.weather]
command = "python3"
args = [{json.dumps(str(tool))}]
[mcp_servers.weather.env]
{told}
""",
    }


def _settings_of_more(agent: str, server: ModelServer, weather: dict[str, Any]) -> dict[str, str]:
    if agent == "copilot":
        weather = {"command": "python3", **weather, "tools": ["*"]}
        return {
            ".copilot/copilot-instructions.md": "Always greet the badger.\n",
            ".copilot/skills/brew/SKILL.md": SKILL,
            ".copilot/mcp-config.json": json.dumps({"mcpServers": {"weather": weather}}),
        }
    if agent == "cline":
        weather = {"command": "python3", **weather}
        name, at = "openai-compatible", "2026-01-01T00:00:00.000Z"
        own = {
            "provider": name,
            "apiKey": KEY,
            "model": "fake-model",
            "baseUrl": f"{server.url}/v1",
        }
        other = {"provider": "openai", "apiKey": "of-another-host", "model": "x"}
        known = {
            name: {"settings": own, "updatedAt": at},
            "openai": {"settings": other, "updatedAt": at},
        }
        told = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": known}
        return {
            "Documents/Cline/Rules/mine.md": "Always greet the badger.\n",
            ".cline/skills/brew/SKILL.md": SKILL,
            ".cline/data/settings/providers.json": json.dumps(told),
            ".cline/data/settings/cline_mcp_settings.json": json.dumps(
                {"mcpServers": {"weather": weather}}
            ),
        }
    model = {"id": "fake-model", "name": "x", "reasoning": False, "input": ["text"]}
    corp = {"baseUrl": f"{server.url}/v1", "api": "openai-completions", "apiKey": "CORP_KEY"}
    other = {**corp, "baseUrl": "http://other.example", "apiKey": "of-another-host"}
    providers = {"corp": {**corp, "models": [model]}, "other": {**other, "models": [model]}}
    return {
        ".pi/agent/AGENTS.md": "Always greet the badger.\n",
        ".pi/agent/skills/brew/SKILL.md": SKILL,
        ".pi/agent/settings.json": '{"defaultProvider": "corp", "defaultModel": "fake-model"}',
        ".pi/agent/models.json": json.dumps({"providers": providers}),
    }


class Kept:
    """A user with settings of their own, whose agent is run."""

    def __init__(self, agent: str, folder: Path, server: ModelServer, **files: str) -> None:
        self.agent = agent
        self.real = real = RealRun(folder, agent, server)
        self.home = folder / "home"
        tools = folder / "tools"
        tools.mkdir()
        tool = Path(shutil.copy(SERVER, tools))
        write(self.home, settings_of(agent, server, tool) | files)
        of_client = {name for name in real.env if "copilot" in agent and name.startswith("COPILOT")}
        for name in real.env.keys() - {"PATH", "CLAUDE_CODE_MAX_RETRIES", *of_client}:
            del real.env[name]
        real.env |= {"HOME": str(self.home), "CORP_KEY": KEY, "OPENAI_API_KEY": "for-openai-alone"}
        self.sandbox = {"env": ["PASSED", "CORP_KEY"], "paths": [str(tools)]}

    def run(self, **agent: Any) -> dict[str, Any]:
        real = self.real
        real.plan(runtime={"sandbox": self.sandbox})
        path = real.folder.parent / "plait.yaml"
        manifest = json.loads(path.read_text())
        manifest["agents"] = {self.agent: {"adapter": self.agent, **agent}}
        path.write_text(json.dumps(manifest))
        return real.run()


def uses_tool(agent: str) -> Turn:
    name = {"claude": "mcp__weather__tell_weather", "codex": "mcp__weather.tell_weather"}[agent]
    return Turn(uses=(name, {}))


def most_offered(server: ModelServer) -> int:
    """Return the most times that one request offers the tool of the MCP server."""
    offered = (json.dumps(body["tools"]) for body in server.requests)
    return max(len(re.findall(r'"name": "[^"]*tell_weather"', tools)) for tools in offered)


@pytest.mark.parametrize("agent", AGENTS)
def test_what_the_user_has_reaches_the_first_request(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve([WORK[0], uses_tool(agent), WORK[1]])
    user = Kept(agent, folder, server)
    result = user.run()
    assert result["outcome"] == "success", result
    first = json.dumps(server.requests[0])
    assert "greet the badger" in first
    assert "Brews the tea of plait" in first
    assert "tell_weather" in first
    last = json.dumps(server.requests[-1])
    assert "rain sunshine" in last
    assert UNNAMED not in last
    assert not {login for login in server.logins if login != f"Bearer {KEY}"}
    log = user.real.shell.plait("logs", "work/worker_1").out
    assert "MCP server weather" in log
    assert "UNNAMED of MCP server weather: not named in `sandbox.env`" in log
    assert ("hooks of" if agent == "claude" else "notify of") in log
    assert "hooked" not in user.real.files_of_change()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("wish", ["instructions", "none"])
def test_the_user_says_what_reaches_it(wish: str, agent: str, folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    assert Kept(agent, folder, server).run(user_settings=wish)["outcome"] == "success"
    first = json.dumps(server.requests[0])
    assert ("greet the badger" in first) is (wish == "instructions")
    assert "Brews the tea of plait" not in first
    assert "tell_weather" not in first
    assert set(server.logins) == {f"Bearer {KEY}"}  # the provider is no matter of taste


@pytest.mark.parametrize("agent", [*TABLES, *OVER_ACP])
def test_what_the_user_of_another_client_has_reaches_it(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    user = Kept(agent, folder, server)
    if agent in {"qwen", "qwen-acp"}:
        del user.real.env["OPENAI_API_KEY"]  # else that is the one it takes
    model = {"model": MODELS[agent]} if agent in MODELS else {}
    result = user.run(**model)
    assert result["outcome"] == "success", result
    first = json.dumps(server.requests)
    assert "greet the badger" in first
    assert SKILLS.get(agent, "Brews the tea of plait") in first
    assert "of-another-host" not in str(server.logins)
    log = user.real.shell.plait("logs", "work/worker_1").out
    if agent not in NO_MCP:
        assert "tell_weather" in first
        # Of the client's own file, and not once more over ACP; some name it in a message first.
        assert most_offered(server) <= 1
        assert "MCP server weather" in log
        assert "UNNAMED of MCP server weather: not named in `sandbox.env`" in log
    if agent in LEFT_OUT:
        assert f"{LEFT_OUT[agent]} of" in log


@pytest.mark.parametrize("agent", [*TABLES, *OVER_ACP])
def test_the_user_of_another_client_says_what_reaches_it(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    user = Kept(agent, folder, server)
    if agent in {"qwen", "qwen-acp"}:
        del user.real.env["OPENAI_API_KEY"]
    model = {"model": MODELS[agent]} if agent in MODELS else {}
    assert user.run(user_settings="none", **model)["outcome"] == "success"
    first = json.dumps(server.requests)
    assert "greet the badger" not in first
    assert SKILLS.get(agent, "Brews the tea of plait") not in first
    assert "tell_weather" not in first


@pytest.mark.parametrize("wish", ["all", "none"])
def test_aider_reads_what_its_user_lets_it_read_and_asks_whom_its_user_asks(
    wish: str, folder: Path, serve: Serve
) -> None:
    server = serve(work_for("aider"))
    server.wants_tools = False
    config = {"model": "openai/fake-model", "openai-api-base": f"{server.url}/v1"}
    told = {**config, "read": ["~/rules/mine.md"], "lint-cmd": "touch hooked"}
    files = {".aider.conf.yml": json.dumps(told), "rules/mine.md": "Always greet the badger.\n"}
    user = Kept("aider", folder, server, **files)
    user.real.env["OPENAI_API_KEY"] = KEY
    result = user.run(user_settings=wish)
    assert result["outcome"] == "success", result
    assert ("greet the badger" in json.dumps(server.requests[0])) is (wish == "all")
    assert set(server.logins) == {f"Bearer {KEY}"}
    log = user.real.shell.plait("logs", "work/worker_1").out
    assert "lint-cmd of ~/.aider.conf.yml: they run code" in log
    assert user.real.files_of_change() == ["hello.txt"]


def test_mini_asks_whom_its_user_asks(folder: Path, serve: Serve) -> None:
    server = serve(work_for("mini"))
    server.is_by_conversation = True
    asked = f"MSWEA_MODEL_NAME='openai/fake-model'\nOPENAI_API_BASE='{server.url}/v1'\n"
    files = {".config/mini-swe-agent/.env": f"{asked}OPENAI_API_KEY='{KEY}'\n"}
    user = Kept("mini", folder, server, **files)
    del user.real.env["OPENAI_API_KEY"]
    assert user.run()["outcome"] == "success"
    assert set(server.logins) == {f"Bearer {KEY}"}


def test_mini_without_a_model_is_refused_with_how_to_name_one(folder: Path, serve: Serve) -> None:
    user = Kept("mini", folder, serve(WORK))
    user.real.plan()
    path = user.real.folder.parent / "plait.yaml"
    manifest = json.loads(path.read_text()) | {"agents": {"mini": {"adapter": "mini"}}}
    path.write_text(json.dumps(manifest))
    done = user.real.shell.plait(*user.real.words)
    assert done.code == 1
    assert "the agent 'mini' has no model" in done.err
    assert "MSWEA_MODEL_NAME" in done.err

"""Plugins, hooks and extensions of the user's, and MCP servers that a manifest names."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agents.clients import KEY, WORK, Serve
from tests.agents.model_server import ModelServer
from tests.agents.real_runs import RealRun
from tests.agents.test_user_settings import SERVER, SKILL, Kept, write

pytestmark = pytest.mark.real_agents

PLUGIN = ".claude/plugins/cache/mk/tea/1.0"


def of_claude(home: Path) -> None:
    """A plugin that is switched on, with a skill and a hook."""
    hook = {"type": "command", "command": "touch hooked"}
    hooks = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}
    installed = {"tea@mk": [{"scope": "user", "installPath": str(home / PLUGIN)}]}
    told = json.loads((home / ".claude/settings.json").read_text())
    told |= {"enabledPlugins": {"tea@mk": True}, "hooks": {}}
    files = {
        f"{PLUGIN}/.claude-plugin/plugin.json": '{"name": "tea", "version": "1.0"}',
        f"{PLUGIN}/skills/pour/SKILL.md": SKILL.replace("brew", "pour").replace("Brews", "Pours"),
        f"{PLUGIN}/hooks/hooks.json": json.dumps(hooks),
        ".claude/plugins/installed_plugins.json": json.dumps({"plugins": installed}),
        ".claude/settings.json": json.dumps(told),
    }
    write(home, files)


PLUGIN_OF_CODEX = ".codex/plugins/cache/mk/tea/1.0"


def of_codex(home: Path) -> None:
    """A plugin that is switched on, with a skill."""
    config = home / ".codex/config.toml"
    files = {
        f"{PLUGIN_OF_CODEX}/.codex-plugin/plugin.json": '{"name": "tea", "version": "1.0"}',
        f"{PLUGIN_OF_CODEX}/skills/pour/SKILL.md": SKILL.replace("brew", "pour").replace(
            "Brews", "Pours"
        ),
        ".codex/config.toml": f'{config.read_text()}\n[plugins."tea@mk"]\nenabled = true\n',
    }
    write(home, files)


@pytest.mark.parametrize("agent", ["codex", "codex-acp"])
@pytest.mark.parametrize("wish", ["all", "instructions"])
def test_a_plugin_of_codex_brings_its_skill(
    wish: str, agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    user = Kept(agent, folder, server)
    of_codex(user.home)
    result = user.run(user_settings=wish)
    assert result["outcome"] == "success", result
    assert ("Pours the tea of plait" in json.dumps(server.requests)) is (wish == "all")


@pytest.mark.parametrize("agent", ["claude", "claude-acp"])
@pytest.mark.parametrize("is_wanted", [False, True])
def test_a_plugin_s_skill_reaches_it_and_its_hook_where_that_is_wanted(
    agent: str, folder: Path, serve: Serve, *, is_wanted: bool
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    user = Kept(agent, folder, server)
    of_claude(user.home)
    result = user.run(user_code=is_wanted)
    assert result["outcome"] == "success", result
    assert "Pours the tea of plait" in json.dumps(server.requests)
    assert ("hooked" in user.real.files_of_change()) is is_wanted
    log = user.real.shell.plait("logs", "work/worker_1").out
    assert ("hooks of plugin tea@mk: they run code" in log) is not is_wanted


EXTENSIONS = {
    "gemini": {
        ".gemini/extensions/tea/gemini-extension.json": '{"name": "tea", "version": "1.0.0", '
        '"contextFileName": "TEA.md"}',
        ".gemini/extensions/tea/TEA.md": "Pour for the heron.\n",
    },
    "qwen": {
        ".qwen/extensions/tea/qwen-extension.json": '{"name": "tea", "version": "1.0.0", '
        '"contextFileName": "TEA.md"}',
        ".qwen/extensions/tea/TEA.md": "Pour for the heron.\n",
    },
    "pi": {
        ".pi/agent/extensions/tea.ts": "export default function (pi) {\n"
        '  pi.on("before_agent_start", async (event) => ({ systemPrompt: '
        'event.systemPrompt + "\\nPour for the heron." }));\n}\n'
    },
    "opencode": {
        ".config/opencode/plugin/tea.js": "export const Tea = async () => ({\n"
        '  "experimental.chat.system.transform": async (_, output) => '
        '{ output.system.push("Pour for the heron.") },\n})\n'
    },
}


@pytest.mark.parametrize("agent", EXTENSIONS)
@pytest.mark.parametrize("is_wanted", [False, True])
def test_an_extension_works_inside_where_that_is_wanted(
    agent: str, folder: Path, serve: Serve, *, is_wanted: bool
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    user = Kept(agent, folder, server)
    if agent == "qwen":
        del user.real.env["OPENAI_API_KEY"]
    write(user.home, EXTENSIONS[agent])
    model: dict[str, Any] = {"model": "gemini-2.5-flash"} if agent == "gemini" else {}
    result = user.run(user_code=is_wanted, **model)
    assert result["outcome"] == "success", result
    assert ("Pour for the heron" in json.dumps(server.requests)) is is_wanted


def over_acp(agent: str, folder: Path, server: ModelServer) -> RealRun:
    """A run of an agent that plait does not know, with the servers of a file."""
    real = RealRun(folder, agent, server)
    tools = folder / "tools"
    tools.mkdir()
    tool = shutil.copy(SERVER, tools)
    weather = {"command": "python3", "args": [tool], "env": {"PASSED": "sunshine"}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"weather": weather}}))
    names = ["PASSED", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]
    real.plan(runtime={"sandbox": {"env": names, "paths": [str(tools)]}}, agent="mine")
    return real


@pytest.mark.parametrize("agent", ["claude-acp"])
@pytest.mark.parametrize("wish", ["all", "none"])
def test_an_agent_that_is_not_known_is_told_of_the_servers_that_the_manifest_names(
    wish: str, agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    server.is_by_conversation = True
    real = over_acp(agent, folder, server)
    path = folder / "plait.yaml"
    manifest = json.loads(path.read_text())
    about = {
        "adapter": "acp",
        "argv": ["claude-agent-acp"],
        "options": {"mcp": str(folder / "mcp.json")},
    }
    manifest["agents"] = {"mine": {**about, "user_settings": wish}}
    path.write_text(json.dumps(manifest))
    assert real.env["ANTHROPIC_API_KEY"] == KEY
    result = real.run()
    assert result["outcome"] == "success", result["error"]
    assert ("tell_weather" in json.dumps(server.requests)) is (wish == "all")

"""Hooks, plugins and extensions of the user's: they stay behind, unless the user wants them."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.agents.contract import AgentLaunch
from engine.agents.settings.copied import RUN_CODE
from engine.plan.model import SettingsWish
from tests.integration.test_agents_settings import GITHUB, launch, write, written

HOOK = {"Stop": [{"hooks": [{"type": "command", "command": "{folder}/hooks/say.sh"}]}]}
CODE = [
    ("claude", ".claude", "hooks/say.sh"),
    ("codex", ".codex", "hooks/say.sh"),
    ("gemini", ".gemini", "extensions/tea/gemini-extension.json"),
    ("qwen", ".qwen", "extensions/tea/qwen-extension.json"),
    ("opencode", ".config/opencode", "plugin/tea.ts"),
    ("copilot", ".copilot", "hooks/say.json"),
    ("pi", ".pi/agent", "extensions/tea.ts"),
    ("cline", ".cline", "hooks/say.sh"),
]
IN_SETTINGS = [
    ("claude", ".claude/settings.json"),
    ("gemini", ".gemini/settings.json"),
    ("qwen", ".qwen/settings.json"),
]


def names_of(launched: AgentLaunch) -> set[str]:
    return {file.path for file in launched.files}


@pytest.mark.parametrize(("agent", "folder", "name"), CODE)
def test_folders_of_code_go_along_where_the_user_wants_them(
    agent: str, folder: str, name: str, tmp_path: Path
) -> None:
    path = f"{folder}/{name}"
    write(tmp_path, path, "#!/bin/sh\n")
    (tmp_path / path).chmod(0o755)
    launched = launch(agent, tmp_path)
    assert path not in names_of(launched)
    top = name.partition("/")[0]
    assert f"~/{folder}/{top}: {RUN_CODE}" in launched.settings.left_out
    launched = launch(agent, tmp_path, user_code=True)
    assert {file.path: file.mode for file in launched.files}[path] == 0o500
    assert any(line.startswith(f"{top}: ") for line in launched.settings.taken)
    for wish in (SettingsWish.INSTRUCTIONS, SettingsWish.NONE):
        assert path not in names_of(launch(agent, tmp_path, user_code=True, user_settings=wish))


@pytest.mark.parametrize(("agent", "name"), IN_SETTINGS)
def test_hooks_in_settings_go_along_with_the_paths_of_the_worker(
    agent: str, name: str, tmp_path: Path
) -> None:
    folder = name.partition("/")[0]
    hooks = json.dumps(HOOK).replace("{folder}", f"{tmp_path}/{folder}")
    write(tmp_path, name, f'{{"hooks": {hooks}}}')
    launched = launch(agent, tmp_path)
    assert f"hooks of ~/{name}: {RUN_CODE}" in launched.settings.left_out
    assert not [one for one in launched.files if b"say.sh" in one.data]
    kept = json.loads(written(launch(agent, tmp_path, user_code=True), name))["hooks"]
    assert kept == json.loads(json.dumps(HOOK).replace("{folder}", f"/home/w/{folder}"))


@pytest.mark.parametrize(("agent", "name"), IN_SETTINGS)
def test_hooks_with_a_key_stay_behind(agent: str, name: str, tmp_path: Path) -> None:
    write(tmp_path, name, json.dumps({"hooks": {"Stop": [{"command": f"say {GITHUB}"}]}}))
    launched = launch(agent, tmp_path, user_code=True)
    assert not [one for one in launched.files if GITHUB.encode() in one.data]
    assert f"hooks of ~/{name}: it contains a key" in launched.settings.left_out


def test_what_codex_and_aider_run_goes_along_where_the_user_wants_it(tmp_path: Path) -> None:
    write(tmp_path, ".codex/config.toml", 'notify = ["say", "done"]\n')
    assert "notify" not in written(launch("codex", tmp_path), ".codex/config.toml")
    kept = written(launch("codex", tmp_path, user_code=True), ".codex/config.toml")
    assert '"notify" = ["say", "done"]' in kept
    write(tmp_path, ".aider.conf.yml", json.dumps({"lint-cmd": "make lint", "load": "x"}))
    kept = written(launch("aider", tmp_path, user_code=True), ".aider.conf.yml")
    assert yaml.safe_load(kept) == {"lint-cmd": "make lint"}


def with_plugin(home: Path, **about: Any) -> Path:
    place = home / ".claude/plugins/cache/mk/tea/1.0"
    write(place, ".claude-plugin/plugin.json", json.dumps({"name": "tea", **about}))
    write(place, "skills/brew/SKILL.md", "Boil.\n")
    write(place, "hooks/hooks.json", "{}")
    write(place, ".mcp.json", '{"mcpServers": {}}')
    write(home, ".claude/settings.json", '{"enabledPlugins": {"tea@mk": true, "off@mk": false}}')
    found = {"tea@mk": [{"scope": "user", "installPath": str(place)}]}
    write(home, ".claude/plugins/installed_plugins.json", json.dumps({"plugins": found}))
    return place


TOP = ".claude/plugins/marketplaces/mk/tea"


def test_of_a_plugin_of_claude_its_words_go_along(tmp_path: Path) -> None:
    with_plugin(tmp_path, hooks={"Stop": []}, mcpServers={"one": {}}, description="Tea.")
    launched = launch("claude", tmp_path)
    names = names_of(launched)
    assert f"{TOP}/skills/brew/SKILL.md" in names
    assert not {name for name in names if "hooks" in name or "mcp" in name}
    told = json.loads(written(launched, f"{TOP}/.claude-plugin/plugin.json"))
    assert told == {"name": "tea", "description": "Tea."}
    settings = json.loads(written(launched, ".claude/settings.json"))
    assert settings == {"enabledPlugins": {"tea@mk": True}}
    assert "plugins: tea@mk" in launched.settings.taken
    left = launched.settings.left_out
    assert f"hooks of plugin tea@mk: {RUN_CODE}" in left
    assert any(line.startswith("MCP servers of plugin tea@mk") for line in left)
    for wish in (SettingsWish.INSTRUCTIONS, SettingsWish.NONE):
        assert launch("claude", tmp_path, user_settings=wish).files == ()


def test_hooks_of_a_plugin_go_along_where_the_user_wants_them(tmp_path: Path) -> None:
    with_plugin(tmp_path)
    names = names_of(launch("claude", tmp_path, user_code=True))
    assert f"{TOP}/hooks/hooks.json" in names
    assert f"{TOP}/.mcp.json" not in names


def with_plugin_of_codex(home: Path, *versions: str, manifest: str = ".codex-plugin") -> None:
    for version in versions:
        place = home / f".codex/plugins/cache/mk/tea/{version}"
        told = {"name": "tea", "version": version, "hooks": "./hooks/hooks.json", "apps": "./a"}
        write(place, f"{manifest}/plugin.json", json.dumps(told))
        write(place, "skills/brew/SKILL.md", f"Boil by {version}.\n")
        write(place, "hooks/hooks.json", "{}")
        write(place, ".mcp.json", '{"mcpServers": {}}')
        write(place, ".app.json", "{}")
    config = '[plugins."tea@mk"]\nenabled = true\n[plugins."off@mk"]\nenabled = false\n'
    write(home, ".codex/config.toml", config)


@pytest.mark.parametrize("manifest", [".codex-plugin", ".claude-plugin"])
def test_of_a_plugin_of_codex_its_skills_go_along(manifest: str, tmp_path: Path) -> None:
    with_plugin_of_codex(tmp_path, "1.2", manifest=manifest)
    top = ".codex/plugins/cache/mk/tea/1.2"
    launched = launch("codex", tmp_path)
    own = {f"{top}/skills/brew/SKILL.md", f"{top}/{manifest}/plugin.json", ".codex/config.toml"}
    assert names_of(launched) == own
    told = json.loads(written(launched, f"{top}/{manifest}/plugin.json"))
    assert told == {"name": "tea", "version": "1.2"}
    config = tomllib.loads(written(launched, ".codex/config.toml"))
    assert config["plugins"] == {"tea@mk": {"enabled": True}}
    assert "plugins: tea@mk" in launched.settings.taken
    assert f"hooks of plugin tea@mk: {RUN_CODE}" in launched.settings.left_out
    assert any("codex mcp add" in line for line in launched.settings.left_out)
    with_code = launch("codex", tmp_path, user_code=True)
    assert names_of(with_code) == own | {f"{top}/hooks/hooks.json"}
    assert "hooks" in json.loads(written(with_code, f"{top}/{manifest}/plugin.json"))
    for wish in (SettingsWish.INSTRUCTIONS, SettingsWish.NONE):
        launched = launch("codex", tmp_path, user_settings=wish)
        assert names_of(launched) == {".codex/config.toml"}
        assert "tea@mk" not in written(launched, ".codex/config.toml")


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [(("1.9", "1.10"), "1.10"), (("2.0-beta", "2.0"), "2.0"), (("9.9", "local"), "local")],
)
def test_the_version_that_codex_would_take_goes_along(
    versions: tuple[str, ...], chosen: str, tmp_path: Path
) -> None:
    with_plugin_of_codex(tmp_path, *versions)
    launched = launch("codex", tmp_path)
    assert {name.split("/")[5] for name in names_of(launched) if "plugins" in name} == {chosen}


@pytest.mark.parametrize("name", ["../../evil@mk", "tea@../mk", "tea", "a/b@mk", "none@mk"])
def test_a_plugin_of_codex_that_is_none_stays_behind(name: str, tmp_path: Path) -> None:
    write(tmp_path, ".codex/evil/1/skills/x/SKILL.md", "Boil.\n")
    write(tmp_path, ".codex/config.toml", f'[plugins."{name}"]\nenabled = true\n')
    launched = launch("codex", tmp_path)
    assert names_of(launched) == {".codex/config.toml"}
    assert "plugins" not in tomllib.loads(written(launched, ".codex/config.toml"))
    assert launched.settings.left_out == (f"plugin {name}: it is not installed",)


@pytest.mark.parametrize("name", ["../../evil@mk", "tea@../mk", "tea", "a/b@mk", ".@mk"])
def test_a_plugin_with_an_odd_name_stays_behind(name: str, tmp_path: Path) -> None:
    place = with_plugin(tmp_path)
    write(tmp_path, ".claude/settings.json", json.dumps({"enabledPlugins": {name: True}}))
    found = {"plugins": {name: [{"installPath": str(place)}]}}
    write(tmp_path, ".claude/plugins/installed_plugins.json", json.dumps(found))
    launched = launch("claude", tmp_path)
    assert launched.files == ()
    assert launched.settings.left_out == (f"plugin {name}: it is not installed",)

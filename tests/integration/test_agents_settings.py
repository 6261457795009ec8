"""Copies of the user's own settings: what goes along with an agent, and what never does."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.agents.contract import AgentLaunch, LaunchRequest
from engine.agents.registry import adapter_named, check_startable
from engine.agents.settings.copied import RUN_CODE
from engine.errors import AgentError
from engine.plan.model import AgentChoice, SettingsWish

GITHUB = "ghp_" + "a1B2c3D4e5" * 4
PROVIDER = """
model_provider = "corp"
[model_providers.corp]
name = "corp"
base_url = "http://corp.example/v1"
"""
RENEWAL = "only-once"


def launch(agent: str, home: Path, **more: Any) -> AgentLaunch:
    wish = more.pop("user_settings", SettingsWish.ALL)
    about = {"options": {"args": more.pop("args", "")}, "user_code": more.pop("user_code", False)}
    request = LaunchRequest(
        choice=AgentChoice(name=agent, adapter=agent, user_settings=wish, **about),
        prompt="Fix it.",
        workspace="/work",
        home="/home/w",
        user_home=str(home),
        is_confined=True,
        environment={"HOME": str(home), "PATH": "/usr/bin:/bin", **more.pop("environment", {})},
        **more,
    )
    return adapter_named(agent).launch(request)


def written(launched: AgentLaunch, path: str) -> str:
    return next(one.data.decode() for one in launched.files if one.path == path)


def write(home: Path, name: str, text: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def with_server(home: Path, **server: Any) -> None:
    write(home, ".claude.json", json.dumps({"mcpServers": {"one": server}}))


def test_copies_cannot_be_written_and_programs_stay_programs(tmp_path: Path) -> None:
    write(tmp_path, ".claude/CLAUDE.md", "Be kind.\n")
    write(tmp_path, ".claude/skills/brew/boil.sh", "#!/bin/sh\n")
    (tmp_path / ".claude/skills/brew/boil.sh").chmod(0o755)
    modes = {file.path: file.mode for file in launch("claude", tmp_path).files}
    assert modes == {".claude/CLAUDE.md": 0o400, ".claude/skills/brew/boil.sh": 0o500}


def test_a_key_in_a_text_stays_behind(tmp_path: Path) -> None:
    write(tmp_path, ".claude/CLAUDE.md", f"Log in with {GITHUB}.\n")
    write(tmp_path, ".claude/skills/brew/SKILL.md", "Boil.\n")
    write(tmp_path, ".claude/skills/brew/.env", "A=b\n")
    launched = launch("claude", tmp_path)
    assert GITHUB not in written(launched, ".claude/CLAUDE.md")
    assert "~/.claude/CLAUDE.md: a key in it was removed" in launched.settings.left_out
    assert not [file for file in launched.files if file.path.endswith(".env")]


def test_a_skill_that_is_a_link_is_followed_and_no_link_below_it(tmp_path: Path) -> None:
    write(tmp_path, "dotfiles/brew/SKILL.md", "Boil.\n")
    write(tmp_path, "private.txt", "mine\n")
    (tmp_path / "dotfiles/brew/more.txt").symlink_to(tmp_path / "private.txt")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/brew").symlink_to(tmp_path / "dotfiles/brew")
    names = [file.path for file in launch("claude", tmp_path).files]
    assert names == [".claude/skills/brew/SKILL.md"]


def test_an_import_leads_out_of_the_folder_for_nobody(tmp_path: Path) -> None:
    write(tmp_path, ".ssh/id", "mine\n")
    write(tmp_path, ".claude/CLAUDE.md", "@../.ssh/id and @nobody\n")
    assert [file.path for file in launch("claude", tmp_path).files] == [".claude/CLAUDE.md"]


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": "no-such-program"}, "does not exist"),
        ({"command": "sh", "args": ["--token", GITHUB]}, "contains a key"),
        ({"url": "http://x", "headers": {"Authorization": "Bearer abc"}}, "Authorization"),
        ({"url": "http://x", "headers": {"X": "Bearer ${OTHER}"}}, "header X"),
        ({"command": "sh", "args": ["{home}/server.sh"]}, "is not visible in the sandbox"),
        ({"command": "{home}/server.sh"}, "is not visible in the sandbox"),
    ],
)
def test_a_server_that_cannot_go_along_stays_behind(
    server: dict[str, Any], why: str, tmp_path: Path
) -> None:
    write(tmp_path, "server.sh", "#!/bin/sh\n")
    (tmp_path / "server.sh").chmod(0o755)
    with_server(tmp_path, **json.loads(json.dumps(server).replace("{home}", str(tmp_path))))
    launched = launch("claude", tmp_path)
    assert launched.files == ()
    assert why in launched.settings.left_out[0]


def test_a_server_goes_along_with_what_is_named(tmp_path: Path) -> None:
    write(tmp_path, "tools/server.sh", "")
    server = {"command": "sh", "args": [str(tmp_path / "tools/server.sh")], "env": {"A_1": "x"}}
    with_server(tmp_path, **server, headers={"Authorization": "Bearer ${A_TOKEN}"})
    launched = launch("claude", tmp_path, passed=("A_*",), opened=("~/tools:ro",))
    kept = json.loads(written(launched, ".claude.json"))["mcpServers"]["one"]
    assert kept["env"] == {"A_1": "x"}
    assert launched.settings.taken == ("MCP server one",)


def test_servers_of_this_repository_go_along_and_of_no_other(tmp_path: Path) -> None:
    projects = {
        path: {"mcpServers": {path.strip("/"): {"command": "sh"}}} for path in ("/here", "/there")
    }
    write(tmp_path, ".claude.json", json.dumps({"projects": projects}))
    kept = json.loads(written(launch("claude", tmp_path, folder="/here"), ".claude.json"))
    assert kept == {"mcpServers": {"here": {"command": "sh"}}}


def test_settings_of_claude_that_run_code_stay_behind(tmp_path: Path) -> None:
    settings = {
        "model": "opus",
        "hooks": {"Stop": []},
        "apiKeyHelper": "./key.sh",
        "permissions": {"allow": ["Bash"], "deny": ["Read(.env)"]},
        "env": {"ANTHROPIC_BASE_URL": "http://gate", "GH_TOKEN": "x"},
    }
    settings["hooks"] = {"Stop": [{"hooks": []}]}
    write(tmp_path, ".claude/settings.json", f"// mine\n{json.dumps(settings)}")
    launched = launch("claude", tmp_path)
    assert json.loads(written(launched, ".claude/settings.json")) == {
        "model": "opus",
        "permissions": {"deny": ["Read(.env)"]},
    }
    assert launched.env["ANTHROPIC_BASE_URL"] == "http://gate"
    assert "GH_TOKEN" not in launched.env
    left = " ".join(launched.settings.left_out)
    assert all(word in left for word in ("hooks of", "apiKeyHelper of", "GH_TOKEN of"))


def test_settings_that_nobody_can_read_start_nothing(tmp_path: Path) -> None:
    write(tmp_path, ".claude/settings.json", "{")
    with pytest.raises(AgentError, match="cannot be read"):
        launch("claude", tmp_path)
    write(tmp_path, ".codex/config.toml", "model_provider = ")
    with pytest.raises(AgentError, match="cannot be read"):
        launch("codex", tmp_path)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('env_key = "CORP_KEY"', "needs its key in CORP_KEY, which is not set"),
        ('experimental_bearer_token = "x"', "has its key in experimental_bearer_token"),
        ('http_headers = {"Authorization" = "Bearer x"}', "has its key in Authorization"),
        ('auth = {command = "key"}', "has its key in auth"),
    ],
)
@pytest.mark.parametrize("wish", list(SettingsWish))
def test_a_provider_that_no_worker_can_use_is_never_replaced(
    wish: SettingsWish, more: str, why: str, tmp_path: Path
) -> None:
    write(tmp_path, ".codex/config.toml", PROVIDER + more)
    with pytest.raises(AgentError, match=why):
        launch("codex", tmp_path, user_settings=wish)


def test_a_provider_that_is_not_described_is_never_replaced(tmp_path: Path) -> None:
    write(tmp_path, ".codex/config.toml", 'model_provider = "corp"')
    with pytest.raises(AgentError, match="do not describe it"):
        launch("codex", tmp_path)


def test_a_key_for_another_host_stays_behind(tmp_path: Path) -> None:
    write(tmp_path, ".codex/config.toml", PROVIDER + 'env_key = "CORP_KEY"\n')
    tokens = {"access_token": "a", "refresh_token": RENEWAL}
    write(tmp_path, ".codex/auth.json", json.dumps({"tokens": tokens}))
    environment = {"CORP_KEY": "c", "OPENAI_API_KEY": "o", "OTHER_KEY": "x"}
    launched = launch("codex", tmp_path, environment=environment)
    assert launched.env == {"CODEX_HOME": "/home/w/.codex", "CORP_KEY": "c"}
    assert [file.path for file in launched.files] == [".codex/config.toml"]
    chosen = launch("codex", tmp_path, environment=environment, args="-c model_provider=openai")
    assert json.loads(written(chosen, ".codex/auth.json"))["OPENAI_API_KEY"] == "o"
    assert "CORP_KEY" not in chosen.env


def test_what_is_written_for_codex_is_what_the_user_wrote(tmp_path: Path) -> None:
    told = """
model = "m"
model_reasoning_effort = "high"
profile = "deep"
sandbox_mode = "danger-full-access"
notify = ["x"]
[profiles.deep]
model = "deeper"
[mcp_servers.one]
command = "sh"
args = ["-c", "exit \\"0\\""]
startup_timeout_sec = 2.5
enabled = true
env = {B = "x", A = "y"}
"""
    write(tmp_path, ".codex/config.toml", told)
    launched = launch("codex", tmp_path, passed=("A",))
    server = {"command": "sh", "args": ["-c", 'exit "0"'], "startup_timeout_sec": 2.5}
    assert tomllib.loads(written(launched, ".codex/config.toml")) == {
        "model": "deeper",
        "model_reasoning_effort": "high",
        "mcp_servers": {"one": {**server, "enabled": True, "env": {"A": "y"}}},
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
    }


@pytest.mark.anyio
async def test_what_would_go_along_is_found(tmp_path: Path) -> None:
    write(tmp_path, ".codex/AGENTS.md", "Be kind.\n")
    write(tmp_path, ".codex/config.toml", PROVIDER + 'env_key = "CORP_KEY"\n')
    environment = {"HOME": str(tmp_path), "PATH": "", "CORP_KEY": "c"}
    found = await adapter_named("codex").find(environment)
    assert "instructions of ~/.codex/AGENTS.md" in found.settings.taken
    del environment["CORP_KEY"]
    found = await adapter_named("codex").find(environment)
    assert "CORP_KEY" in found.settings.left_out[0]


def test_a_program_in_the_home_folder_itself_does_not_open_that_folder(tmp_path: Path) -> None:
    write(tmp_path, "claude", "#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    launched = launch("claude", tmp_path, environment={"PATH": str(tmp_path)})
    assert launched.reads == (str(tmp_path / "claude"),)


def check(agent: str, home: Path, **environment: str) -> None:
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("claude", "codex"):
        (programs / name).touch(mode=0o755)
    request = LaunchRequest(
        choice=AgentChoice(name="mine", adapter=agent),
        prompt="",
        workspace="/",
        home="/",
        user_home=str(home),
        is_confined=True,
        environment={"HOME": str(home), "PATH": str(programs), **environment},
    )
    check_startable(request)


@pytest.mark.parametrize(
    ("agent", "variable", "way"),
    [("claude", "ANTHROPIC_API_KEY", "/login"), ("codex", "OPENAI_API_KEY", "codex login")],
)
def test_an_agent_without_a_login_is_refused(
    agent: str, variable: str, way: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match="'mine' is not logged in") as caught:
        check(agent, tmp_path)
    assert way in caught.value.hint
    check(agent, tmp_path, **{variable: "x"})


def test_a_login_that_has_ended_is_no_reason_to_refuse(tmp_path: Path) -> None:
    write(tmp_path, ".claude/.credentials.json", "{}")  # it is renewed, or asked for
    check("claude", tmp_path)


def test_a_provider_of_the_user_s_own_needs_no_other_login(tmp_path: Path) -> None:
    write(tmp_path, ".codex/config.toml", PROVIDER)
    check("codex", tmp_path)


def test_an_agent_that_is_not_installed_is_refused_with_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="no program gemini") as caught:
        check("gemini", tmp_path)
    assert "npm install -g @google/gemini-cli" in caught.value.hint
    with pytest.raises(AgentError, match="no program claude-agent-acp"):
        check("claude-acp", tmp_path)


def with_opencode(home: Path, **settings: Any) -> None:
    write(home, ".config/opencode/opencode.json", json.dumps(settings))


def settings_of_opencode(launched: AgentLaunch) -> Any:
    return json.loads(written(launched, ".config/opencode/opencode.json"))


def test_of_opencode_s_providers_the_one_that_is_asked_goes_along(tmp_path: Path) -> None:
    corp = {"options": {"baseURL": "http://corp.example", "apiKey": "{env:CORP_KEY}"}}
    other = {"options": {"apiKey": "{env:OTHER_KEY}"}}
    with_opencode(tmp_path, model="corp/big", provider={"corp": corp, "other": other})
    keys = {"CORP_KEY": "c", "OTHER_KEY": "o"}
    launched = launch("opencode", tmp_path, environment=keys)
    assert settings_of_opencode(launched)["provider"] == {"corp": corp}
    assert launched.env["CORP_KEY"] == "c"
    assert "OTHER_KEY" not in launched.env
    with pytest.raises(AgentError, match="CORP_KEY, which is not set"):
        launch("opencode", tmp_path)


@pytest.mark.parametrize("wish", list(SettingsWish))
def test_a_key_in_opencode_s_provider_starts_nothing(wish: SettingsWish, tmp_path: Path) -> None:
    with_opencode(tmp_path, model="corp/big", provider={"corp": {"options": {"apiKey": "x"}}})
    with pytest.raises(AgentError, match="has its key in apiKey"):
        launch("opencode", tmp_path, user_settings=wish)


def test_what_a_table_writes_stands_beside_what_the_user_wrote(tmp_path: Path) -> None:
    with_opencode(tmp_path, agent={"x": {}}, plugin=["p"], autoupdate=True)
    write(tmp_path, ".config/opencode/AGENTS.md", "Be kind.\n")
    launched = launch("opencode", tmp_path, persona_prompt="You are terse.")
    kept = settings_of_opencode(launched)
    assert (kept["agent"], kept["autoupdate"]) == ({"x": {}}, False)
    assert written(launched, ".config/opencode/AGENTS.md") == "Be kind.\n"
    assert written(launched, ".config/opencode/plait.md") == "You are terse."
    left = f"plugin of ~/.config/opencode/opencode.json: {RUN_CODE}"
    assert left in launched.settings.left_out
    write(tmp_path, ".gemini/GEMINI.md", "Be kind.\n")
    both = written(launch("gemini", tmp_path, persona_prompt="You are terse."), ".gemini/GEMINI.md")
    assert both == "Be kind.\n\nYou are terse.\n"


def test_variables_in_a_file_go_along_by_the_names_that_the_client_knows(tmp_path: Path) -> None:
    write(tmp_path, ".gemini/.env", "export GEMINI_API_KEY='k'\nGH_TOKEN=x\nGOOGLE_API_KEY=file\n")
    env = launch("gemini", tmp_path, environment={"GOOGLE_API_KEY": "set"}).env
    assert (env["GEMINI_API_KEY"], env["GOOGLE_API_KEY"]) == ("k", "set")
    assert "GH_TOKEN" not in env


@pytest.mark.parametrize(
    ("kind", "kept"), [("vertex-ai", "vertex-ai"), ("oauth-personal", "gemini-api-key")]
)
def test_a_way_to_log_in_that_no_worker_is_given_is_not_copied(
    kind: str, kept: str, tmp_path: Path
) -> None:
    settings = {"security": {"auth": {"selectedType": kind}}}
    write(tmp_path, ".gemini/settings.json", json.dumps(settings))
    found = json.loads(written(launch("gemini", tmp_path), ".gemini/settings.json"))
    assert found["security"]["auth"]["selectedType"] == kept
    assert found["telemetry"] == {"enabled": False}


def with_pi(home: Path, key: str, **settings: Any) -> None:
    corp = {"baseUrl": "http://corp.example/v1", "apiKey": key}
    other = {"baseUrl": "http://other.example/v1", "apiKey": "of-another-host"}
    write(home, ".pi/agent/models.json", json.dumps({"providers": {"corp": corp, "other": other}}))
    write(home, ".pi/agent/settings.json", json.dumps(settings))


def test_pi_is_given_the_provider_that_it_asks_with_its_key_by_name(tmp_path: Path) -> None:
    with_pi(tmp_path, "CORP_KEY", defaultProvider="corp")
    launched = launch("pi", tmp_path, environment={"CORP_KEY": "c", "OTHER": "o"})
    kept = json.loads(written(launched, ".pi/agent/models.json"))["providers"]
    assert list(kept) == ["corp"]
    assert launched.env["CORP_KEY"] == "c"
    with pytest.raises(AgentError, match="needs its key in CORP_KEY, which is not set"):
        launch("pi", tmp_path)


def test_pi_is_not_started_by_a_key_in_its_file(tmp_path: Path) -> None:
    with_pi(tmp_path, "sk-written-there")
    with pytest.raises(AgentError, match="has its key in apiKey"):
        launch("pi", tmp_path, args="--provider corp")


def test_of_pi_s_providers_none_with_a_key_goes_along_unasked(tmp_path: Path) -> None:
    with_pi(tmp_path, "sk-written-there")
    assert not [one for one in launch("pi", tmp_path).files if one.path.endswith("models.json")]


def test_cline_s_key_goes_along_where_a_variable_of_its_value_does(tmp_path: Path) -> None:
    own = {"settings": {"provider": "corp", "apiKey": "a-key", "baseUrl": "http://corp.example"}}
    told = {"version": 1, "lastUsedProvider": "corp", "providers": {"corp": own}}
    write(tmp_path, ".cline/data/settings/providers.json", json.dumps(told))
    environment = {"CORP_KEY": "a-key"}
    for passed in ((), ("OTHER_KEY",)):
        with pytest.raises(AgentError, match="has its key in apiKey") as caught:
            launch("cline", tmp_path, environment=environment, passed=passed)
        assert "sandbox.env" in caught.value.hint
    launched = launch("cline", tmp_path, environment=environment, passed=("CORP_*",))
    assert json.loads(written(launched, ".cline/data/settings/providers.json")) == told


def test_rules_of_cline_go_along_from_both_their_folders(tmp_path: Path) -> None:
    write(tmp_path, ".cline/rules/one.md", "One.\n")
    write(tmp_path, "Documents/Cline/Rules/two.md", "Two.\n")
    wish = SettingsWish.INSTRUCTIONS
    found = {file.path for file in launch("cline", tmp_path, user_settings=wish).files}
    assert {".cline/rules/one.md", "Documents/Cline/Rules/two.md"} <= found
    assert launch("cline", tmp_path, user_settings=SettingsWish.NONE).files == ()


def test_mcp_servers_of_copilot_have_a_file_of_their_own(tmp_path: Path) -> None:
    told = {"mcpServers": {"one": {"command": "sh", "tools": ["*"]}}}
    write(tmp_path, ".copilot/mcp-config.json", json.dumps(told))
    launched = launch("copilot", tmp_path)
    assert json.loads(written(launched, ".copilot/mcp-config.json")) == told
    assert launched.settings.taken == ("MCP server one",)


def test_aider_gets_whom_to_ask_and_what_to_read_and_no_command(tmp_path: Path) -> None:
    told = {
        "model": "openai/big",
        "openai-api-base": "http://corp.example/v1",
        "read": ["~/rules/mine.md", "/etc/hostname"],
        "test-cmd": "make",
        "map-tokens": 1024,
    }
    write(tmp_path, ".aider.conf.yml", json.dumps(told))
    write(tmp_path, "rules/mine.md", "Be kind.\n")
    launched = launch("aider", tmp_path)
    assert yaml.safe_load(written(launched, ".aider.conf.yml")) == {
        "model": "openai/big",
        "openai-api-base": "http://corp.example/v1",
        "map-tokens": 1024,
        "read": ["/home/w/rules/mine.md"],
    }
    assert written(launched, "rules/mine.md") == "Be kind.\n"
    assert "/home/w/.aider.conf.yml" in launched.argv
    assert f"test-cmd of ~/.aider.conf.yml: {RUN_CODE}" in launched.settings.left_out
    bare = launch("aider", tmp_path, user_settings=SettingsWish.NONE)
    assert yaml.safe_load(written(bare, ".aider.conf.yml")) == {
        "model": "openai/big",
        "openai-api-base": "http://corp.example/v1",
    }


def test_aider_is_not_started_by_a_key_in_its_file(tmp_path: Path) -> None:
    write(tmp_path, ".aider.conf.yml", "openai-api-key: of-the-file\n")
    for known in ({}, {"OPENAI_API_KEY": "of-another-host"}):
        with pytest.raises(AgentError, match="has its key in openai-api-key") as caught:
            launch("aider", tmp_path, environment=known)
        assert "OPENAI_API_KEY" in caught.value.hint
    launched = launch("aider", tmp_path, environment={"OPENAI_API_KEY": "of-the-file"})
    assert "of-the-file" not in written(launched, ".aider.conf.yml")


def test_mini_takes_its_model_and_its_key_from_its_file_or_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="has no model"):
        launch("mini", tmp_path)
    told = "MSWEA_MODEL_NAME='openai/big'\nOPENAI_API_KEY='k'\nGH_TOKEN='x'\n"
    write(tmp_path, ".config/mini-swe-agent/.env", told)
    env = launch("mini", tmp_path).env
    assert (env["MSWEA_MODEL_NAME"], env["OPENAI_API_KEY"]) == ("openai/big", "k")
    assert "GH_TOKEN" not in env

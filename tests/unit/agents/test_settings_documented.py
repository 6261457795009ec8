"""The page says what of the user's settings reaches each client, and exactly that reaches it."""

import json
import re
from pathlib import Path

import pytest

from engine.plan.model import SettingsWish
from tests.integration.test_agents_settings import launch, write
from tests.unit.agents.test_agents_documented import rows

CLIENTS = sorted(rows("client"))
FOLDERS = {
    **{name: f".{name}" for name in ("claude", "codex", "gemini", "qwen", "copilot", "cline")},
    "opencode": ".config/opencode",
    "pi": ".pi/agent",
}
MINIMUM = {
    "mini": {".config/mini-swe-agent/.env": "MSWEA_MODEL_NAME=x\n"},
    "aider": {".aider.conf.yml": '{"read": ["~/rules/mine.md"]}'},
}
"""Without these a client is not started, or reads nothing."""
SERVERS = {
    "claude": (".claude.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "qwen": (".qwen/settings.json", "mcpServers"),
    "copilot": (".copilot/mcp-config.json", "mcpServers"),
    "cline": (".cline/data/settings/cline_mcp_settings.json", "mcpServers"),
    "opencode": (".config/opencode/opencode.json", "mcp"),
}


def named(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def folders_in(cell: str) -> set[str]:
    """Names of folders; those with a dot are files, and the others are keys of one."""
    keys = {"mcpServers", "mcp_servers", "mcp", "notify", "lint-cmd", "test-cmd", "read"}
    return {name for name in named(cell) - keys if "." not in name and "~" not in name}


INSTRUCTIONS, ALL, CODE = range(3)
EVERY_FOLDER = {name for row in rows("client").values() for name in folders_in(row[ALL])}
EVERY_CODE = {name for row in rows("client").values() for name in folders_in(row[CODE])}


def arrived(client: str, home: Path, wish: SettingsWish, *, code: bool = False) -> set[str]:
    launched = launch(client, home, user_settings=wish, user_code=code)
    return {file.path for file in launched.files if b"badger" in file.data}


@pytest.mark.parametrize("client", CLIENTS)
def test_exactly_the_folders_that_are_named_go_along(client: str, tmp_path: Path) -> None:
    family = client.removesuffix("-acp")
    row, folder = rows("client")[client], FOLDERS.get(family, "")
    for name, text in MINIMUM.get(family, {}).items():
        write(tmp_path, name, text)
    words = {Path(name).name for name in named(row[INSTRUCTIONS])}
    for name in (EVERY_FOLDER | EVERY_CODE) - words if folder else ():
        write(tmp_path, f"{folder}/{name}/one/SKILL.md", "Greet the badger.\n")
    told = {f"{folder}/{name}/one/SKILL.md" for name in folders_in(row[ALL])}
    code = {f"{folder}/{name}/one/SKILL.md" for name in folders_in(row[CODE])}
    assert arrived(client, tmp_path, SettingsWish.ALL) == told
    assert arrived(client, tmp_path, SettingsWish.ALL, code=True) == told | code
    assert arrived(client, tmp_path, SettingsWish.INSTRUCTIONS, code=True) == set()
    assert arrived(client, tmp_path, SettingsWish.NONE, code=True) == set()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_instructions_that_are_named_go_along(client: str, tmp_path: Path) -> None:
    family = client.removesuffix("-acp")
    for name, text in MINIMUM.get(family, {}).items():
        write(tmp_path, name, text)
    found = {name for name in named(rows("client")[client][INSTRUCTIONS]) if name.startswith("~")}
    for name in found - {"~/.aider.conf.yml"}:
        path = name.removeprefix("~/")
        path = path if path.endswith(".md") else f"{path}/mine.md"
        write(tmp_path, path, "Greet the badger.\n")
        (into,) = arrived(client, tmp_path, SettingsWish.INSTRUCTIONS)
        assert f"~/{into}" in found or into == path
        assert arrived(client, tmp_path, SettingsWish.NONE) == set()
        (tmp_path / path).unlink()
    if family == "aider":
        write(tmp_path, "rules/mine.md", "Greet the badger.\n")
        assert arrived(client, tmp_path, SettingsWish.INSTRUCTIONS) == {"rules/mine.md"}
        assert arrived(client, tmp_path, SettingsWish.NONE) == set()
    assert bool(found) is (family != "mini")


@pytest.mark.parametrize("client", CLIENTS)
def test_mcp_servers_go_along_from_the_file_that_is_named(client: str, tmp_path: Path) -> None:
    family = client.removesuffix("-acp")
    cell = rows("client")[client][ALL]
    if family not in SERVERS:
        assert "mcp" not in cell.lower()
        return
    name, key = SERVERS[family]
    assert Path(name).name in named(cell)
    text = json.dumps({key: {"weather": {"command": "sh"}}})
    if name.endswith("toml"):
        text = f'[{key}.weather]\ncommand = "sh"\n'
    write(tmp_path, name, text)
    for wish in SettingsWish:
        taken = launch(client, tmp_path, user_settings=wish).settings.taken
        assert ("MCP server weather" in taken) is (wish is SettingsWish.ALL)

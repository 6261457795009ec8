"""Files of the user's settings that are no settings: nothing hangs, nobody else is asked."""

import json
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from engine.agents.settings.files import MOST_BYTES
from engine.errors import AgentError
from tests.integration.test_agents_settings import check, launch, write


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def a_circle(path: Path) -> None:
    path.symlink_to(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def an_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD = [a_pipe, a_gigabyte, a_circle, a_folder, an_endless_device]
WHOM_THEY_ASK = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/.env"),
    ("qwen", ".qwen/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("copilot", ".copilot/settings.json"),
    ("pi", ".pi/agent/models.json"),
    ("cline", ".cline/data/settings/providers.json"),
    ("aider", ".aider.conf.yml"),
    ("mini", ".config/mini-swe-agent/.env"),
]


def put(home: Path, name: str, odd: Callable[[Path], None]) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    odd(path)


@pytest.mark.parametrize(("agent", "name"), WHOM_THEY_ASK)
def test_settings_that_cannot_be_read_start_nothing(agent: str, name: str, tmp_path: Path) -> None:
    for odd in ODD:
        home = tmp_path / odd.__name__
        put(home, name, odd)
        with pytest.raises(AgentError, match="cannot be read") as caught:
            launch(agent, home)
        assert "does not fall back" in caught.value.hint


@pytest.mark.parametrize("odd", ODD)
def test_instructions_and_skills_that_cannot_be_read_stay_behind(
    odd: Callable[[Path], None], tmp_path: Path
) -> None:
    write(tmp_path, ".claude/skills/brew/SKILL.md", "Boil.\n")
    put(tmp_path, ".claude/CLAUDE.md", odd)
    if odd not in {a_circle, an_endless_device}:  # a link below a skill is not followed
        put(tmp_path, ".claude/skills/brew/odd.md", odd)
    launched = launch("claude", tmp_path)
    assert [file.path for file in launched.files] == [".claude/skills/brew/SKILL.md"]
    left = "; ".join(launched.settings.left_out)
    assert "~/.claude/CLAUDE.md cannot be read" in left
    if odd in {a_pipe, a_gigabyte}:
        assert "~/.claude/skills/brew/odd.md" in left


@pytest.mark.parametrize("odd", ODD)
def test_a_login_that_cannot_be_read_is_none(odd: Callable[[Path], None], tmp_path: Path) -> None:
    put(tmp_path, ".claude/.credentials.json", odd)
    with pytest.raises(AgentError, match="is not logged in"):
        check("claude", tmp_path)
    put(tmp_path, ".codex/auth.json", odd)
    with pytest.raises(AgentError, match="is not logged in"):
        check("codex", tmp_path)


def test_a_link_out_of_home_is_followed_and_one_to_a_key_is_not(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    write(elsewhere, "CLAUDE.md", "Be kind.\n")
    write(elsewhere, "id_ed25519", "mine\n")
    write(elsewhere, "credentials.json", "{}\n")
    (home / ".claude/rules").mkdir(parents=True)
    (home / ".claude/CLAUDE.md").symlink_to(elsewhere / "CLAUDE.md")
    (home / ".claude/rules/notes.md").symlink_to(elsewhere / "id_ed25519")
    (home / ".claude/rules/more.md").symlink_to(elsewhere / "credentials.json")
    (home / ".claude/rules/gone.md").symlink_to(elsewhere / "gone")
    files = {file.path: file.data for file in launch("claude", home).files}
    assert files == {".claude/CLAUDE.md": b"Be kind.\n"}


def test_what_is_just_small_enough_goes_along(tmp_path: Path) -> None:
    put(tmp_path, ".claude/rules/one", lambda path: path.write_bytes(bytes(MOST_BYTES - 1)))
    assert [file.path for file in launch("claude", tmp_path).files] == [".claude/rules/one"]


SHAPES = [7, "x", None, True, [{}], {"x": []}, {"x": {"y": 7}}, [["x"]]]


KEYS = (
    *("env", "mcpServers", "mcp", "provider", "providers", "model", "hooks", "permissions"),
    *("security", "lastUsedProvider", "defaultProvider", "projects", "plugin", "read"),
    *("model_providers", "model_provider", "mcp_servers", "profile", "profiles", "notify"),
)


@pytest.mark.parametrize(("agent", "name"), WHOM_THEY_ASK)
def test_settings_of_any_shape_are_taken_or_refused(agent: str, name: str, tmp_path: Path) -> None:
    for key, shape in product(KEYS, SHAPES):
        text = json.dumps({key: shape})
        if name.endswith(".toml"):
            text = "" if shape is None else f"{key} = {json.dumps(shape).replace(':', ' =')}\n"
        write(tmp_path, name, text if not name.endswith(".env") else f"{key}={json.dumps(shape)}\n")
        if agent == "claude":
            write(tmp_path, ".claude.json", text)
        if agent == "mini":
            write(tmp_path, name, f"MSWEA_MODEL_NAME=x\n{key}={json.dumps(shape)}\n")
        try:
            launch(agent, tmp_path)
        except AgentError as error:
            assert error.hint  # noqa: PT017  either is well, anything else is not


NESTED = [(agent, name) for agent, name in WHOM_THEY_ASK if not name.endswith(".env")]


@pytest.mark.parametrize(("agent", "name"), NESTED)
def test_settings_that_are_nested_without_end_start_nothing(
    agent: str, name: str, tmp_path: Path
) -> None:
    write(tmp_path, name, ("x = " if name.endswith("toml") else "") + "[" * 2_000)
    with pytest.raises(AgentError, match="cannot be read"):
        launch(agent, tmp_path)


@pytest.mark.parametrize(("agent", "name"), WHOM_THEY_ASK)
def test_settings_that_are_no_text_raise_nothing_else(
    agent: str, name: str, tmp_path: Path
) -> None:
    write(tmp_path, name, "")
    (tmp_path / name).write_bytes(b"\xff\xfe\x00{\xed\xa0\x80")
    try:
        launch(agent, tmp_path)
    except AgentError as error:
        assert error.hint  # noqa: PT017  either is well, anything else is not

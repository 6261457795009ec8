"""MCP servers that a manifest names for an agent over ACP reach its session."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.agents.contract import AgentLaunch, LaunchRequest
from engine.agents.registry import adapter_named
from engine.errors import AgentError
from engine.plan.model import AgentChoice, SettingsWish
from tests.integration.test_agents_settings import GITHUB

WEATHER = {"command": "sh", "args": ["-c", "true"], "env": {"PASSED": "${SUN}", "UNNAMED": "x"}}


def request_of(home: Path, **more: Any) -> LaunchRequest:
    choice = AgentChoice(
        name="mine", adapter="acp", argv=("my-agent",), options={"mcp": "mcp.json"}, **more
    )
    return LaunchRequest(
        choice=choice,
        prompt="Fix it.",
        workspace="/work",
        home="/home/w",
        folder=str(home),
        user_home=str(home),
        is_confined=True,
        environment={"PATH": "/usr/bin:/bin", "SUN": "shine", "TOKEN": "t"},
        passed=("PASSED", "SUN", "TOKEN"),
    )


def launched(request: LaunchRequest) -> AgentLaunch:
    return adapter_named("acp").launch(request)


def told(request: LaunchRequest) -> Any:
    """The servers in `session/new`, as the agent reads it."""
    # The engine that reads the stream knows neither the files nor the environment of the launch.
    bare = LaunchRequest(choice=request.choice, prompt="", workspace="/work", home="/home/w")
    stream = adapter_named("acp").parser(bare)
    stream.feed("in", launched(request).first_input)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}
    stream.feed("out", json.dumps(answer).encode() + b"\n")
    (line,) = stream.owed
    asked = json.loads(line)
    assert asked["method"] == "session/new"
    return asked["params"]["mcpServers"]


def write(home: Path, **servers: Any) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_a_session_is_told_of_the_servers_that_its_option_names(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer ${TOKEN}"}
    write(tmp_path, weather=WEATHER, far={"url": "http://far.example", "headers": headers})
    weather, far = told(request_of(tmp_path))
    env = [{"name": "PASSED", "value": "shine"}]
    args = ["-c", "true"]
    path = "/usr/bin:/bin"
    program = shutil.which("sh", path=path)
    assert weather == {"name": "weather", "command": program, "args": args, "env": env}
    shown = [{"name": "Authorization", "value": "Bearer t"}]
    assert far == {"type": "http", "name": "far", "url": "http://far.example", "headers": shown}
    listed = launched(request_of(tmp_path)).settings
    assert listed.taken == ("MCP server weather", "MCP server far")
    assert listed.left_out == ("UNNAMED of MCP server weather: not named in `sandbox.env`",)


def test_a_server_with_a_key_is_not_told(tmp_path: Path) -> None:
    write(tmp_path, one={"command": "sh", "args": ["--token", GITHUB]})
    assert told(request_of(tmp_path)) == []
    (left,) = launched(request_of(tmp_path)).settings.left_out
    assert "contains a key" in left


@pytest.mark.parametrize("wish", [SettingsWish.INSTRUCTIONS, SettingsWish.NONE])
def test_no_server_is_told_where_the_user_wants_none(wish: SettingsWish, tmp_path: Path) -> None:
    write(tmp_path, weather=WEATHER)
    assert told(request_of(tmp_path, user_settings=wish)) == []


@pytest.mark.parametrize("text", [None, "[", "[]", "{}", '{"mcpServers": 7}'])
def test_a_file_of_servers_that_is_none_starts_nothing(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "mcp.json").write_text(text)
    with pytest.raises(AgentError, match=r"the MCP servers of mcp.json cannot be read"):
        launched(request_of(tmp_path))

"""Providers of the user's own: held against what answers at their address, before a start."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.agents.base_urls import check_base_urls
from engine.agents.contract import AgentLaunch, LaunchRequest
from engine.agents.registry import adapter_named
from engine.errors import AgentError
from engine.plan.model import AgentChoice
from tests.integration.test_agents_settings import write

CODEX = 'model_provider = "corp"\n[model_providers.corp]\nname = "corp"\nbase_url = "{url}"\n'
PROVIDER_OF_PI = json.dumps({"providers": {"corp": {"baseUrl": "{url}", "api": "x"}}})
OPENCODE = json.dumps({"model": "corp/m", "provider": {"corp": {"options": {"baseURL": "{url}"}}}})
CLINE = {"lastUsedProvider": "corp", "providers": {"corp": {"settings": {"baseUrl": "{url}"}}}}
IN_FILES = {
    "claude": (".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "{url}"}}'),
    "claude-acp": (".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "{url}"}}'),
    "codex": (".codex/config.toml", CODEX),
    "codex-acp": (".codex/config.toml", CODEX),
    "gemini": (".gemini/.env", "GOOGLE_GEMINI_BASE_URL={url}\n"),
    "gemini-acp": (".gemini/.env", "GOOGLE_GEMINI_BASE_URL={url}\n"),
    "qwen": (".qwen/.env", "OPENAI_BASE_URL={url}\n"),
    "qwen-acp": (".qwen/.env", "OPENAI_BASE_URL={url}\n"),
    "opencode": (".config/opencode/opencode.json", OPENCODE),
    "opencode-acp": (".config/opencode/opencode.json", OPENCODE),
    "pi": (".pi/agent/models.json", PROVIDER_OF_PI),
    "cline": (".cline/data/settings/providers.json", json.dumps(CLINE)),
    "aider": (".aider.conf.yml", "model: openai/m\nopenai-api-base: {url}\n"),
    "mini": (
        ".config/mini-swe-agent/.env",
        "MSWEA_MODEL_NAME=openai/m\nOPENAI_API_BASE={url}\n",
    ),
}
"""The file in which the user of each client names a provider; copilot has none."""
IN_VARIABLES = {
    "claude": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
    "copilot": "COPILOT_PROVIDER_BASE_URL",
    "copilot-acp": "COPILOT_PROVIDER_BASE_URL",
    "qwen": "OPENAI_BASE_URL",
    "aider": "OPENAI_API_BASE",
    "mini": "OPENAI_API_BASE",
}
Launched = tuple[LaunchRequest, AgentLaunch]


def launched(agent: str, home: Path, model: str = "", **more: Any) -> Launched:
    given = {"HOME": str(home), "PATH": "/usr/bin:/bin", **more.pop("environment", {})}
    choice = AgentChoice(name="mine", adapter=agent, model=model or None, **more)
    request = LaunchRequest(
        choice=choice,
        prompt="",
        workspace="/",
        home="/home/w",
        user_home=str(home),
        is_confined=True,
        environment=given,
    )
    return request, adapter_named(agent).launch(request)


def check(*launches: Launched) -> None:
    anyio.run(check_base_urls, launches)


@pytest.fixture
def closed() -> Iterator[int]:
    """A port that is taken, so that nobody else listens there, and refuses connections."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def open_socket() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening


def named_in_file(agent: str, home: Path, port: int) -> Launched:
    name, text = IN_FILES[agent]
    write(home, name, text.replace("{url}", f"http://127.0.0.1:{port}/v1"))
    args = {"args": "--provider corp"} if agent == "pi" else {}
    if agent == "pi":
        write(home, ".pi/agent/settings.json", "{}")
    return launched(agent, home, options=args)


@pytest.mark.parametrize("agent", IN_FILES)
def test_a_provider_of_a_file_where_nothing_answers_is_refused(
    agent: str, tmp_path: Path, closed: int
) -> None:
    with pytest.raises(AgentError) as caught:
        check(named_in_file(agent, tmp_path, closed))
    words = f"the agent 'mine' cannot reach its provider at 127.0.0.1:{closed}: "
    assert str(caught.value) == f"{words}the connection is refused"
    assert f"~/{IN_FILES[agent][0]} sets this address" in caught.value.hint


@pytest.mark.parametrize("agent", IN_FILES)
def test_one_that_answers_is_told_nothing(
    agent: str, tmp_path: Path, open_socket: socket.socket
) -> None:
    check(named_in_file(agent, tmp_path, open_socket.getsockname()[1]))
    told, _ = open_socket.accept()
    with closing(told):
        assert told.recv(1) == b""  # it was connected to, and no word came, so no key either


@pytest.mark.parametrize("agent", IN_VARIABLES)
def test_a_provider_of_a_variable_is_looked_at_likewise(
    agent: str, tmp_path: Path, closed: int, open_socket: socket.socket
) -> None:
    name = IN_VARIABLES[agent]

    def asking(port: int) -> Launched:
        url = f"http://127.0.0.1:{port}"
        return launched(agent, tmp_path, "openai/m", environment={name: url})

    check(asking(open_socket.getsockname()[1]))
    with pytest.raises(AgentError) as caught:
        check(asking(closed))
    assert caught.value.hint.startswith(f"{name} sets this address.")


def test_a_provider_of_the_manifest_is_named_by_its_agent(tmp_path: Path, closed: int) -> None:
    url = f"http://127.0.0.1:{closed}"
    by_env = launched("claude", tmp_path, env={"ANTHROPIC_BASE_URL": url})
    with pytest.raises(AgentError) as caught:
        check(by_env)
    assert caught.value.hint.startswith("ANTHROPIC_BASE_URL in `env` of the agent 'mine'")
    provider = f'{{name="x", base_url="{url}", wire_api="responses"}}'
    args = f"-c 'model_providers.x={provider}' -c model_provider=x"
    config = {"model_provider": "x", "model_providers": {"x": {"name": "x", "base_url": url}}}
    for agent, more in (
        ("codex", {"options": {"args": args}}),
        ("codex-acp", {"env": {"CODEX_CONFIG": json.dumps(config)}}),
    ):
        with pytest.raises(AgentError) as caught:
            check(launched(agent, tmp_path, **more))
        assert caught.value.hint.startswith("the agent 'mine' of the manifest sets")


def test_an_address_among_codexs_arguments_is_that_of_its_own_provider(
    tmp_path: Path, closed: int
) -> None:
    there = f"-c model_provider=x -c model_providers.{{}}.base_url=http://127.0.0.1:{closed}"
    with pytest.raises(AgentError, match="the connection is refused"):
        check(launched("codex", tmp_path, options={"args": there.format("x")}))
    other = f"-c model_providers.x.name=x {there.format('y')}"
    check(launched("codex", tmp_path, options={"args": other}))


def test_a_name_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    # A blank in a name is refused before any server of names is asked.
    url = "http://no such host:8080"
    with pytest.raises(AgentError, match="at no such host:8080: its host name cannot be resolved"):
        check(launched("claude", tmp_path, environment={"ANTHROPIC_BASE_URL": url}))


def test_one_that_takes_its_time_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.agents.base_urls._LONGEST_PROBE_S", 0.2)
    with closing(socket.socket()) as full, closing(socket.socket()) as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())  # the queue is full: nobody else is let in
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        check(launched("claude", tmp_path, environment={"ANTHROPIC_BASE_URL": url}))


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (("claude", ""), {"ANTHROPIC_BASE_URL": "{url}", "CLAUDE_CODE_USE_BEDROCK": "1"}),
        (("claude", ""), {"ANTHROPIC_BASE_URL": "{away}", "HTTPS_PROXY": "http://proxy"}),
        (("claude", ""), {"ANTHROPIC_BASE_URL": "no address"}),
        (("claude", ""), {"ANTHROPIC_BASE_URL": "http://[bad"}),
        (("claude", ""), {}),
        (("aider", "anthropic/claude-x"), {"OPENAI_API_BASE": "{url}"}),
        (("codex", ""), {"OPENAI_BASE_URL": "{url}"}),
        (("opencode", "corp/m"), {"OPENAI_BASE_URL": "{url}"}),
    ],
)
def test_an_address_that_is_not_asked_or_not_known_is_not_refused(
    asked: tuple[str, str], given: dict[str, str], tmp_path: Path, closed: int
) -> None:
    places = {"{url}": f"http://127.0.0.1:{closed}", "{away}": "http://no such host"}
    given = {name: places.get(value, value) for name, value in given.items()}
    check(launched(asked[0], tmp_path, asked[1], environment=given))


def test_a_provider_behind_the_agents_own_proxy_is_not_refused(tmp_path: Path) -> None:
    env = {"ANTHROPIC_BASE_URL": "http://no such host"}
    check(launched("claude", tmp_path, env={**env, "HTTPS_PROXY": "http://proxy:3128"}))
    given = {"HTTPS_PROXY": "http://proxy:3128"}
    with pytest.raises(AgentError):  # the agent's own variables come before the user's
        check(launched("claude", tmp_path, env={**env, "HTTPS_PROXY": ""}, environment=given))


@pytest.mark.parametrize(
    ("number", "is_refused"), [(socket.EAI_AGAIN, False), (socket.EAI_NONAME, True)]
)
def test_a_name_that_no_resolver_looked_up_is_not_refused(
    number: int,
    is_refused: bool,  # noqa: FBT001 (a table)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "no answer")

    monkeypatch.setattr("anyio.getaddrinfo", fails)
    asked = launched("claude", tmp_path, environment={"ANTHROPIC_BASE_URL": "http://corp"})
    with pytest.raises(AgentError) if is_refused else nullcontext():
        check(asked)


def test_models_with_addresses_of_their_own_are_left_to_qwen(tmp_path: Path, closed: int) -> None:
    url = f"http://127.0.0.1:{closed}"
    listed = {"openai": [{"id": "m", "baseUrl": "https://corp.example"}]}
    write(tmp_path, ".qwen/settings.json", json.dumps({"modelProviders": listed}))
    check(launched("qwen", tmp_path, environment={"OPENAI_BASE_URL": url}))
    (tmp_path / ".qwen/settings.json").unlink()
    with pytest.raises(AgentError):  # without that file it is the variable's
        check(launched("qwen", tmp_path, environment={"OPENAI_BASE_URL": url}))

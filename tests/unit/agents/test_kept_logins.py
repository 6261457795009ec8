"""Test where logins are kept, and until when they are good."""

import base64
import json
import os
from pathlib import Path

import pytest

from engine.agents.logins import identity_of_login, kept_login
from engine.agents.registry import adapters
from engine.errors import AgentNotFound
from engine.plan.model import AgentChoice


def choice(adapter: str, **more: object) -> AgentChoice:
    return AgentChoice(name="mine", adapter=adapter, **more)  # type: ignore[arg-type]


def token(ends_at: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends_at}).encode()).rstrip(b"=").decode()
    return f"head.{claims}.signature"


@pytest.mark.parametrize("adapter", ["claude", "claude-acp"])
def test_claude_says_when_its_token_ends(adapter: str, tmp_path: Path) -> None:
    login = kept_login(choice(adapter), {"HOME": str(tmp_path)})
    assert login is not None
    assert (login.ends_at(), login.written_at()) == (None, None)
    login.file.parent.mkdir()
    login.file.write_text(json.dumps({"claudeAiOauth": {"expiresAt": 5_000}}))
    os.utime(login.file, (7, 7))
    assert (login.ends_at(), login.written_at()) == (5.0, 7.0)


@pytest.mark.parametrize(
    ("kept", "ends_at"),
    [
        ({"tokens": {"access_token": token(5)}}, 5.0),
        ({"tokens": {"access_token": "opaque"}}, None),
        ({"tokens": {"access_token": "a.?.c"}}, None),
        ({"OPENAI_API_KEY": "k"}, None),
        ([], None),
    ],
)
def test_codex_keeps_a_token_that_says_it(
    kept: object, ends_at: float | None, tmp_path: Path
) -> None:
    login = kept_login(choice("codex"), {"HOME": "/nowhere", "CODEX_HOME": str(tmp_path)})
    assert login is not None
    login.file.write_text(json.dumps(kept))
    assert login.ends_at() == ends_at


def test_a_file_that_is_none_of_theirs_says_nothing(tmp_path: Path) -> None:
    login = kept_login(choice("codex"), {"HOME": "/nowhere", "CODEX_HOME": str(tmp_path)})
    assert login is not None
    login.file.write_bytes(b"\xff{")
    assert login.ends_at() is None


@pytest.mark.parametrize(
    ("agent", "environment"),
    [
        (choice("claude"), {"HOME": "/h", "ANTHROPIC_API_KEY": "k"}),
        (choice("claude", env={"CLAUDE_CODE_OAUTH_TOKEN": "t"}), {"HOME": "/h"}),
        (choice("codex"), {"HOME": "/h", "OPENAI_API_KEY": "k"}),
        (choice("gemini"), {"HOME": "/h"}),
        (choice("claude"), {}),
    ],
)
def test_a_variable_that_logs_in_leaves_no_file_to_renew(
    agent: AgentChoice, environment: dict[str, str]
) -> None:
    assert kept_login(agent, environment) is None


def test_workers_of_one_vendor_share_a_login_and_others_do_not() -> None:
    assert choice("claude").login == choice("claude-acp", model="other").login
    assert choice("claude").login != choice("codex").login
    assert choice("claude").login != choice("claude", env={"ANTHROPIC_API_KEY": "other"}).login
    assert choice("command").login == "mine"


@pytest.mark.parametrize("name", adapters())
def test_every_agent_of_a_vendor_names_by_what_it_logs_in(name: str) -> None:
    traces = adapters()[name].login
    is_known = bool(traces.variables or traces.files)
    assert is_known is choice(name).has_vendor, f"{name}: give it `login`, or NO_VENDOR"


@pytest.mark.parametrize("name", [name for name in adapters() if choice(name).has_vendor])
def test_another_key_of_an_agent_s_own_vendor_is_another_login(name: str) -> None:
    told = dict.fromkeys(adapters()[name].login.variables, "one")
    known = identity_of_login(choice(name), told)
    assert identity_of_login(choice(name), {**told, "OF_ANOTHER_VENDOR_API_KEY": "k"}) == known
    for variable in told:
        assert identity_of_login(choice(name), {**told, variable: "another"}) != known


def test_an_agent_that_nobody_knows_has_no_login_of_another_s() -> None:
    with pytest.raises(AgentNotFound, match="nobody"):
        identity_of_login(choice("nobody"), {"OPENAI_API_KEY": "k"})

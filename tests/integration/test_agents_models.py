"""Models that a client's own program lists are shown, and compared with the one that is wanted."""

import json
from pathlib import Path

import anyio
import pytest

from engine.agents.contract import FoundAgent, LaunchRequest
from engine.agents.models import check_models, models_of
from engine.agents.registry import check_startable
from engine.errors import AgentError
from engine.plan.model import AgentChoice

OPENCODE = "printf 'corp/small\\ncorp/large\\n'"
PI = "printf 'provider  model  context\\ncorp      small  100K\\n' >&2"
CODEX = f"echo '{json.dumps({'models': [{'slug': 'gpt-9'}]})}'"


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho asked >>{folder}/asked\npwd >>{folder}/where\n{script}\n")
    path.chmod(0o755)
    return path


def wanted(folder: Path, agent: str, model: str | None, args: str = "") -> LaunchRequest:
    choice = AgentChoice(
        name="mine", adapter=agent, model=model, options={"args": args} if args else {}
    )
    return LaunchRequest(
        choice=choice,
        prompt="",
        workspace="/",
        home="/",
        user_home=str(folder),
        is_confined=True,
        environment={"HOME": str(folder), "PATH": f"{folder}:/usr/bin:/bin"},
    )


def check(*requests: LaunchRequest) -> None:
    launches = [(request, check_startable(request)) for request in requests]
    anyio.run(check_models, launches)


@pytest.mark.parametrize(
    ("agent", "script", "expected"),
    [
        ("opencode", OPENCODE, ("corp/small", "corp/large")),
        ("pi", PI, ("corp/small",)),
        ("codex", CODEX, ("gpt-9",)),
        ("codex", "echo no list", ()),
        ("qwen", OPENCODE, ()),
    ],
)
def test_a_client_lists_its_models(
    agent: str, script: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    found = FoundAgent(name=agent, path=str(program(tmp_path, agent, script)))
    assert anyio.run(models_of, found, {"PATH": "/usr/bin:/bin"}) == expected


@pytest.mark.parametrize("agent", ["opencode", "opencode-acp"])
def test_a_model_that_opencode_does_not_list_is_refused(agent: str, tmp_path: Path) -> None:
    program(tmp_path, "opencode", OPENCODE)
    with pytest.raises(AgentError, match="does not know the model 'corp/smal'") as caught:
        check(wanted(tmp_path, agent, "corp/smal"))
    assert "corp/small" in str(caught.value)
    assert "opencode models" in caught.value.hint
    check(wanted(tmp_path, agent, "corp/large"))


@pytest.mark.parametrize(
    ("agent", "script", "words"),
    [
        ("opencode", OPENCODE, ("described-in-the-repository/x",)),
        ("opencode", "exit 1", ("corp/none",)),
        ("pi", PI, ("SMALL:high",)),
        ("pi", PI, ("corp/none",)),
        ("pi", PI, ("none", "--provider corp")),
    ],
)
def test_what_a_client_may_know_all_the_same_is_not_refused(
    agent: str, script: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    program(tmp_path, agent, script)
    check(wanted(tmp_path, agent, *words))


def test_a_bare_name_that_pi_does_not_list_is_refused(tmp_path: Path) -> None:
    program(tmp_path, "pi", PI)
    with pytest.raises(AgentError, match="does not know the model 'none': it knows corp/small"):
        check(wanted(tmp_path, "pi", "none"))


def test_a_program_is_asked_once_and_not_where_no_model_is_wanted(tmp_path: Path) -> None:
    program(tmp_path, "opencode", OPENCODE)
    check(wanted(tmp_path, "opencode", None))
    assert not (tmp_path / "asked").exists()
    check(*(wanted(tmp_path, "opencode", name) for name in ("corp/small", "corp/large")))
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert (tmp_path / "where").read_text() == "/\n"  # no settings of a repository are loaded

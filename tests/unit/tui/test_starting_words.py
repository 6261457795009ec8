"""The welcome page and the form of a run say what is here, and what becomes of what is left out."""

from pathlib import Path

import pytest

from engine.api import OfferedAgent, plan_from
from tui.ink import row_width, text_of
from tui.words.starting import agents_rows, plan_rows

_LONG = "a-name-that-is-longer-than-every-other"


@pytest.mark.parametrize("name", ["pi", "claude-acp-2", "opencode-acp", _LONG])
@pytest.mark.parametrize("version", ["", "1.2.3"])
def test_the_name_of_an_agent_stands_apart_from_what_is_said_of_it(name: str, version: str):
    agent = OfferedAgent(name=name, adapter="opencode-acp", version=version, login="by a key")
    text = text_of(agents_rows([agent, OfferedAgent(name="x", adapter="x", login="")], 60))
    said = text.replace("✓ ", "").split("\n")[0]
    assert said.startswith(f"{name}  ")
    assert name == "opencode-acp" or "opencode-acp" in said


def test_an_agent_whose_name_is_its_adapter_is_named_once():
    agent = OfferedAgent(name="claude", adapter="claude", version="2.1", login="by a key")
    assert text_of(agents_rows([agent], 60)).count("claude") == 1


def test_what_is_said_of_an_agent_is_wrapped_and_never_cut():
    login = "as somebody@example.com, by ~/.local/share/opencode/auth.json"
    agent = OfferedAgent(name=_LONG, adapter="opencode", version="1.2", login=login)
    rows = agents_rows([agent], 63)
    assert all(row_width(row) <= 63 for row in rows)
    assert "auth.json" in text_of(rows)


@pytest.mark.parametrize(
    ("check", "said"), [("check: make test", "check: make test"), ("", "nothing is checked")]
)
def test_a_plan_says_what_is_checked_or_that_nothing_is(check: str, said: str, tmp_path: Path):
    step = f"{{name: s, agent: a, prompt: p{', ' if check else ''}{check}}}"
    text = "agents: {a: {adapter: command, argv: ['true']}}\n"
    text += f"pipelines: [{{name: p, steps: [{step}]}}]\n"
    assert said in text_of(plan_rows(plan_from(text, folder=tmp_path), 100))

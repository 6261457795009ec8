"""Names of agents become choices."""

import json

import pytest

from engine.errors import AgentNotFound
from engine.plan.agents import choose_agent
from engine.plan.make import make_plan
from engine.plan.model import AgentChoice
from engine.spec.load import manifest_from
from engine.spec.pipeline import AgentSpec

AGENTS = {
    "fast": AgentSpec(adapter="claude", model="haiku", env={"A": "b"}, options={"effort": "low"}),
    "mine": AgentSpec(
        adapter="command", argv=("./a.sh",), prompt_via="stdin", terminal=True, events=False
    ),
    "demo": AgentSpec(adapter="scripted", script=({"say": "hä"},)),
    "file": AgentSpec(adapter="scripted", script="demo.yaml"),
    "codex": AgentSpec(adapter="claude"),
}


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("fast", AgentChoice(name="fast", adapter="claude", model="haiku", env={"A": "b"},
                             options={"effort": "low"})),
        ("mine", AgentChoice(name="mine", adapter="command", argv=("./a.sh",),
                             options={"prompt_via": "stdin", "terminal": "true",
                                      "events": "false"})),
        ("demo", AgentChoice(name="demo", adapter="scripted",
                             options={"script": '[{"say": "hä"}]'})),
        ("file", AgentChoice(name="file", adapter="scripted", options={"script": "demo.yaml"})),
        ("codex", AgentChoice(name="codex", adapter="claude")),
        ("gemini", AgentChoice(name="gemini", adapter="gemini")),
    ],
)  # fmt: skip
def test_a_name_is_an_entry_or_else_an_adapter(name: str, choice: AgentChoice):
    assert choose_agent(name, AGENTS) == choice


def test_a_model_named_beside_goes_first():
    assert choose_agent("fast", AGENTS, model="opus").model == "opus"
    assert choose_agent("pi", AGENTS, model="opus").model == "opus"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("fsat", "'fast'"), ("claud", "'claude'"), ("command", "argv"), ("", "Known")],
)
def test_a_name_of_nothing_is_refused_with_a_hint(name: str, hint: str):
    with pytest.raises(AgentNotFound) as caught:
        choose_agent(name, AGENTS)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("step", "runtime", "persona", "works"),
    [
        ("codex", "pi", "qwen", "codex"),
        (None, "pi", "qwen", "qwen"),
        (None, "pi", None, "pi"),
        (None, None, None, "only"),
    ],
)
def test_the_nearest_word_says_who_works(
    step: str | None, runtime: str | None, persona: str | None, works: str
):
    manifest = manifest_from(
        {
            "runtime": {"agent": runtime},
            "agents": {"only": {"adapter": "claude"}},
            "personas": {"p": {"agent": persona}},
            "pipelines": [
                {
                    "name": "x",
                    "steps": [{"name": "s", "prompt": "x", "persona": "p", "agent": step}],
                }
            ],
        }
    )
    agent = make_plan(manifest).steps[0].workers[0].agent
    assert agent is not None
    assert agent.name == works


def test_a_script_in_place_is_json_that_says_the_same():
    options = choose_agent("demo", AGENTS).options
    assert json.loads(options["script"]) == [{"say": "hä"}]

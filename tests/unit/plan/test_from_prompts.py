"""Plans of a command line, and plans built in Python."""

from dataclasses import replace

import pytest

from engine.errors import (
    AgentNotFound,
    ConcurrencyWithMatrix,
    CyclicDependency,
    PlanError,
    UnknownDependency,
)
from engine.plan.from_prompts import agent_variant, plan_from_prompts, plan_of, step
from engine.plan.make import PlanDefaults
from engine.plan.model import AgentChoice, Plan, Runtime
from engine.plan.prompts import fill
from engine.policies import MergeMode, Policy, PolicyKind
from engine.spec.load import manifest_from

CLAUDE = AgentChoice(name="claude", adapter="claude")
CODEX = AgentChoice(name="codex", adapter="codex")
OWN = manifest_from(
    {
        "runtime": {"max_concurrent_workers": 3, "target": "dev"},
        "workspace": {"setup": "npm ci"},
        "agents": {"mine": {"adapter": "command", "argv": ["./a.sh"]}},
        "pipelines": [{"name": "p", "steps": [{"name": "s", "run": "x"}]}],
    }
)


def who(plan: Plan) -> list[list[str]]:
    return [[w.agent.name for w in s.workers if w.agent] for s in plan.steps]


def test_one_prompt_is_one_step():
    plan = plan_from_prompts(["Fix it"], ["claude"])
    assert [s.name for s in plan.steps] == ["fix-it"]
    assert (plan.name, plan.steps[0].policy) == ("Fix it", Policy(PolicyKind.ALL))
    assert plan.steps[0].workers[0].prompt == "Fix it"


@pytest.mark.parametrize(
    ("prompt", "title", "name"),
    [
        ("\n  Fix the quoted-field.\nKeep it.", "Fix the quoted-field", "fix-the-quoted-field"),
        (
            "Make the parser read its input only once, please",
            "Make the parser read its input only",
            "make-the-parser-read",
        ),
        ("x" * 60, "x" * 40, "x" * 20),
        ("\u4fee\u6b63", "\u4fee\u6b63", "task"),
        ("a\x1b[2Jb: c", "a\\x1b[2Jb: c", "a-x1b-2jb-c"),
    ],
)
def test_a_run_is_named_by_its_prompt(prompt: str, title: str, name: str):
    plan = plan_from_prompts([prompt], ["claude"])
    assert (plan.name, plan.steps[0].name) == (title, name)


def test_prompts_that_begin_alike_have_names_of_their_own():
    plan = plan_from_prompts(["Do it", "do it!", "do IT"], ["claude"])
    assert plan.name == "Do it and 2 more"
    assert [step.name for step in plan.steps] == ["do-it", "do-it-2", "do-it-3"]


def test_several_prompts_are_independent_steps():
    plan = plan_from_prompts(["a", "b"], ["claude"])
    assert [(s.name, s.dependencies) for s in plan.steps] == [("a", ()), ("b", ())]


@pytest.mark.parametrize(
    ("agents", "replicas", "names"),
    [
        (["claude"], 3, ["claude"] * 3),
        (["claude:2", "codex"], None, ["claude", "claude", "codex"]),
        (["claude:2", "codex"], 3, ["claude", "claude", "codex", "codex", "codex"]),
        (["claude", "codex"], 2, ["claude", "claude", "codex", "codex"]),
    ],
)
def test_several_candidates_are_all_let_finish(
    agents: list[str], replicas: int | None, names: list[str]
):
    plan = plan_from_prompts(["x"], agents, replicas=replicas)
    assert who(plan) == [names]
    assert plan.steps[0].policy == Policy(PolicyKind.SETTLED)
    assert plan.steps[0].merge is MergeMode.CHOOSE
    assert plan.steps[0].has_candidates


@pytest.mark.parametrize(
    ("agents", "replicas", "expected"),
    [
        (["claude"], None, ["claude a", "claude b"]),
        (["claude"], 2, ["claude a", "claude a", "claude b", "claude b"]),
        (["claude:2", "codex"], None, ["claude a"] * 2 + ["claude b"] * 2 + ["codex a", "codex b"]),
        ([], None, ["mine a", "mine b"]),
    ],
)
def test_candidates_fan_out_over_models(
    agents: list[str], replicas: int | None, expected: list[str]
):
    plan = plan_from_prompts(
        ["x"], agents, models=["a", " b"], replicas=replicas, manifest=None if agents else OWN
    )
    found = [worker.agent for worker in plan.steps[0].workers]
    assert [f"{agent.name} {agent.model}" for agent in found if agent] == expected
    assert plan.steps[0].policy == Policy(PolicyKind.SETTLED)


def test_one_model_is_one_worker():
    (worker,) = plan_from_prompts(["x"], ["claude"], models=["opus"]).steps[0].workers
    assert worker.agent is not None
    assert worker.agent.model == "opus"


@pytest.mark.parametrize(("models", "words"), [(["a", ""], "no name"), (["a", "a "], "twice")])
def test_models_that_name_nothing_new_are_refused(models: list[str], words: str):
    with pytest.raises(PlanError, match=words):
        plan_from_prompts(["x"], ["claude"], models=models)


def test_a_policy_that_is_named_goes_first():
    defaults = PlanDefaults(policy="race", check="make", auto_merge=True)
    plan = plan_from_prompts(["x"], ["claude:2"], defaults=defaults)
    assert plan.steps[0].policy == Policy(PolicyKind.FIRST, 1)
    assert (plan.steps[0].check, plan.runtime.auto_merge) == ("make", True)


def test_a_policy_that_is_none_is_refused_even_where_one_worker_needs_none():
    with pytest.raises(PlanError, match="not a policy"):
        plan_from_prompts(["x"], defaults=PlanDefaults(policy="foo"))


def test_the_manifest_of_the_repository_holds():
    plan = plan_from_prompts(["x"], replicas=5, manifest=OWN)
    assert who(plan) == [["mine"] * 3]
    assert plan.clamps[0].where == "x.concurrency"
    assert (plan.runtime.target, plan.workspace.setup) == ("dev", "npm ci")


@pytest.mark.parametrize("prompt", ["{item} {run} {{worker}}", "{steps.x.output}", "{{{item}}"])
def test_a_prompt_of_the_command_line_is_literal(prompt: str):
    plan = plan_from_prompts([prompt], ["claude"])
    values = {"run": "r", "worker": "w", "item": "i", "steps.x.output": "o"}
    assert fill(plan.steps[0].workers[0].prompt, values) == prompt


@pytest.mark.parametrize(
    ("prompts", "agents", "replicas", "words"),
    [
        ([], ["claude"], None, "there is no prompt"),
        (["x", " "], ["claude"], None, "there is no prompt"),
        (["x"], [], None, "does not name an agent"),
        (["x"], ["claude:0"], None, "0 candidates of 'claude'"),
        (["x"], ["claude"], 0, "0 candidates of 'claude'"),
        (["x"], [], -1, "-1 candidates"),
        (["x"], ["claude:two"], None, "'claude:two' does not name an agent"),
        (["x"], ["claude:²"], None, "does not name an agent"),
        (["x"], ["claude:99999999999"], None, "does not name an agent"),
        (["x"], [":2"], None, "does not name an agent"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    prompts: list[str], agents: list[str], replicas: int | None, words: str
):
    with pytest.raises(PlanError, match=words):
        plan_from_prompts(prompts, agents, replicas=replicas)


def test_an_unknown_agent_is_refused_with_the_nearest():
    with pytest.raises(AgentNotFound) as caught:
        plan_from_prompts(["x"], ["clade"])
    assert "'claude'" in caught.value.hint


def test_a_name_and_number_are_read():
    assert agent_variant("claude:2").n == 2
    assert agent_variant("claude", 4).n == 4
    assert agent_variant("claude").n == 1


def test_a_step_built_in_python_has_its_workers():
    made = step("fix", agents=[CLAUDE], prompt="x", replicas=2, hint=20, check="make")
    assert [str(w.id) for w in made.workers] == ["fix/worker_1", "fix/worker_2"]
    assert (made.workers[0].hint, made.check) == (10, "make")
    assert [w.label for w in step("s", agents=[CLAUDE, CODEX], prompt="x").workers] == [
        "claude",
        "codex",
    ]
    cells = step("s", agents=[CLAUDE], prompt="{item}", items=["a", "b"])
    assert [w.item for w in cells.workers] == ["a", "b"]
    assert cells.merge is MergeMode.EACH
    assert step("s", run="make").merge is MergeMode.NONE


def test_a_step_with_replicas_and_items_is_refused():
    with pytest.raises(ConcurrencyWithMatrix):
        step("s", agents=[CLAUDE], prompt="x", replicas=1, items=["a"])


def test_a_plan_built_in_python_is_put_in_order():
    first, second = step("b", run="x"), step("a", run="y", dependencies=("b",))
    assert [s.name for s in plan_of(second, first).steps] == ["b", "a"]


def test_a_plan_built_in_python_keeps_the_laws_of_every_plan():
    one = step("a", run="x")
    with pytest.raises(PlanError, match="each name only once"):
        plan_of(one, one)
    with pytest.raises(PlanError, match="needs at least one step"):
        plan_of()
    with pytest.raises(CyclicDependency):
        plan_of(replace(one, dependencies=("a",)))
    with pytest.raises(UnknownDependency):
        plan_of(replace(one, dependencies=("z",)))
    with pytest.raises(PlanError, match="needs 2 workers"):
        plan_of(replace(one, policy=Policy(PolicyKind.QUORUM, 2)))
    with pytest.raises(PlanError, match="not numbered from 1"):
        plan_of(replace(one, workers=one.workers * 2))
    with pytest.raises(PlanError, match="not numbered from 1"):
        plan_of(replace(one, workers=()))
    with pytest.raises(PlanError, match="neither an agent nor a command"):
        plan_of(step("a", prompt="x"))
    with pytest.raises(PlanError, match="2 agents for 3 workers"):
        step("a", agents=[CLAUDE, CODEX], replicas=3)
    with pytest.raises(PlanError, match="1 to 500 workers"):
        plan_of(one, runtime=Runtime(max_concurrent_workers=501))

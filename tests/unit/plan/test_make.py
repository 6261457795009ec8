"""From manifests to plans: order, replicas, variants, matrices, clamps, limits."""

from typing import Any

import pytest

from engine.errors import (
    AgentNotFound,
    ConcurrencyWithMatrix,
    CyclicDependency,
    PlanError,
    UnknownDependency,
)
from engine.limits import DEFAULT_LIMITS, Limits
from engine.plan.from_prompts import plan_from_prompts
from engine.plan.make import PlanDefaults, make_plan, parse_policy
from engine.plan.model import (
    Clamp,
    IsolationStrategy,
    Network,
    PermissionMode,
    Permissions,
    Plan,
    PlannedStep,
    RetryMode,
    RetryRule,
    ReviewRules,
)
from engine.policies import Backoff, ChooseBy, MergeMode, Policy, PolicyKind
from engine.spec.load import load_manifest, manifest_from
from engine.spec.pipeline import Manifest, PipelineSpec, StepSpec
from engine.spec.reference import EXAMPLE


def manifest(*steps: dict[str, Any], **sections: Any) -> Manifest:
    named = [{"name": f"s{i}", "prompt": "x", **step} for i, step in enumerate(steps, 1)]
    agents = {"fast": {"adapter": "claude"}}
    pipelines = [{"name": "p", "steps": named}]
    return manifest_from({"agents": agents, "pipelines": pipelines, **sections})


def plan(*steps: dict[str, Any], **sections: Any) -> Plan:
    return make_plan(manifest(*steps, **sections))


def step(**keys: Any) -> PlannedStep:
    return plan(keys).steps[0]


def test_steps_stand_in_an_order_their_dependencies_allow():
    made = plan(
        {"name": "c", "dependencies": ["a", "b"]}, {"name": "b"}, {"name": "d"}, {"name": "a"}
    )
    assert [s.name for s in made.steps] == ["b", "d", "a", "c"]


def test_replicas_are_numbered_from_one():
    workers = step(concurrency=3).workers
    assert [str(w.id) for w in workers] == ["s1/worker_1", "s1/worker_2", "s1/worker_3"]
    assert {w.agent.name for w in workers if w.agent} == {"fast"}
    assert step(concurrency=3).has_candidates


def test_variants_are_the_replicas_in_their_order():
    made = step(
        agent="codex", variants=[{"agent": "fast", "n": 2}, {"model": "big"}, {"agent": "pi"}]
    )
    assert [w.label for w in made.workers] == ["fast", "fast", "codex big", "pi"]
    agents = [(w.agent.adapter, w.agent.model) for w in made.workers if w.agent]
    assert agents == [("claude", None), ("claude", None), ("codex", "big"), ("pi", None)]


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ({"agent": "fast", "models": ["a", "b"]}, ["fast a", "fast b"]),
        (
            {"models": ["a", "b"], "variants": [{"agent": "fast"}, {"agent": "pi", "model": "c"}]},
            ["fast a", "fast b", "pi c"],
        ),
        (
            {"variants": [{"agent": "fast", "models": ["a", "b"], "n": 2}, {"agent": "pi"}]},
            ["fast a", "fast a", "fast b", "fast b", "pi"],
        ),
    ],
)
def test_models_fan_out_over_the_agents_that_name_none(keys: dict[str, Any], labels: list[str]):
    made = step(**keys)
    assert [w.label for w in made.workers] == labels
    assert [w.agent and w.agent.model for w in made.workers] == [
        label.partition(" ")[2] or None for label in labels
    ]
    assert made.has_candidates


def test_a_matrix_has_one_worker_for_each_item():
    made = step(prompt="{item}", strategy={"matrix": {"items": ["a", "b"], "max_concurrency": 2}})
    assert [(w.id.index, w.item, w.label) for w in made.workers] == [(1, "a", "a"), (2, "b", "b")]
    assert (made.merge, made.max_parallel) == (MergeMode.EACH, 2)


@pytest.mark.parametrize(
    ("keys", "runtime", "clamp"),
    [
        ({}, {"max_concurrent_workers": 501},
         Clamp(where="runtime.max_concurrent_workers", asked=501, given=500,
               reason="an engine runs at most 500 workers at once")),
        ({"concurrency": 11}, {},
         Clamp(where="s1.concurrency", asked=11, given=10,
               reason="runtime.max_concurrent_workers is 10")),
        ({"variants": [{"model": "a", "n": 2}, {"model": "b", "n": 2}]},
         {"max_concurrent_workers": 3},
         Clamp(where="s1.variants", asked=4, given=3,
               reason="runtime.max_concurrent_workers is 3")),
        ({"models": ["a", "b", "c"]}, {"max_concurrent_workers": 2},
         Clamp(where="s1.models", asked=3, given=2,
               reason="runtime.max_concurrent_workers is 2")),
        ({"max_concurrent_agents": 11}, {},
         Clamp(where="s1.max_concurrent_agents", asked=11, given=10,
               reason="an agent may have at most 10 sub-agents")),
        ({"strategy": {"matrix": {"items": ["a"], "max_concurrency": 9}}},
         {"max_concurrent_workers": 4},
         Clamp(where="s1.strategy.matrix.max_concurrency", asked=9, given=4,
               reason="runtime.max_concurrent_workers is 4")),
    ],
)  # fmt: skip
def test_a_figure_above_its_bound_is_cut_and_told(
    keys: dict[str, Any], runtime: dict[str, Any], clamp: Clamp
):
    assert plan(keys, runtime=runtime).clamps == (clamp,)


def test_a_figure_at_its_bound_is_left_alone():
    made = plan(
        {"concurrency": 100, "max_concurrent_agents": 10}, runtime={"max_concurrent_workers": 500}
    )
    assert made.clamps == ()
    assert len(made.steps[0].workers) == 100
    assert made.runtime.max_concurrent_workers == 500


def test_a_huge_figure_costs_nothing():
    assert len(step(concurrency=10**12).workers) == 10
    assert len(step(variants=[{"model": "a", "n": 10**12}]).workers) == 10


@pytest.mark.parametrize(("asked", "told"), [(None, None), (1, None), (2, 2), (10, 10), (99, 10)])
def test_the_hint_is_said_above_one_and_cut_to_ten(asked: int | None, told: int | None):
    assert step(max_concurrent_agents=asked).workers[0].hint == told


def test_a_matrix_is_not_cut_to_the_cap():
    items = [f"i{i}" for i in range(30)]
    made = plan({"strategy": {"matrix": {"items": items}}}, runtime={"max_concurrent_workers": 2})
    assert len(made.steps[0].workers) == 30
    assert made.steps[0].max_parallel is None


def test_limits_are_merged_key_by_key():
    made = plan(
        {"limits": {"memory_mb": 1}, "timeout_minutes": 0.5},
        {"limits": {"time_seconds": 7.5}},
        runtime={"limits": {"memory_mb": 2, "cpu_percent": 3}},
    )
    rest = {"cpu_percent": 3, "disk_mb": 20480, "pids": 4096, "output_mb": 512}
    rest |= {"files": 200_000, "refs": 200}
    first, second = (s.limits for s in made.steps)
    assert first == Limits(memory_mb=1, time_seconds=30.0, **rest)
    assert second == Limits(memory_mb=2, time_seconds=7.5, **rest)
    assert step().limits == DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("keys", "merge"),
    [
        ({}, MergeMode.CHOOSE),
        ({"concurrency": 2, "merge": "each"}, MergeMode.EACH),
        ({"run": "x", "prompt": None}, MergeMode.NONE),
        ({"run": "x", "prompt": None, "merge": "each"}, MergeMode.EACH),
        ({"strategy": {"matrix": {"items": ["a"]}}}, MergeMode.EACH),
        ({"strategy": {"matrix": {"items": ["a"]}}, "merge": "none"}, MergeMode.NONE),
    ],
)
def test_what_becomes_of_changes_depends_on_the_kind_of_step(
    keys: dict[str, Any], merge: MergeMode
):
    assert step(**keys).merge is merge


def test_in_a_directory_nothing_is_merged():
    made = plan({}, runtime={"isolation_strategy": "directory"})
    assert made.steps[0].merge is MergeMode.NONE
    assert made.runtime.isolation is IsolationStrategy.DIRECTORY


def test_a_command_step_has_workers_without_agents():
    made = step(run="make test", prompt=None, concurrency=2)
    assert made.run == "make test"
    assert [w.agent for w in made.workers] == [None, None]


def test_the_prompt_names_the_files_of_the_step():
    assert step(files=["a", "b"]).workers[0].prompt == "x\n\nThe files this is about: {files}"
    assert step(files=["a"], prompt="see {files}").workers[0].prompt == "see {files}"


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ("all", Policy(PolicyKind.ALL)),
        ("settled", Policy(PolicyKind.SETTLED)),
        ("race", Policy(PolicyKind.FIRST, 1)),
        ("first(2)", Policy(PolicyKind.FIRST, 2)),
        ("first:2", Policy(PolicyKind.FIRST, 2)),
        ("quorum(3)", Policy(PolicyKind.QUORUM, 3)),
        ("quorum:3", Policy(PolicyKind.QUORUM, 3)),
    ],
)
def test_a_policy_is_read(words: str, policy: Policy):
    assert parse_policy(words) == policy
    assert step(policy=words, concurrency=3).policy == policy


@pytest.mark.parametrize(
    "words", ["", "first", "first(0)", "first(-1)", "quorum:", "ALL", "first(1:"]
)
def test_what_is_no_policy_is_refused(words: str):
    with pytest.raises(PlanError, match="is not a policy"):
        parse_policy(words)


def test_retries_permissions_and_choice_come_through():
    made = plan(
        {
            "retry": {
                "attempts": 3,
                "backoff": "linear",
                "delay_seconds": 1,
                "max_delay_seconds": 9,
                "mode": "continue",
                "feedback": False,
                "intensity": {"restarts": 7, "per_minutes": 2},
            },
            "check": "make",
            "choose": "check",
            "persona": "p",
        },
        {"permissions": {"allow": ["a"], "deny": ["b"]}, "persona": "p"},
        {"agent": "codex"},
        personas={"p": {"agent": "fast", "prompt": "You.", "permissions": "ask"}},
        runtime={"permissions": "auto"},
    )
    first, second, third = made.steps
    assert first.retry == RetryRule(
        attempts=3,
        backoff=Backoff.LINEAR,
        delay_s=1,
        longest_s=9,
        mode=RetryMode.CONTINUE,
        has_feedback=False,
        restarts=7,
        per_s=120,
    )
    assert (first.choose, first.check) == (ChooseBy.CHECK, "make")
    assert first.workers[0].permissions == Permissions(mode=PermissionMode.ASK)
    assert first.workers[0].persona_prompt == "You."
    rules = Permissions(mode=PermissionMode.RULES, allow=("a",), deny=("b",))
    assert second.workers[0].permissions == rules
    assert third.workers[0].permissions == Permissions()


def test_the_runtime_and_workspace_come_through():
    made = make_plan(load_manifest(EXAMPLE.encode(), file="f"), source="plait.yaml")
    assert (made.name, made.source) == ("fix", "plait.yaml")
    assert made.runtime.run_timeout_s == 240 * 60
    assert made.runtime.require == ("files", "git", "memory")
    assert made.workspace.setup == "npm ci"
    assert made.workspace.ports == {"PORT": 1}
    rules = plan({}, runtime={"sandbox": {"network": {"allow": ["a.org"]}, "docker": True}})
    assert rules.runtime.holes.network == Network(mode="allow", allow=("a.org",))
    assert rules.runtime.holes.has_docker


def test_the_help_with_conflicts_comes_through():
    rules = make_plan(load_manifest(EXAMPLE.encode(), file="f"), source="plait.yaml").review
    assert rules.assist is not None
    assert (rules.assist.agent.adapter, rules.assist.agent.model) == ("claude", "haiku")
    assert (rules.assist.requests, rules.assist.usd, rules.assist.seconds) == (10, 0.5, 600)
    assert rules.command_for("web/uv.lock") == "uv lock"
    assert rules.formatter_of("src/a.py") == "ruff format -"
    assert (rules.command_for("my-uv.lock"), rules.formatter_of("src/a.pyi")) == ("", "")
    placed = ReviewRules(regenerate={"web/*.lock": "make"})
    assert placed.command_for("web/a.lock") == "make"
    assert placed.command_for("other/web/a.lock") == ""


def test_a_command_line_overrules_the_manifest():
    defaults = PlanDefaults(
        policy="settled",
        check="make",
        auto_merge=True,
        target="dev",
        base="v1",
        timeout_minutes=2,
    )
    read = manifest({"concurrency": 2, "policy": "all"}, {"merge": "none", "check": "own"})
    made = make_plan(read, defaults=defaults)
    many, single = made.steps
    assert (many.policy.kind, single.policy.kind) == (PolicyKind.SETTLED, PolicyKind.ALL)
    assert (many.check, single.check) == ("make", "own")
    assert (made.runtime.auto_merge, made.runtime.target, made.runtime.base) == (True, "dev", "v1")
    assert many.limits.time_seconds == 120


def test_one_of_several_pipelines_is_named():
    steps = [{"name": "s", "prompt": "x", "agent": "claude"}]
    read = manifest_from(
        {"pipelines": [{"name": "fix", "steps": steps}, {"name": "port", "steps": steps}]}
    )
    assert make_plan(read, pipeline="port").name == "port"
    with pytest.raises(PlanError, match="several pipelines") as caught:
        make_plan(read)
    assert "fix, port" in caught.value.hint
    with pytest.raises(PlanError, match="no pipeline 'prot'") as caught:
        make_plan(read, pipeline="prot")
    assert "'port'" in caught.value.hint


def test_a_manifest_may_name_agents_alone_and_then_runs_prompts():
    read = manifest_from({"agents": {"fast": {"adapter": "claude"}}})
    with pytest.raises(PlanError, match="no pipeline here") as caught:
        make_plan(read)
    assert "plait run -p TEXT" in caught.value.hint
    plan = plan_from_prompts(["go"], ["fast"], manifest=read)
    assert plan.steps[0].workers[0].agent.adapter == "claude"


# What a manifest's own checks would have told, in plans made of models built in Python.
def built(*steps: StepSpec) -> Manifest:
    return Manifest(pipelines=(PipelineSpec(name="p", steps=steps),))


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [
        (
            (StepSpec(name="a", agent="pi", prompt="x", concurrency=1,
                      strategy={"matrix": {"items": ("i",)}}),),  # type: ignore[arg-type]
            ConcurrencyWithMatrix, "step 'a' has both",
        ),
        (
            (StepSpec(name="a", agent="pi", prompt="x", dependencies=("b",)),
             StepSpec(name="b", agent="pi", prompt="x", dependencies=("a",))),
            CyclicDependency, "a → b → a",
        ),
        (
            (StepSpec(name="design", agent="pi", prompt="x"),
             StepSpec(name="b", agent="pi", prompt="x", dependencies=("desing",))),
            UnknownDependency, "did you mean 'design'",
        ),
        ((StepSpec(name="a", agent="nope", prompt="x"),), AgentNotFound, "'nope'"),
        ((StepSpec(name="a", agent="acp", prompt="x"),), AgentNotFound, "'acp'"),
        ((StepSpec(name="a", prompt="x"),), PlanError, "does not name an agent"),
        ((StepSpec(name="a", prompt="x", persona="p"),), PlanError, "persona 'p'"),
        ((StepSpec(name="a", agent="pi", prompt="x", policy="first(2)"),), PlanError, "needs 2"),
        ((StepSpec(name="a", run="x"), StepSpec(name="a", run="y")), PlanError, "same name"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(
    steps: tuple[StepSpec, ...], error: type[Exception], words: str
):
    with pytest.raises(error, match=words):
        make_plan(built(*steps))

"""The laws of every plan: order, clamps, numbers, prompts that say what they were given."""

import itertools
import os
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CyclicDependency, PlanError
from engine.plan.from_prompts import plan_from_prompts, plan_of, step
from engine.plan.make import make_plan
from engine.plan.order import ordered
from engine.plan.prompts import fill
from engine.spec.load import manifest_from
from engine.spec.placeholders import SIMPLE, escaped, placeholders
from engine.spec.words import WORKER_CAP

EXAMPLES = 2_000 if os.environ.get("PLAIT_THOROUGH") else 100
QUICK = settings(max_examples=EXAMPLES, derandomize=True)
NAMES = st.lists(
    st.text(string.ascii_lowercase, min_size=1, max_size=3), min_size=1, max_size=12, unique=True
)
COUNT = st.integers(1, 300)
PIECES = ("{item}", "{run}", "{{item}}", "{steps.a.output}", "{other}", "{", "}", "{}", "a", "{{")
TEMPLATE = st.lists(st.sampled_from(PIECES)).map("".join)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Steps that can be ordered, given in any order."""
    names = draw(NAMES)
    behind = [st.lists(st.sampled_from(names[:i])) if i else st.just([]) for i in range(len(names))]
    graph = {name: draw(before) for name, before in zip(names, behind, strict=True)}
    return {name: graph[name] for name in draw(st.permutations(names))}


@st.composite
def tangles(draw: st.DrawFn) -> dict[str, list[str]]:
    names = draw(NAMES)
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in names}


@QUICK
@given(graphs())
def test_a_step_comes_after_all_it_waits_for(graph: dict[str, list[str]]):
    names = ordered(graph)
    assert sorted(names) == sorted(graph)
    assert all(names.index(d) < names.index(name) for name in names for d in graph[name])


@QUICK
@given(graphs())
def test_the_order_is_the_given_one_wherever_it_may_be(graph: dict[str, list[str]]):
    names = ordered(graph)
    for i, name in enumerate(names):
        done = set(names[:i])
        free = [n for n in graph if n not in done and done >= set(graph[n])]
        assert name == free[0]


@QUICK
@given(tangles())
def test_a_circle_that_is_named_is_one(graph: dict[str, list[str]]):
    try:
        names = ordered(graph)
    except CyclicDependency as error:
        found = error.steps
    else:
        assert sorted(names) == sorted(graph)
        return
    assert found[0] == found[-1]
    assert all(after in graph[name] for name, after in itertools.pairwise(found))
    assert len(set(found[:-1])) == len(found) - 1


def spread(draw: st.DrawFn) -> dict[str, Any]:
    match draw(st.sampled_from(["plain", "replicas", "variants", "matrix"])):
        case "replicas":
            return {"concurrency": draw(COUNT)}
        case "variants":
            counts = draw(st.lists(COUNT, min_size=1, max_size=4))
            return {"variants": [{"model": "m", "n": n} for n in counts]}
        case "matrix":
            items = [str(i) for i in range(draw(COUNT))]
            return {"strategy": {"matrix": {"items": items, "max_concurrency": draw(COUNT)}}}
        case _:
            return {}


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    steps = [
        {"name": f"s{i}", "agent": "claude", "prompt": "x", "max_concurrent_agents": draw(COUNT)}
        | spread(draw)
        for i in range(draw(st.integers(1, 4)))
    ]
    return {
        "runtime": {"max_concurrent_workers": draw(st.integers(1, 3 * WORKER_CAP))},
        "pipelines": [{"name": "p", "steps": steps}],
    }


@QUICK
@given(manifests())
def test_no_figure_passes_its_bound_and_no_cut_is_unseen(values: dict[str, Any]):
    plan = make_plan(manifest_from(values))
    asked = values["runtime"]["max_concurrent_workers"]
    cap = plan.runtime.max_concurrent_workers
    assert cap == min(asked, WORKER_CAP)
    expected = {"runtime.max_concurrent_workers": asked} if asked > WORKER_CAP else {}
    for planned, said in zip(plan.steps, values["pipelines"][0]["steps"], strict=True):
        expected |= expected_clamps(said, cap)
        assert "strategy" in said or len(planned.workers) <= cap
        assert planned.max_parallel is None or planned.max_parallel <= cap
        assert all(w.hint is None or 2 <= w.hint <= 10 for w in planned.workers)
        indices = [w.id.index for w in planned.workers]
        assert indices == list(range(1, len(planned.workers) + 1))
    assert {clamp.where: clamp.asked for clamp in plan.clamps} == expected
    assert all(clamp.given < clamp.asked for clamp in plan.clamps)


def expected_clamps(said: dict[str, Any], cap: int) -> dict[str, int]:
    name = said["name"]
    matrix = said.get("strategy", {}).get("matrix", {})
    figures = {
        f"{name}.concurrency": (said.get("concurrency", 0), cap),
        f"{name}.variants": (sum(v["n"] for v in said.get("variants", [])), cap),
        f"{name}.strategy.matrix.max_concurrency": (matrix.get("max_concurrency", 0), cap),
        f"{name}.max_concurrent_agents": (said["max_concurrent_agents"], 10),
    }
    return {where: asked for where, (asked, most) in figures.items() if asked > most}


@QUICK
@given(TEMPLATE, st.sampled_from(["{run}", "{steps.a.output}", "{{run}}", "{item}"]))
def test_a_value_is_put_in_as_it_is(template: str, value: str):
    """Filling with an odd value equals filling with a plain mark and replacing the mark."""
    filled = fill(template, {"item": value, "run": "RUN"})
    assert filled == fill(template, {"item": "\0", "run": "RUN"}).replace("\0", value)
    assert ("\0" in fill(template, {"item": "\0"})) == ("item" in placeholders(template))


@QUICK
@given(TEMPLATE | st.text(st.sampled_from("{} item"), max_size=40))
def test_an_escaped_text_comes_out_as_it_was(text: str):
    values = dict.fromkeys([*SIMPLE, "steps.a.output", "steps.b.branch"], "filled")
    assert fill(escaped(text), values) == text
    assert placeholders(escaped(text)) == ()


@QUICK
@given(
    st.lists(st.text(min_size=1, max_size=20).filter(str.strip), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.sampled_from(["claude", "codex", "pi"]), st.none() | st.integers(1, 9)),
        min_size=1,
        max_size=4,
    ),
    st.none() | st.integers(1, 5),
)
def test_a_command_line_gives_each_prompt_the_same_workers(
    prompts: list[str], agents: list[tuple[str, int | None]], replicas: int | None
):
    words = [name if n is None else f"{name}:{n}" for name, n in agents]
    plan = plan_from_prompts(prompts, words, replicas=replicas)
    each = [name for name, n in agents for _ in range(n or replicas or 1)][:10]
    assert [fill(s.workers[0].prompt, {}) for s in plan.steps] == prompts
    for planned in plan.steps:
        assert [w.agent.name for w in planned.workers if w.agent] == each
        assert not planned.dependencies


@QUICK
@given(graphs())
def test_a_plan_built_in_python_stands_in_the_same_order(graph: dict[str, list[str]]):
    built = plan_of(*(step(n, run="x", dependencies=tuple(d)) for n, d in graph.items()))
    assert [s.name for s in built.steps] == ordered(graph)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["first", "quorum"])
def test_a_policy_is_refused_exactly_when_it_needs_more_than_there_are(
    workers: int, n: int, kind: str
):
    values = {"name": "s", "agent": "pi", "prompt": "x", "concurrency": workers}
    manifest = manifest_from({"pipelines": [{"name": "p", "steps": [values]}]})
    said = manifest.pipelines[0].steps[0].model_copy(update={"policy": f"{kind}({n})"})
    pipeline = manifest.pipelines[0].model_copy(update={"steps": (said,)})
    changed = manifest.model_copy(update={"pipelines": (pipeline,)})
    if n > workers:
        with pytest.raises(PlanError, match=f"needs {n} workers"):
            make_plan(changed)
    else:
        assert make_plan(changed).steps[0].policy.n == n

"""Test what must agree between the parts of a manifest, and inside its steps."""

import pytest

from engine.errors import SpecError
from engine.spec.load import load_manifest

STEPS = "agents: {fast: {adapter: claude}}\npipelines:\n- name: p\n  steps:\n"


def problems(steps: str, *, head: str = "") -> list[str]:
    """Return what is wrong with the steps, the keys without `pipelines[0].`."""
    source = (head + "\n" + STEPS[STEPS.index("pipelines") :] if head else STEPS) + steps
    try:
        load_manifest(source.encode(), file="f")
    except SpecError as error:
        return [
            f"{p.line}:{p.column} {_short(p.key)}: {p.message}|{p.nearest or ''}"
            for p in error.problems
        ]
    return []


def _short(key: str) -> str:
    return key.removeprefix("pipelines[0].")


def one(step: str) -> list[str]:
    return [line.split(" ", 1)[1] for line in problems(f"  - {{name: s, {step}}}\n")]


@pytest.mark.parametrize(
    "step",
    [
        "prompt: x",
        "prompt: x, concurrency: 3, policy: first(3)",
        "prompt: x, concurrency: 3, policy: 'quorum:2'",
        "prompt: x, policy: race",
        "prompt: x, variants: [{agent: codex, n: 2}, {model: big}], concurrency: 3",
        "prompt: x, models: [a, b], concurrency: 2, policy: first(2)",
        "prompt: x, models: [a, b], variants: [{agent: codex}, {model: c, n: 2}], policy: first(4)",
        "prompt: 'p {item}', strategy: {matrix: {items: [a, b]}}, policy: first(2), merge: each",
        "run: make, strategy: {matrix: {items: [a]}}",
        "run: make, concurrency: 2, check: x, merge: choose",
        "prompt: x, choose: check, check: make, concurrency: 2",
        "prompt: '{{item}} {item', agent: codex",
        "prompt: '{files} {worker} {replica} {run} {step} {other} {steps} {steps.x}'",
        "prompt: x, timeout_minutes: 3, limits: {memory_mb: 1}",
    ],
)
def test_a_step_that_agrees_is_read(step: str):
    assert one(step) == []


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (
            "prompt: x, concurrency: 1, strategy: {matrix: {items: [a]}}",
            (
                "steps[0].concurrency: cannot be combined with `strategy.matrix`: a matrix has "
                "one worker for each item, and replicas share one prompt|"
            ),
        ),
        (
            "prompt: x, variants: [{model: a}], strategy: {matrix: {items: [a]}}",
            (
                "steps[0].variants: cannot be combined with `strategy.matrix`: a matrix has one "
                "worker for each item, and replicas share one prompt|"
            ),
        ),
        (
            "prompt: x, variants: [{agent: fast, n: 2}], concurrency: 3",
            "steps[0].concurrency: is 3, but variants and models make 2; leave it out|",
        ),
        (
            "prompt: x, models: [a, b], variants: [{agent: fast, n: 2}], concurrency: 3",
            "steps[0].concurrency: is 3, but variants and models make 4; leave it out|",
        ),
        (
            "prompt: x, models: [a, b, a]",
            "steps[0].models[2]: the model 'a' is listed twice|",
        ),
        (
            "prompt: x, variants: [{model: a, models: [b, c]}]",
            "steps[0].variants[0].model: duplicates `models`; keep one|",
        ),
        (
            "run: make, models: [a]",
            "steps[0].models: has no effect with `run`, because no agent works there|",
        ),
        (
            "prompt: x, models: [a], strategy: {matrix: {items: [a]}}",
            (
                "steps[0].models: cannot be combined with `strategy.matrix`: a matrix has one "
                "worker for each item, and replicas share one prompt|"
            ),
        ),
        (
            "prompt: x, variants: [{n: 2}]",
            "steps[0].variants[0]: a variant names an `agent` or a `model`|",
        ),
        (
            "prompt: x, concurrency: 2, policy: first(3)",
            "steps[0].policy: needs 3 workers, but the step has 2|",
        ),
        (
            "prompt: x, concurrency: 50, policy: 'quorum:11'",
            "steps[0].policy: needs 11 workers, but the step has 10|",
        ),
        (
            "prompt: x, policy: first(0)",
            (
                "steps[0].policy: expected all, settled, race, first(N) or quorum(N), with N at "
                "least 1, found the text 'first(0)'|"
            ),
        ),
        (
            "prompt: x, strategy: {matrix: {items: [a, b, a]}}",
            "steps[0].strategy.matrix.items[2]: the item 'a' is listed twice|",
        ),
        (
            "agent: fast",
            "steps[0]: a step needs a `prompt`, a `prompt_file` or a command to `run`|",
        ),
        (
            "run: x, agent: fast",
            "steps[0].agent: has no effect with `run`, because no agent works there|",
        ),
        (
            "run: x, prompt: y",
            "steps[0].prompt: has no effect with `run`, because no agent works there|",
        ),
        (
            "prompt: x, merge: choose, strategy: {matrix: {items: [a]}}",
            "steps[0].merge: the cells of a matrix do different work; write `each` or `none`|",
        ),
        (
            "prompt: x, merge: none, choose: human",
            "steps[0].choose: has no effect if no candidate is chosen|",
        ),
        (
            "prompt: x, choose: check",
            "steps[0].choose: `check` needs a `check` that candidates can pass|",
        ),
        (
            "prompt: x, timeout_minutes: 1, limits: {time_seconds: 60}",
            "steps[0].timeout_minutes: duplicates limits.time_seconds; keep one|",
        ),
        ("prompt: x, agent: fats", "steps[0].agent: there is no agent 'fats'|fast"),
        (
            "prompt: x, variants: [{agent: codecs}]",
            "steps[0].variants[0].agent: there is no agent 'codecs'|codex",
        ),
        (
            "prompt: x, agent: acp",
            "steps[0].agent: there is no agent 'acp'; known here: fast, scripted",
        ),
        (
            "prompt: x, persona: p",
            "steps[0].persona: there is no persona 'p'; known here: none|",
        ),
        (
            "prompt: 'do {item}'",
            (
                "steps[0].prompt: {item} has a value only with `strategy.matrix`; "
                "write {{item}} for the literal text|"
            ),
        ),
        (
            "prompt: x, dependencies: [s]",
            "steps[0].dependencies: steps wait for each other: s → s|",
        ),
        (
            "prompt: x, dependencies: [t]",
            "steps[0].dependencies[0]: there is no step 't'; known here: s|",
        ),
    ],
)
def test_a_step_that_contradicts_itself_is_told(step: str, complaint: str):
    found = one(step)
    assert len(found) == 1
    assert found[0].startswith(complaint)


def test_a_circle_is_named_where_it_begins():
    found = problems(
        "  - {name: a, prompt: x, dependencies: [c]}\n"
        "  - {name: b, prompt: x, dependencies: [a]}\n"
        "  - {name: c, prompt: x, dependencies: [b]}\n"
        "  - {name: d, prompt: x, dependencies: [c]}\n"
    )
    assert found == ["5:26 steps[0].dependencies: steps wait for each other: a → c → b → a|"]


def test_separate_circles_are_all_named():
    found = problems(
        "  - {name: a, prompt: x, dependencies: [b]}\n"
        "  - {name: b, prompt: x, dependencies: [a]}\n"
        "  - {name: c, prompt: x, dependencies: [c]}\n"
    )
    assert [line.split(": ", 1)[1] for line in found] == [
        "steps wait for each other: a → b → a|",
        "steps wait for each other: c → c|",
    ]


def test_an_unknown_dependency_names_the_nearest_step():
    found = problems(
        "  - {name: design, prompt: x}\n  - {name: b, prompt: x, dependencies: [desing, design]}\n"
    )
    assert found == ["6:41 steps[1].dependencies[0]: there is no step 'desing'|design"]


def test_a_repeated_step_name_is_told():
    found = problems("  - {name: a, prompt: x}\n  - {name: a, prompt: y}\n")
    assert found == ["6:12 steps[1].name: the name 'a' is already used by entry 1|"]


@pytest.mark.parametrize(
    ("prompt", "complaint"),
    [
        ("{steps.a.output} {steps.b.branch}", None),
        ("{steps.d.output}", "{steps.d.output}: this step does not depend on 'd'"),
        ("{steps.c.output}", "{steps.c.output}: this step does not depend on 'c'"),
        ("{steps.a.outptu}", "{steps.a.outptu}: a step has output and branch"),
        ("{{steps.d.output}}", None),
    ],
)
def test_a_prompt_refers_to_steps_it_waits_for(prompt: str, complaint: str | None):
    found = problems(
        "  - {name: a, prompt: x}\n"
        "  - {name: b, prompt: x, dependencies: [a]}\n"
        f"  - {{name: c, prompt: '{prompt}', dependencies: [b]}}\n"
        "  - {name: d, prompt: x}\n"
    )
    assert [line.split(": ", 1)[1].split("; write")[0] for line in found] == (
        [complaint] if complaint else []
    )


@pytest.mark.parametrize(
    ("head", "is_named"),
    [
        ("agents: {a: {adapter: claude}}", True),
        ("agents: {a: {adapter: claude}, b: {adapter: codex}}", False),
        ("runtime: {agent: codex}", True),
        ("runtime: {}", False),
    ],
)
def test_a_step_without_an_agent_takes_the_only_one(head: str, is_named: bool):  # noqa: FBT001 - a table
    found = problems("  - {name: s, prompt: x}\n", head=head)
    assert bool(found) is not is_named
    assert all("no agent is named; name one of" in line for line in found)


@pytest.mark.parametrize(
    ("agent", "complaint"),
    [
        ("{adapter: command}", "a: the adapter command needs `argv`: the program to run"),
        ("{adapter: acp, argv: [x]}", None),
        ("{adapter: claude, argv: [x]}", "a.argv: the adapter claude does not use it"),
        ("{adapter: codex, script: x}", "a.script: the adapter codex does not use it"),
        ("{adapter: scripted, script: [{say: x}]}", None),
        ("{adapter: command, argv: [x], terminal: true, events: false, prompt_via: stdin}", None),
    ],
)
def test_an_agent_has_what_its_adapter_understands(agent: str, complaint: str | None):
    found = problems("  - {name: s, prompt: x}\n", head=f"agents: {{a: {agent}}}")
    assert len(found) == bool(complaint)
    assert all(f"agents.{complaint}" in line for line in found)


@pytest.mark.parametrize("merge", ["choose", "each"])
def test_a_directory_merges_nothing(merge: str):
    head = "agents: {a: {adapter: claude}}\nruntime: {isolation_strategy: directory}"
    found = problems(f"  - {{name: s, prompt: x, merge: {merge}}}\n", head=head)
    assert "directory` has no git" in found[0]


def test_an_address_of_no_database_is_told():
    head = "agents: {a: {adapter: claude}}\nruntime: {database: {url_env: HISTORY}}"
    assert "has no effect without" in problems("  - {name: s, prompt: x}\n", head=head)[0]


@pytest.mark.parametrize(("named", "is_refused"), [("HISTORY", True), ("OTHER", False)])
def test_no_hole_hands_agents_the_address_of_the_shared_history(*, named: str, is_refused: bool):
    head = (
        "agents: {a: {adapter: claude}}\n"
        "runtime:\n"
        "  database: {strategy: shared, url_env: HISTORY}\n"
        f"  sandbox: {{env: [{named}]}}"
    )
    found = problems("  - {name: s, prompt: x}\n", head=head)
    assert bool(found) is is_refused
    assert all("which agents never get" in line for line in found)


@pytest.mark.parametrize(
    ("setting", "why"),
    [("isolation_strategy: directory", "only tracked files"), ("execution_mode: thread", "own")],
)
def test_what_binds_workers_to_this_machine_cannot_stand_beside_another_site(
    setting: str, why: str
):
    head = "agents: {{a: {{adapter: claude}}}}\nruntime: {{sites: {{default: {}}}, {}}}"
    step = "  - {name: s, prompt: x, merge: none}\n"
    assert why in problems(step, head=head.format("child", setting))[0]
    assert problems(step, head=head.format("local", setting)) == []


def test_a_step_names_a_site_that_there_is():
    (found,) = problems("  - {name: s, agent: claude, prompt: x, site: childe}\n")
    assert found.endswith("there is no site 'childe'|child"), found


def test_a_step_that_lives_elsewhere_is_bound_to_no_machine():
    head = "agents: {a: {adapter: claude}}\nruntime: {isolation_strategy: directory}"
    (found,) = problems("  - {name: s, prompt: x, merge: none, site: child}\n", head=head)
    assert "only tracked files reach this site" in found


CLUSTER = (
    "agents: {a: {adapter: claude}}\n"
    "runtime: {sites: {default: %s, gpu-box: {ray: {address: h:1}}}}"
)


@pytest.mark.parametrize(("default", "step"), [("gpu-box", "local"), ("local", "gpu-box")])
def test_a_cluster_is_a_site_under_its_name(default: str, step: str):
    steps = f"  - {{name: s, prompt: x, site: {step}}}\n"
    assert problems(steps, head=CLUSTER % default) == []


@pytest.mark.parametrize(
    ("sites", "complaint"),
    [
        ("{child: {ray: {address: h:1}}}", "the name child is taken"),
        ("{a/b: {ray: {address: h:1}}}", "letters, digits"),
        ("{box: child}", "expected a mapping"),
        ("{default: box}", "there is no site 'box'"),
        ("{box: {ray: {address: h:1, resources: {gpu: 0}}}}", "expected more than 0"),
    ],
)
def test_a_site_that_cannot_be_is_told(sites: str, complaint: str):
    head = f"agents: {{a: {{adapter: claude}}}}\nruntime: {{sites: {sites}}}"
    found = problems("  - {name: s, prompt: x}\n", head=head)
    assert complaint in found[0], found

"""Reading manifests: types, sections, keys; every problem with its place and the nearest key."""

import pytest
from pydantic import ValidationError

from engine.errors import SpecError
from engine.spec.load import MOST_PROBLEMS, load_manifest, manifest_from
from engine.spec.pipeline import Manifest
from engine.spec.reference import EXAMPLE
from engine.spec.runtime import NetworkRules, PermissionRules

STEP = "pipelines: [{name: p, steps: [{name: s, agent: claude, prompt: x}]}]\n"


def load(source: str) -> Manifest:
    return load_manifest(source.encode(), file="plait.yaml")


def problems(source: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(source)
    return [str(problem).removeprefix("plait.yaml:") for problem in caught.value.problems]


def test_the_example_of_the_reference_is_read_as_it_is_written():
    manifest = load(EXAMPLE)
    design, implement, compare, port, verify = manifest.pipelines[0].steps
    assert manifest.runtime.limits.memory_mb == 2048
    assert manifest.runtime.require == ("files", "git", "memory")
    assert manifest.agents["mine"].argv == ("./agent.sh", "{prompt}")
    assert manifest.workspace.ports == {"PORT": 1}
    assert (design.merge, design.artifacts) == ("none", ("design.md",))
    assert (implement.concurrency, implement.retry.attempts) == (3, 3)
    assert compare.variants is not None
    assert [v.n for v in compare.variants] == [1, 1, 2]
    assert port.strategy is not None
    assert port.strategy.matrix.items == ("a.py", "b.py")
    assert verify.run == "npm test"


def test_a_manifest_cannot_be_changed():
    with pytest.raises(ValidationError):
        load(STEP).runtime.auto_merge = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("head", "complaint"),
    [
        (
            "runtime: {auto_merge: yes}",
            (
                "1:23: runtime.auto_merge: expected true or false, found the text 'yes'; "
                "write true (no other word is a boolean)"
            ),
        ),
        (
            "runtime: {auto_merge: 'false'}",
            (
                "1:23: runtime.auto_merge: expected true or false, found the text 'false'; "
                "write false (no other word is a boolean)"
            ),
        ),
        (
            "runtime: {auto_merge: 1}",
            "1:23: runtime.auto_merge: expected true or false, found the number 1",
        ),
        (
            "runtime: {max_concurrent_workers: true}",
            "1:35: runtime.max_concurrent_workers: expected a whole number, found true",
        ),
        (
            "runtime: {max_concurrent_workers: '3'}",
            (
                "1:35: runtime.max_concurrent_workers: expected a whole number, found the text '3'"
                "; leave the quotes out"
            ),
        ),
        (
            "runtime: {max_concurrent_workers: 2.0}",
            "1:35: runtime.max_concurrent_workers: expected a whole number, found the number 2.0",
        ),
        (
            "runtime: {max_concurrent_workers: 0}",
            "1:35: runtime.max_concurrent_workers: expected at least 1, found the number 0",
        ),
        (
            "runtime: {limits: {budget_usd: 0}}",
            "1:32: runtime.limits.budget_usd: expected more than 0, found the number 0",
        ),
        (
            "runtime: {target: 7}",
            "1:19: runtime.target: expected text, found the number 7; put it in quotes",
        ),
        (
            "runtime: {land: {style: squish}}",
            (
                "1:25: runtime.land.style: expected one of merge, squash, rebase, "
                "found the text 'squish'; did you mean 'squash'?"
            ),
        ),
        (
            "runtime: {require: [files, memry]}",
            (
                "1:28: runtime.require[1]: expected one of files, git, network, memory, cpu, pids, "
                "time, disk, output, kill, found the text 'memry'; did you mean 'memory'?"
            ),
        ),
        (
            "runtime: {require: files}",
            "1:20: runtime.require: expected a list, found the text 'files'",
        ),
        (
            "runtime: [a]",
            "1:1: runtime: expected a mapping, found a list",
        ),
        (
            "runtime:",
            "1:9: runtime: expected a mapping, found nothing",
        ),
        (
            "runtime: {max_concurent_workers: 3}",
            (
                "1:11: runtime.max_concurent_workers: is not a known key; "
                "did you mean 'max_concurrent_workers'?"
            ),
        ),
        (
            "runtime: {land: {zzz: 3}}",
            "1:18: runtime.land.zzz: is not a known key; known here: style",
        ),
        (
            "workspace: {include: [../secret]}",
            (
                "1:23: workspace.include[0]: expected a path inside the repository: relative, "
                "without `..`, found the text '../secret'"
            ),
        ),
        (
            "workspace: {ports: {1x: 1}}",
            (
                "1:21: workspace.ports.1x: expected the name of an environment variable, "
                "found the text '1x'"
            ),
        ),
        (
            "agents: {a: {model: x}}",
            "1:1: agents.a.adapter: is missing",
        ),
        (
            "runtime: {sandbox: {network: {allow: []}}}",
            "1:31: runtime.sandbox.network.allow: expected at least 1 of them, found none",
        ),
        (
            "runtime: {permissions: {allowed: [x]}}",
            "1:25: runtime.permissions.allowed: is not a known key; did you mean 'allow'?",
        ),
        (
            "runtime: {permissions: 3}",
            "1:24: runtime.permissions: expected a mapping, found the number 3",
        ),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_the_manifest(head: str, complaint: str):
    found = problems(f"{head}\n{STEP}")
    if "agents.a.adapter" in complaint:
        complaint = "1:10:" + complaint.removeprefix("1:1:")
    assert found == [complaint]


@pytest.mark.parametrize("head", ["agents: {}\nagents: {}", "<<: {}", "agents: !x {}"])
def test_what_yaml_refuses_is_refused_though_the_rest_is_right(head: str):
    assert len(problems(f"{head}\n{STEP}")) == 1


def test_every_problem_is_told_at_once_in_order_of_place():
    found = problems(
        "runtime: {auto_merge: on, targt: x}\n"
        "pipelines:\n"
        "- name: p\n"
        "  steps:\n"
        "  - {name: Bad Name, agent: claude, prompt: 3}\n"
        "  - {name: s, agent: nobody, prompt: x, policy: most, dependencies: [t]}\n"
    )
    places = [tuple(map(int, line.split(":")[:2])) for line in found]
    assert places == sorted(places)
    keys = [line.split(" ")[1].rstrip(":") for line in found]
    assert keys == [
        "runtime.auto_merge",
        "runtime.targt",
        "pipelines[0].steps[0].name",
        "pipelines[0].steps[0].prompt",
        "pipelines[0].steps[1].agent",
        "pipelines[0].steps[1].policy",
        "pipelines[0].steps[1].dependencies[0]",
    ]


@pytest.mark.parametrize("name", ["a", "0", "fix-parser_2", "a" * 40])
def test_a_step_name_is_accepted(name: str):
    assert load(STEP.replace("name: s,", f"name: '{name}',")).pipelines[0].steps[0].name == name


@pytest.mark.parametrize("name", ["", "A", "-a", "_a", "a b", "a/b", "a.b", "ä", "a" * 41, "a\\n"])
def test_a_step_name_is_refused(name: str):
    found = problems(STEP.replace("name: s,", f'name: "{name}",'))
    assert "a name of 1 to 40 lowercase letters" in found[0]


def test_unions_are_read_by_their_shape():
    runtime = load(
        "runtime: {permissions: {allow: [x]}, sandbox: {network: {allow: [a.org]}}}\n" + STEP
    ).runtime
    assert runtime.permissions == PermissionRules(allow=("x",))
    assert runtime.sandbox.network == NetworkRules(allow=("a.org",))


def test_a_dict_is_read_like_a_file():
    step = {"name": "s", "agent": "claude", "prompt": "x", "concurrency": 2}
    manifest = manifest_from({"pipelines": [{"name": "p", "steps": [step]}]})
    assert manifest.pipelines[0].steps[0].concurrency == 2


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"pipelines": 3}, "<dict>:1:1: pipelines: expected a list, found the number 3"),
        ({"pipelines": [object()]}, "<dict>:1:1: pipelines[0]: has a value of type object, which"),
        ({3: "x"}, "<dict>:1:1: has a key that is not text: 3"),
        (
            {"runtime": {"land": {"style": b"x"}}},
            "<dict>:1:1: runtime.land.style: has a value of type bytes",
        ),
    ],
)
def test_a_wrong_dict_is_told_by_its_key(values: dict[str, object], complaint: str):
    with pytest.raises(SpecError) as caught:
        manifest_from(values)
    assert str(caught.value).startswith(complaint)


def test_a_number_that_python_would_not_write_is_refused():
    with pytest.raises(SpecError, match="expected a list, found a huge number"):
        manifest_from({"pipelines": 10**6000})


def test_a_dict_that_holds_itself_is_refused():
    values: dict[str, object] = {}
    values["runtime"] = values
    with pytest.raises(SpecError, match="nested deeper"):
        manifest_from(values)


def test_what_the_manifest_says_cannot_write_to_the_terminal():
    found = problems('"\\e[2J\\u202e": 1\nagents: {"\\a": {adapter: "\\e]0;x"}}\n' + STEP)
    assert len(found) == 3
    assert all(line.isprintable() for line in found)


def test_no_more_problems_are_told_than_anyone_reads():
    assert len(problems("".join(f"k{i}: 1\n" for i in range(500)))) == MOST_PROBLEMS


def test_a_short_list_of_wrong_members_is_told_by_its_members():
    assert problems("pipelines: [3]\n") == [
        "1:13: pipelines[0]: expected a mapping, found the number 3"
    ]

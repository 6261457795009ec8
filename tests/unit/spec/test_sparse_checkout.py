"""The folders that worktrees hold: what a manifest may say, and what a plan makes of it."""

import pytest

from engine.errors import SpecError
from engine.plan.make import make_plan
from engine.plan.model import Plan
from engine.spec.load import load_manifest

OUT = "expected a folder below the top of the repository: relative, without `..` and `!`"


def plan(run: str = "[]", step: str = "", runtime: str = "{}") -> Plan:
    own = f", sparse_checkout: {step}" if step else ""
    text = f"runtime: {runtime}\nworkspace: {{sparse_checkout: {run}}}\n"
    text += f"pipelines: [{{name: p, steps: [{{name: a, run: x}}, {{name: b, run: x{own}}}]}}]\n"
    return make_plan(load_manifest(text.encode(), file="f"))


def problems(run: str, step: str = "", runtime: str = "{}") -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as wrong:
        plan(run, step, runtime)
    return [(problem.key, problem.message) for problem in wrong.value.problems]


def test_a_step_replaces_the_folders_of_the_run():
    found = plan("[src, docs]", "[docs]")
    assert found.sparse_checkout_of("a") == ("src", "docs")
    assert found.sparse_checkout_of("b") == ("docs",)
    assert plan("[src]", "[]").sparse_checkout_of("b") == ()
    assert plan().sparse_checkout_of("a") == ()


@pytest.mark.parametrize(
    "path", ["/etc", "../x", "src/../../x", "''", ".", "./", "'!src'", '"a\\nb"']
)
def test_a_path_that_leads_out_or_names_no_folder_is_refused(path: str):
    ((key, said),) = problems(f"[src, {path}]")
    assert key == "workspace.sparse_checkout[1]"
    assert said.startswith(OUT)
    ((key, said),) = problems("[src]", f"[{path}]")
    assert key == "pipelines[0].steps[1].sparse_checkout[0]"
    assert said.startswith(OUT)


def test_a_folder_is_named_once():
    assert problems("[src, src]") == [
        ("workspace.sparse_checkout[1]", "the folder 'src' is listed twice")
    ]


def test_plain_folders_have_nothing_to_leave_out():
    said = "needs git, and there is none with `isolation_strategy: directory`"
    runtime = "{isolation_strategy: directory}"
    assert problems("[src]", "", runtime) == [("workspace.sparse_checkout", said)]
    key = "pipelines[0].steps[1].sparse_checkout"
    assert problems("[]", "[src]", runtime) == [(key, said)]

"""First manifests: whatever a repository holds, what is written for it is read and planned."""

from itertools import combinations

import pytest

from engine.plan.make import make_plan
from engine.plan.starter import _HABITS, _LOCAL, ProjectFacts, guessed_check, init_manifest
from engine.spec.load import load_manifest
from engine.spec.pipeline import Manifest
from engine.spec.words import ADAPTERS

NAMES = [habit.file.replace("*", "x") for habit in _HABITS]


def read(facts: ProjectFacts) -> Manifest:
    manifest = load_manifest(init_manifest(facts).encode(), file="plait.yaml")
    assert len(make_plan(manifest).steps[0].workers) == 3
    return manifest


@pytest.mark.parametrize("agents", [(), ("codex", "claude"), ADAPTERS, ("command", "acp", "new")])
def test_every_pair_of_files_and_any_agents_give_a_manifest(agents: tuple[str, ...]):
    for local in ((), *combinations(_LOCAL, 1), _LOCAL):
        for names in ((), *combinations(NAMES, 1)):
            read(ProjectFacts(files={*names, *local}, agents=agents))
    for names in combinations(NAMES, 2):
        load_manifest(
            init_manifest(ProjectFacts(files=set(names), agents=agents)).encode(), file="f"
        )


@pytest.mark.parametrize(
    ("files", "setup", "check"),
    [
        ({"pyproject.toml", "uv.lock", "package.json"}, "uv sync", "uv run pytest -q"),
        ({"package.json", "package-lock.json"}, "npm ci", "npm test"),
        ({"bun.lockb", "package.json"}, "bun install --frozen-lockfile", "bun test"),
        ({"Cargo.toml", "Makefile"}, "cargo fetch", "cargo test"),
        ({"Makefile"}, None, "make test"),
        ({"README.md"}, None, None),
    ],
)
def test_commands_are_guessed_from_the_files(files: set[str], setup: str | None, check: str | None):
    manifest = read(ProjectFacts(files=files))
    assert manifest.workspace.setup == setup
    assert manifest.pipelines[0].steps[0].check == check


@pytest.mark.parametrize(
    ("files", "bare", "prepared"),
    [
        ({"Makefile", "README.md"}, "make test", "make test"),
        ({"package-lock.json", "package.json"}, "npm ci && npm test", "npm test"),
        ({"README.md"}, None, None),
    ],
)
def test_a_guessed_check_prepares_what_nothing_else_does(
    files: set[str], bare: str | None, prepared: str | None
):
    found = [guessed_check(files, is_set_up=is_set_up) for is_set_up in (False, True)]
    assert [guess and guess.command for guess in found] == [bare, prepared]


def test_a_guess_names_the_file_that_it_is_from():
    guess = guessed_check({"b.sln", "a.sln", "README.md"}, is_set_up=True)
    assert guess == ("dotnet test", "a.sln")


def test_the_best_agent_found_works():
    manifest = read(ProjectFacts(agents=("codex", "claude")))
    assert list(manifest.agents) == ["codex", "claude"]
    assert manifest.pipelines[0].steps[0].agent == "codex"


def test_an_agent_that_is_there_goes_before_one_that_plays_a_script():
    manifest = read(ProjectFacts(agents=("scripted", "codex")))
    assert list(manifest.agents) == ["codex"]


def test_an_agent_that_is_not_installed_is_marked():
    marked = "claude: {adapter: claude}   # not installed here"
    assert marked in init_manifest(ProjectFacts(agents=("scripted",)))
    assert marked not in init_manifest(ProjectFacts(agents=("claude",)))


def test_local_files_are_copied_in():
    assert read(ProjectFacts(files={".env"})).workspace.include == (".env",)


def test_every_line_in_a_comment_is_right_too():
    page = init_manifest(ProjectFacts(files={"README.md"}))
    marks = ("# include", "# setup", "# check", "# auto_merge", "# workspace")
    for mark in marks:
        assert mark in page
        page = page.replace(mark, mark.removeprefix("# "))
    manifest = load_manifest(page.encode(), file="f")
    assert manifest.workspace.setup == "npm ci"
    assert manifest.runtime.auto_merge

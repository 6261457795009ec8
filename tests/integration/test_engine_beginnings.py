"""Test what a run can be started with in a folder is found out without starting anything."""

from pathlib import Path

import pytest

from engine.api import Beginnings, OfferedAgent, look_for_beginnings
from tests.support.engine_runs import Place
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
MANIFEST = """
agents:
  quick: {adapter: scripted, script: {steps: [{say: hello}]}}
  gone: {adapter: command, argv: [no-such-program, "{prompt}"]}
  deep: {adapter: claude, model: opus}
pipelines:
  - {name: day, steps: [{name: a, agent: quick, prompt: x, check: "make check"}]}
  - {name: night, steps: [{name: a, agent: quick, prompt: x}]}
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def found_in(place: Place, *programs: str, **more: str) -> Beginnings:
    """Look with nothing on the PATH but programs of such names, and a HOME without logins."""
    folder = place.tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name in programs:
        (folder / name).write_text("#!/bin/sh\necho 3.2.1\n")
        (folder / name).chmod(0o755)
    home = {"PATH": str(folder), "HOME": str(place.outside), **more}
    return await look_for_beginnings(place.project, {**place.environment, **home})


def agent(found: Beginnings, name: str) -> OfferedAgent:
    return next(one for one in found.agents if one.name == name)


async def test_agents_are_told_with_their_login_or_the_way_to_get_them(place: Place):
    found = await found_in(place, "codex", "claude", ANTHROPIC_API_KEY="x")
    assert {one.name for one in found.agents if one.is_installed} == {"claude", "codex"}
    assert found.agents[:2] == (agent(found, "claude"), agent(found, "codex"))
    assert (agent(found, "claude").version, agent(found, "claude").login) == (
        "3.2.1",
        "by ANTHROPIC_API_KEY",
    )
    assert agent(found, "codex").login is None
    assert "npm install" in agent(found, "gemini").install_hint
    assert found.agent == "claude"
    assert found.machine


async def test_the_agents_and_the_check_of_a_manifest_come_first(place: Place):
    (place.project / "plait.yaml").write_text(MANIFEST)
    (place.project / "Makefile").touch()
    (place.project / "other.yml").write_text("a list: [1]\n")
    (place.project / "wrong.yaml").write_text("pipelines:\n  - {name: [}\n")
    found = await found_in(place, "codex")
    assert [one.name for one in found.agents[:4]] == ["quick", "gone", "deep", "codex"]
    assert [one.is_installed for one in found.agents[:4]] == [True, False, False, True]
    assert (found.agent, agent(found, "deep").model) == ("quick", "opus")
    assert (found.check, found.check_from, found.is_check_guessed) == (
        "make check",
        "plait.yaml",
        False,
    )
    assert found.manifests == (("plait.yaml", "day"), ("plait.yaml", "night"), ("wrong.yaml", ""))


async def test_a_check_is_guessed_where_none_is_written(place: Place):
    (place.project / "Makefile").touch()
    found = await found_in(place)
    assert (found.check, found.check_from, found.is_check_guessed) == (
        "make test",
        "Makefile",
        True,
    )
    assert not any(one.is_installed for one in found.agents)


async def test_the_files_of_the_repository_are_listed_without_what_git_ignores(place: Place):
    files = {"src/reader.py": "", "src/build/made.o": "", ".gitignore": "build\n"}
    RepositoryBuilder(place.project).commit({"src/reader.py": "", ".gitignore": "build\n"})
    for name in [*files, "new file.txt"]:
        (place.project / name).parent.mkdir(parents=True, exist_ok=True)
        (place.project / name).write_text(files.get(name, ""))
    found = await look_for_beginnings(place.project, place.environment)
    assert sorted(found.files) == [".gitignore", "new file.txt", "src/reader.py"]


async def test_a_folder_without_git_lists_no_files(place: Place):
    (place.project / "a.txt").touch()
    assert (await look_for_beginnings(place.project, place.environment)).files == ()

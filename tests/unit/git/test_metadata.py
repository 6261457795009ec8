"""Tests of the names that are read with GitPython."""

import os
from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.git.metadata import branch_names, current_branch
from tests.support.repositories import RepositoryBuilder
from tui.cli import main

ASTRAY = ["GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"]


@pytest.mark.parametrize("name", ASTRAY)
def test_a_variable_that_leads_git_astray_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    assert current_branch(built.path) == "main"
    monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    for read in (current_branch, branch_names):
        with pytest.raises(WorkspaceError) as refused:
            read(built.path)
        assert name in refused.value.hint


@pytest.mark.parametrize("name", ASTRAY)
def test_the_program_is_not_led_astray(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    monkeypatch.setenv(name, "/nowhere")
    assert main(["--version"]) == 0
    assert "plait" in capsys.readouterr().out
    assert name not in os.environ

"""Shells for stories: one in a plain folder, one in a repository."""

from pathlib import Path

import pytest

from tests.support.shells import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "project"
    folder.mkdir()
    return Shell(folder, tmp_path / "state")


@pytest.fixture
def repository(shell: Shell) -> Shell:
    shell.git("init", "-q", "-b", "main")
    shell.git("config", "user.name", "A")
    shell.git("config", "user.email", "a@b")
    (shell.folder / "a.txt").write_text("one\ntwo\nthree\n")
    shell.git("add", ".")
    shell.git("commit", "-qm", "first")
    return shell

"""Shells for stories: one in a plain folder, one in a repository."""

from pathlib import Path

import pytest

from tests.support.shells import Shell


@pytest.fixture
def site() -> str:
    """The site where workers live; a parameter of that name plays a story at another."""
    return "local"


@pytest.fixture
def shell(tmp_path: Path, site: str) -> Shell:
    folder = tmp_path / "project"
    folder.mkdir()
    return Shell(folder, tmp_path / "state", env={"PLAIT_SITE": site})


@pytest.fixture
def repository(shell: Shell) -> Shell:
    shell.git("init", "-q", "-b", "main")
    shell.git("config", "user.name", "A")
    shell.git("config", "user.email", "a@b")
    (shell.folder / "a.txt").write_text("one\ntwo\nthree\n")
    shell.git("add", ".")
    shell.git("commit", "-qm", "first")
    return shell

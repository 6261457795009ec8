"""Repositories for agents used from Python, scripts for them, and looking for what they leave."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine_runs import Place
from tests.support.repositories import RepositoryBuilder


class Workbench(Place):
    """A git repository with one commit, whose owner's environment this process has."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(tmp_path)
        self.git = RepositoryBuilder(self.project)
        self.git.commit({"a.txt": "one\n"}, "begin")
        for key, value in self.git.environment.items():
            if not key.endswith("_DATE"):
                monkeypatch.setenv(key, value)
        monkeypatch.setenv("PLAIT_STATE_HOME", self.environment["PLAIT_STATE_HOME"])

    def worktrees(self) -> list[str]:
        """Every checkout of the repository but the user's own."""
        lines = self.git.git("worktree", "list", "--porcelain").splitlines()
        return [line for line in lines if line.startswith("worktree ")][1:]

    def sets_up(self, command: str) -> None:
        """Have every workspace set up by this command."""
        step = "pipelines:\n- name: p\n  steps:\n  - {name: s, run: 'true'}\n"
        manifest = f"workspace: {{setup: '{command}'}}\n{step}"
        (self.project / "plait.yaml").write_text(manifest)

    def shown(self, commit: str | None, path: str) -> str:
        """A file as it is in a commit."""
        return self.git.git("show", f"{commit}:{path}")


def script(*steps: Any, **more: Any) -> dict[str, Any]:
    """The options of a scripted agent that does this."""
    return {"script": {"steps": list(steps), **more}}


WRITES = script({"write": {"path": "b.txt", "text": "{prompt}\n"}}, {"result": "did {prompt}"})
SLOW = script({"write": {"path": "b.txt", "text": "begun\n"}}, {"say": "begun"}, {"hang": True})


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with functions at its top, as a program of a user's would have."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "my_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(folder)
    import my_functions  # type: ignore[import-not-found]  # noqa: PLC0415 - made just now

    yield my_functions
    del sys.modules["my_functions"]


FUNCTIONS = """
import os
import pathlib


def shout(text):
    return text.upper() + "!"


def work(prompt, context):
    pathlib.Path(context.workspace, "made.txt").write_text(prompt)
    context.say("at it")
    loud = context.tools["shout"](prompt) if context.tools else prompt
    return f"{loud} by {os.getpid()}"


def fail(prompt):
    raise ValueError("cannot " + prompt)
"""

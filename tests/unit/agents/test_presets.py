"""Agents that an extra installs are found beside plait's own interpreter."""

import sys
from pathlib import Path

import pytest

from engine.agents.presets import own_program


def test_a_program_that_an_extra_installed_is_taken_from_beside_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert own_program("mini") == "mini"
    (tmp_path / "mini").touch()
    assert own_program("mini") == str(tmp_path / "mini")

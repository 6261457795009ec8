"""The example runs as it stands, from a clone, and lands what it says."""

import sys
from pathlib import Path

import anyio
import pytest

from tests.support.library import Workbench

EXAMPLE = Path(__file__).parents[2] / "examples/three_candidates.py"


def test_three_candidates_are_checked_and_the_smallest_lands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE.parents[1]))
    done = anyio.run(anyio.run_process, [sys.executable, str(EXAMPLE), str(bench.project)])
    said = done.stdout.decode()
    assert "hasty: " in said
    assert "AssertionError" in said
    assert "wordy: 10 lines" in said
    assert "plain: 5 lines" in said
    assert (bench.project / "split.py").read_text().startswith("import csv")
    assert bench.worktrees() == []

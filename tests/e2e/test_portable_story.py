"""Without /proc, prctl, cgroups and a sandbox: attempts run, are limited, and end whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shells import Shell

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
ASKS = """
from engine.keeper import proc

def test_it():
    proc.read("/proc/self/stat")
"""


def suite(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    env = {**os.environ, "PLAIT_PORTABLE": "1", **env}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_who_asks_proc_where_there_is_none_is_found(tmp_path: Path):
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_it.py").write_text(ASKS)
    words = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path))
    assert suite(*words, PLAIT_PORTABLE="0").returncode == 0
    done = suite(*words)
    assert done.returncode == 1
    assert "which is Linux alone" in done.stdout


def test_the_host_of_attempts_keeps_its_contract():
    done = suite("tests/integration/test_host_local.py")
    assert done.returncode == 0, done.stdout


def test_a_limit_is_sampled_and_a_whole_run_is_played(repository: Shell):
    repository.env["PLAIT_PORTABLE"] = "1"
    (repository.folder / "plait.yaml").write_text(
        "pipelines:\n- name: p\n  steps:\n"
        "  - {name: good, run: 'echo made > made.txt'}\n"
        "  - {name: hog, run: 'x=$(head -c 300000000 /dev/zero | tr \\\\0 x); sleep 60',"
        " limits: {memory_mb: 100}}\n"
        "  - {name: slow, run: 'sleep 600 & sleep 600', limits: {time_seconds: 1}}\n"
    )
    env = {**repository._environment(), "PYTHONPATH": str(ROOT)}

    def plait(*words: str) -> "subprocess.CompletedProcess[str]":
        argv = [sys.executable, "-m", "tui.cli", *words]
        return subprocess.run(
            argv, cwd=repository.folder, env=env, capture_output=True, text=True, check=False
        )

    assert plait("run", "plait.yaml", "--headless").returncode == 1
    told = plait("status").stdout
    rows = [line.split() for line in told.splitlines() if "worker_1" in line]
    phases = {name: rest[:2] for name, *rest in rows}
    assert phases["good/worker_1"][0] == "FINISHED", told
    assert phases["hog/worker_1"] == ["FAILED", "MEMORY"], told
    assert phases["slow/worker_1"] == ["FAILED", "TIMEOUT"], told

"""Test what a test needs and does not say: red on a machine that lacks it; said, it is counted."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import need

ROOT = Path(__file__).parents[2]
USES = """
import subprocess
import pytest

{marker}
def test_a_fence():
    subprocess.run(["bwrap", "--version"], check=True, capture_output=True)
"""
SAYS = '@pytest.mark.needs("bubblewrap")'
LACKS = "1 test skipped: bubblewrap is not installed (apt install bubblewrap)"


def run_suite(
    folder: Path, tests: str, *words: str, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run tests in a process whose PATH leads nowhere, with this suite's own rules."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(tests)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "-c"]
    return subprocess.run(
        [*argv, str(ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder)],
        cwd=ROOT,
        env={"PATH": str(folder), "HOME": str(folder), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_that_uses_what_is_missing_and_does_not_say_so_is_red(tmp_path: Path):
    done = run_suite(tmp_path, USES.format(marker=""))
    assert done.returncode == 1, done.stdout
    assert "No such file or directory: 'bwrap'" in done.stdout


def test_a_test_that_says_what_it_needs_is_skipped_and_counted(tmp_path: Path):
    done = run_suite(tmp_path, USES.format(marker=SAYS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert LACKS in done.stdout.splitlines()


def test_on_ci_the_same_skip_is_a_failure(tmp_path: Path):
    done = run_suite(tmp_path, USES.format(marker=SAYS), PLAIT_CI="1")
    assert done.returncode == 1, done.stdout
    assert "PLAIT_CI=1 forbids it: bubblewrap is not installed" in done.stdout


def test_a_skip_that_does_not_say_how_to_get_what_lacks_is_red(tmp_path: Path):
    done = run_suite(tmp_path, USES.format(marker='@pytest.mark.skip("no fence here")'))
    assert done.returncode == 1, done.stdout
    assert "does not end with how to get it, in brackets: no fence here" in done.stdout


def test_a_misspelled_need_is_an_error():
    with pytest.raises(KeyError, match="bubblewarp"):
        need("bubblewarp")


CASES = """
import pytest

@pytest.mark.parametrize("case", range(5))
def test_many(case):
    print("case", case)

@pytest.mark.long
def test_long():
    raise AssertionError

def test_single():
    pass
"""


@pytest.mark.parametrize("way", [(), ("-n", "2")])
def test_a_short_run_takes_one_case_of_a_test_and_says_what_it_left_out(
    tmp_path: Path, way: tuple[str, ...]
):
    done = run_suite(tmp_path, CASES, "--short", *way)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 longer tests and cases left out (make test-all)" in done.stdout.splitlines()
    assert "2 passed" in done.stdout


def test_a_whole_run_takes_all_cases_and_long_tests(tmp_path: Path):
    done = run_suite(tmp_path, CASES)
    assert done.returncode == 1, done.stdout
    assert "1 failed, 6 passed" in done.stdout

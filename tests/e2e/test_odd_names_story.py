"""A project, a state, a HOME and a TMPDIR whose names no shell leaves as they are."""

import os
from pathlib import Path

import pytest

from tests.support.needs import need
from tests.support.shells import Shell

MANIFEST = """
workspace: {setup: "echo set up > setup.log"}
pipelines:
  - name: p
    steps:
      - name: write
        run: 'echo one > "a file.txt"; git add -A; git commit -qm "one of mine"'
        check: 'test -f "a file.txt" && test -f setup.log'
        merge: each
      - name: again
        run: 'test -e tried || { touch ../tried 2>/dev/null; echo two > two.txt; }'
        dependencies: [write]
        merge: each
"""
CASES = [
    ("with a space", "bwrap"),
    ('quote\'s "and" $dollar', "landlock"),
    ("semi;colon&more", "none"),
    ("é ünï (1)", "bwrap"),
]


@pytest.mark.parametrize(("name", "rung"), CASES)
def test_a_run_is_made_checked_landed_undone_exported_and_cleaned(
    tmp_path: Path, name: str, rung: str
):
    need(*{"bwrap": ["bubblewrap"], "landlock": ["landlock"]}.get(rung, []))
    odd = tmp_path / name
    for folder in ("project", "home", "tmp"):
        (odd / folder).mkdir(parents=True)
    env = {"PLAIT_SANDBOX": rung, "HOME": str(odd / "home"), "TMPDIR": str(odd / "tmp")}
    shell = Shell(odd / "project", odd / "state", env)
    shell.git("init", "-q", "-b", "main")
    shell.git("config", "user.name", "A")
    shell.git("config", "user.email", "a@b")
    (shell.folder / "plait.yaml").write_text(MANIFEST)
    shell.git("add", ".")
    shell.git("commit", "-qm", "first")

    def ok(*words: str) -> str:
        done = shell.plait(*words)
        assert done.code == 0, (words, done.out, done.err)
        return done.out

    ran = shell.plait("run", "plait.yaml", "--headless")
    assert ran.code in {0, 3}, ran.err
    assert "a file.txt" in ok("diff", "write/worker_1")
    if rung != "none":
        assert ok("shell", "write/worker_1", "--", "cat", "a file.txt") == "one\n"
    ok("land", "write/worker_1")
    assert shell.git("show", "main:a file.txt") == "one\n"
    ok("undo")
    ok("export", "--to", str(odd / "a copy"))
    ok("clean")
    assert os.listdir(odd / "a copy")  # noqa: PTH208 - any name will do

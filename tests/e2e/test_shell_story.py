"""A human inside a worker's sandbox: what may be touched there, and what may not."""

import pytest

from tests.support.console_story import console_story
from tests.support.shells import Shell

PLAN = """
agents:
  writer:
    adapter: scripted
    script: |
      steps: [{write: {path: made.txt, text: "made"}}]
pipelines:
  - name: p
    steps: [{name: write, agent: writer, prompt: "write"}]
"""


@pytest.fixture
def written(repository: Shell) -> Shell:
    """A repository in which a worker has written a file that waits for review."""
    (repository.folder / "plait.yaml").write_text(PLAN)
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    return repository


def test_a_program_runs_where_the_agent_ran_and_reaches_no_further(written: Shell) -> None:
    outside = written.folder / "evil.txt"
    script = f"cat made.txt; echo > mine.txt; git log --oneline; echo > {outside}; exit 7"
    done = written.plait("shell", "write/worker_1", "--", "sh", "-c", script)
    assert done.code == 7, done.err
    assert "made" in done.out
    assert "first" in done.out
    assert "is not part of its change" in done.err
    assert not outside.exists()
    assert written.plait("shell", "write/worker_1", "--", "test", "-f", "mine.txt").code == 0


def test_a_shell_has_a_terminal_of_its_own(written: Shell) -> None:
    with console_story(written, "shell", "write/worker_1", size=(90, 20)) as shell:
        shell.shows("attempt_1$")
        shell.press(b"echo $((6*7))-$(cat made.txt) $(stty size)\n")
        shell.shows("42-made 20 90")
        shell.press(b"exit 3\n")
        assert shell.end() == 3


def test_who_has_no_workspace_is_told_so(written: Shell) -> None:
    done = written.plait("shell", "nobody/worker_1", "true")
    assert done.code == 2
    assert "nobody" in done.err
    assert "Traceback" not in done.err

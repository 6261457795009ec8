"""A human inside a worker's sandbox: what may be touched there, and what may not."""

import os
import shlex
from collections.abc import Iterator

import pytest

from tests.support.console_story import PLAIT, terminal_story
from tests.support.needs import need, why_not
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long
# In a sandbox of mounts root is somebody else; behind Landlock it stays root.
PROMPT = "#" if os.getuid() == 0 and why_not("bubblewrap") else "$"

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
def written(repository: Shell) -> Iterator[Shell]:
    """A repository in which a worker has written a file that waits for review."""
    (repository.folder / "plait.yaml").write_text(PLAN)
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    yield repository
    end_engine(repository)


@pytest.mark.parametrize("rung", ["bwrap", "landlock"])
def test_a_program_runs_where_the_agent_ran_and_reaches_no_further(
    written: Shell, rung: str
) -> None:
    need("bubblewrap" if rung == "bwrap" else rung)
    written.env["PLAIT_SANDBOX"] = rung
    outside = written.folder / "evil.txt"
    script = f"cat made.txt; echo > mine.txt; git log --oneline; echo > {outside}; exit 7"
    done = written.plait("shell", "write/worker_1", "--", "sh", "-c", script)
    assert done.code == 7, done.err
    assert "made" in done.out
    assert "first" in done.out
    assert "are not part of its change" in done.err
    assert not outside.exists()
    assert written.plait("shell", "write/worker_1", "--", "test", "-f", "mine.txt").code == 0

    nobody = written.plait("shell", "nobody/worker_1", "true")
    assert nobody.code == 2
    assert "nobody" in nobody.err
    assert "Traceback" not in nobody.err


def test_editors_shells_and_the_users_own_shell_get_the_terminal_and_give_it_back(
    written: Shell,
) -> None:
    """E on the worktree and on a file, T, ctrl+z and fg, as in a shell with job control."""
    script = 'echo "editing $1"; read said; echo "$said" >> notes.txt'
    written.env |= {"EDITOR": f"sh -c {shlex.quote(script)} sh", "PS1": "at-home% "}
    with terminal_story(written, "bash", "--norc", "-i") as terminal:
        terminal.shows("at-home%").press(f"'{PLAIT}' attach\r".encode())
        terminal.shows("write/worker_1").do("fleet.edit_all").shows("editing .").enters("whole")
        terminal.shows("Your edits are in the workspace of write/worker_1")

        terminal.do("fleet.diff").shows("made.txt", "+1").do("diff.edit_all")
        terminal.shows("/made.txt").enters("part").shows("nothing was changed")

        terminal.do("diff.terminal").shows(f"attempt_1{PROMPT}", "ctrl+] leaves it")
        terminal.press(b"echo $((6*7))-$(tr '\\n' , <notes.txt) $(stty size)\r")
        terminal.shows("42-whole, ")
        terminal.press(b"\x1d")
        terminal.shows("The shell keeps running").do("worker.diff").shows("made.txt")
        terminal.do("diff.terminal").shows("42-whole, ")
        terminal.press(b"exit\r")
        terminal.shows("The shell of write/worker_1 ended with exit code 0").do("worker.diff")

        terminal.do("everywhere.to_shell").shows("Stopped", "at-home%").press(b"fg\r")
        terminal.shows("made.txt", "hjkl move").do("everywhere.help").shows("type to search keys")
        terminal.do("everywhere.quit_now").shows("at-home%").press(b"exit\r")
        assert terminal.end() == 0

"""The whole result of a merge in the installed console: read, edited, checked, landed, undone."""

from collections.abc import Iterator

import pytest
import yaml

from tests.support.console_story import StoryConsole, console_story
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long
BASE = b"one\r\ntwo\r\nthree\r\n"
CHECK = "echo looked-at; ! grep -qs more plain.txt"
_EDITOR = """#!/bin/sh
for file; do :; done
case "$file" in */message.md) exit 9;; esac
printf 'good\\r\\n' >> "$file"
"""


def _step(name: str, texts: dict[str, str]) -> dict[str, object]:
    writes = [{"write": {"path": path, "text": text}} for path, text in texts.items()]
    agent = {"adapter": "scripted", "script": {"steps": [*writes, {"result": "done"}]}}
    return {"name": name, "agent": name, "prompt": name, "check": CHECK, "_agent": agent}


@pytest.fixture
def met(repository: Shell) -> Iterator[Shell]:
    """A repository in which two of three workers changed the same line of a file with CRLF."""
    steps = [
        _step("s1", {"win.txt": "one\r\nmine\r\nthree\r\n"}),
        _step("s2", {"win.txt": "one\r\ntheirs\r\nthree\r\n", "plain.txt": "plain\n"}),
        _step("s3", {"other.txt": "other\n"}),
    ]
    agents = {step["name"]: step.pop("_agent") for step in steps}
    plan = {"agents": agents, "pipelines": [{"name": "meet", "steps": steps}]}
    (repository.folder / "plait.yaml").write_text(yaml.safe_dump(plan))
    (repository.folder / "win.txt").write_bytes(BASE)
    repository.git("add", ".")
    repository.git("commit", "-qm", "start")
    editor = repository.state.parent / "editor"
    editor.parent.mkdir(parents=True, exist_ok=True)
    editor.write_text(_EDITOR)
    editor.chmod(0o755)
    repository.env["EDITOR"] = str(editor)
    yield repository
    end_engine(repository)


def _at(console: StoryConsole, worker: str, screen: str) -> StoryConsole:
    console.do("fleet.pick").shows("type a name")
    console.press(worker.encode())
    console.shows(worker).press(b"\r")
    return console.do(f"everywhere.go_{screen}")


def test_a_result_is_read_edited_checked_landed_and_undone(met: Shell) -> None:
    assert met.plait("run", "plait.yaml", "--detach").code == 0
    with console_story(met, "attach") as console:
        console.shows("NEEDS YOU 3")
        assert met.plait("land", "s1/worker_1").code == 0
        met.plait("land", "s2/worker_1")
        _at(console, "s2", "review").shows("s2/worker_1 → main", "1 open")
        console.do("review.take_both").shows("Everything is resolved", "the whole result")
        console.do("review.diff").shows("→ main as it is now", "win.txt", "plain.txt")
        console.shows("you took", "theirs␍", "merged by git")
        _edited_and_checked(console)
        _moved_while_open(met, console)
        console.shows("landed as", "u undoes it")
        text = met.git("show", "main:win.txt")
        assert text.split() == ["one", "mine", "theirs", "three", "good"]
        console.do("diff.undo").shows("Undo the landing of s2/worker_1?")
        console.do("diff.undo").shows("is undone")
        assert "theirs" not in met.git("show", "main:win.txt")
        console.do("everywhere.quit_now")
        assert console.end() == 0
    assert not met.git("status", "--porcelain", "--", "win.txt", "plain.txt")


def _edited_and_checked(console: StoryConsole) -> None:
    """Edit the file with CRLF in an editor that sees its name; check the result."""
    console.do("everywhere.unit_down").shows("▌M win.txt")
    console.do("diff.edit_all").shows("good␍", "win.txt is edited", "you edited it")
    console.do("diff.check").shows("proved on the exact tree")
    console.do("diff.show_check").shows("looked-at", "exit code 0")
    console.press(b"q")


def _moved_while_open(met: Shell, console: StoryConsole) -> None:
    """Land while the target has moved: the merge is made anew, and nothing else lands."""
    assert met.plait("land", "s3/worker_1").code == 0
    console.do("diff.land")
    console.shows("the target moved, so plait merged again")
    console.shows("check not run on this result").do("diff.land")


def test_an_unconflicted_change_is_edited_checked_red_and_taken_back_to_green(met: Shell) -> None:
    assert met.plait("run", "plait.yaml", "--detach").code == 0
    with console_story(met, "attach") as console:
        console.shows("NEEDS YOU 3")
        _at(console, "s2", "diff").shows("plain.txt", "win.txt")
        console.do("everywhere.down").shows("▌        1  + plain")
        console.do("diff.edit").shows("suggest for plain.txt")
        console.press(b" and more")
        console.shows("plain and more").press(b"\r")
        console.shows("you suggest", "a applies it").do("diff.yes")
        console.shows("plain.txt is edited").do("diff.check").shows("✗ s2/worker_1: check failed")
        assert "+plain and more\n" in met.plait("diff", "s2/worker_1").out
        console.do("diff.undo").shows("undone: the edit of plain.txt")
        console.do("diff.check").shows("✓ s2/worker_1: proved on the exact tree")
        console.do("everywhere.quit_now")
        assert console.end() == 0
    assert "+plain\n" in met.plait("diff", "s2/worker_1").out

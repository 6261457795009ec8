"""Hunks of three candidates, woven in the installed console: red, mended, green, landed."""

from collections.abc import Iterator

import pytest
import yaml

from tests.support.console_story import StoryConsole, console_story
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long
LINES = "".join(f"line {number}\n" for number in range(1, 31))
CHECK = "! (grep -q one-5 a.txt && grep -q three-25 a.txt)"
"""Each candidate passes alone; what the first and the third did does not fit together."""
CHANGED = {"1": {5: "one-5"}, "2": {15: "two-15", 25: "two-25"}, "3": {25: "three-25"}}


def _text(changed: dict[int, str]) -> str:
    text = LINES
    for number, new in changed.items():
        text = text.replace(f"line {number}\n", f"{new}\n")
    return text


@pytest.fixture
def picked(repository: Shell) -> Iterator[Shell]:
    """A repository, and a plan of three candidates that change lines of one file."""
    workers = {
        worker: [{"write": {"path": "a.txt", "text": _text(changed)}}, {"result": "done"}]
        for worker, changed in CHANGED.items()
    }
    agent = {"adapter": "scripted", "script": {"steps": [], "workers": workers}}
    step = {"name": "pick", "agent": "three", "prompt": "change it", "concurrency": 3}
    step |= {"policy": "settled", "check": CHECK}
    plan = {"agents": {"three": agent}, "pipelines": [{"name": "mix", "steps": [step]}]}
    (repository.folder / "plait.yaml").write_text(yaml.safe_dump(plan))
    (repository.folder / "a.txt").write_text(LINES)
    repository.git("add", ".")
    repository.git("commit", "-qm", "start")
    yield repository
    end_engine(repository)


def _red(console: StoryConsole) -> None:
    """Take a hunk of each candidate; alone each passed, together they fail."""
    console.shows("choose 1 of 3", "RESULT no hunk is taken")
    console.do("compare.mark").shows("■ 1 from A")
    console.do("everywhere.right", "compare.mark").shows("■ 1 from B")
    console.do("everywhere.right", "compare.mark").shows("■ 1 from C", "check not run on it")
    console.do("compare.check").shows("refused: its check failed")


def test_a_composite_of_three_candidates_is_red_then_mended_checked_and_landed(
    picked: Shell,
) -> None:
    assert picked.plait("run", "plait.yaml", "--detach").code == 0
    with console_story(picked, "attach") as console:
        console.shows("NEEDS YOU 3").do("fleet.pick").shows("type a name")
        console.press(b"worker_1")
        console.shows("worker_1").press(b"\r")
        console.do("everywhere.go_compare")
        _red(console)
        assert "pick/woven" not in picked.plait("status").out
        console.do("everywhere.left", "compare.mark").shows("■ 2 from B")
        console.do("compare.check").shows("pick/woven waits for review")
        console.do("compare.merge").shows("pick/woven → base", "+ one-5", "+ two-15", "+ two-25")
        assert picked.git("show", "main:a.txt") == LINES
        console.do("diff.land").shows("a candidate must be chosen first")
        console.do("diff.yes").shows("pick/woven is chosen")
        console.do("diff.yes").shows("pick/woven is approved")
        console.do("diff.land").shows("landed as")
        landed = _text({5: "one-5", 15: "two-15", 25: "two-25"})
        assert picked.git("show", "main:a.txt") == landed
        console.do("everywhere.quit_now")
        assert console.end() == 0
    assert (picked.folder / "a.txt").read_text() == landed
    assert not picked.git("status", "--porcelain", "--", "a.txt")

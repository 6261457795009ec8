"""A console in a terminal and a second shell act on one worker: one acts, the other hears of it."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.console_story import StoryConsole, console_story
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long
LINES = "".join(f"line {number}\n" for number in range(1, 31))
WHO = "s1/worker_1"
CHANGED = LINES.replace("line 5\n", "five\n").replace("line 25\n", "twenty-five\n")


@pytest.fixture
def ready(repository: Shell) -> Iterator[Shell]:
    """A repository in which one worker's change of two hunks waits for review."""
    script = [{"write": {"path": "a.txt", "text": CHANGED}}, {"result": "done"}]
    plan = {
        "agents": {"a": {"adapter": "scripted", "script": {"steps": script}}},
        "pipelines": [{"name": "p", "steps": [{"name": "s1", "agent": "a", "prompt": "x"}]}],
    }
    (repository.folder / "plait.yaml").write_text(yaml.safe_dump(plan))
    (repository.folder / "a.txt").write_text(LINES)
    repository.git("add", ".")
    repository.git("commit", "-qm", "start")
    assert repository.plait("run", "plait.yaml", "--headless").code == 3
    yield repository
    end_engine(repository)


def _open_diff(console: StoryConsole) -> None:
    console.shows(WHO, "NEEDS YOU 1").do("fleet.diff").shows("0 of 2 seen")


def _tree(shell: Shell) -> str:
    return shell.plait("diff", WHO, "--stat").err.split("this is tree ")[1].split(";")[0]


def _landings(shell: Shell) -> int:
    return int(shell.git("rev-list", "--count", "--merges", "main"))


def test_both_land_it_at_once_and_it_lands_once(ready: Shell):
    with console_story(ready, "attach") as console:
        _open_diff(console)
        console.do("diff.yes").shows(f"{WHO} is approved").do("diff.land")
        done = ready.plait("land", WHO, "--json")
        console.shows_one_of("✓ s1/worker_1 landed as", "L refused")  # either may be the first
        (phase,) = [w["phase"] for w in _workers(ready)]
        console.do("everywhere.quit_now")
        assert console.end() == 0
    assert phase == "LANDED"
    assert _landings(ready) == 1
    said = json.loads(done.out)
    assert said["landed"] or "landing already" in said["reason"] or "LANDED" in said["reason"]


def _workers(shell: Shell) -> list[dict[str, object]]:
    status = shell.plait("status", "--json").json()
    return [worker for step in status["steps"] for worker in step["workers"]]


def test_what_the_console_changed_is_not_landed_by_who_saw_it_before(ready: Shell):
    before, main = _tree(ready), ready.git("rev-parse", "main")
    with console_story(ready, "attach") as console:
        _open_diff(console)
        console.do("diff.no").shows("1 left out")
        done = ready.plait("land", WHO, "--seen", before)
        assert (done.code, ready.git("rev-parse", "main")) == (2, main)
        assert f"{WHO} has changed since you looked" in done.err
        assert ready.plait("land", WHO, "--seen", _tree(ready)).code == 0
        console.do("everywhere.quit_now")
        assert console.end() == 0
    landed = ready.git("show", "main:a.txt")
    assert ("five" in landed.splitlines(), "twenty-five" in landed.splitlines()) == (False, True)


def test_who_presses_a_key_after_another_has_decided_is_told(ready: Shell):
    with console_story(ready, "attach") as console:
        _open_diff(console)
        assert ready.plait("reject", WHO).code == 0
        console.do("diff.land").shows("L refused")
        console.do("everywhere.quit_now")
        assert console.end() == 0
    assert _landings(ready) == 0

"""Three workers meet in two files: decided in the installed console, left and killed in between."""

from collections.abc import Iterator

import psutil
import pytest
import yaml

from tests.support.console_story import StoryConsole, console_story
from tests.support.shells import Shell, end_engine, engine_of

pytestmark = pytest.mark.long
LINES = "".join(f"line {number}\n" for number in range(1, 31))
IMPORTS = "import io\n\nfrom core import {}\n\n__all__ = []\n\n\n\n\nlast = 0\n"
CHECK = "! (grep -q one-last b.py && grep -q two-last b.py)"


def _texts(who: str, names: str) -> dict[str, str]:
    a = LINES
    for number in (5, 15, 25):
        a = a.replace(f"line {number}\n", f"{who}-{number}\n")
    return {"a.txt": a, "b.py": IMPORTS.format(names).replace("last = 0", f"last = '{who}-last'")}


def _step(name: str, files: dict[str, str]) -> dict[str, object]:
    script = [{"write": {"path": path, "text": text}} for path, text in files.items()]
    agent = {"adapter": "scripted", "script": {"steps": [*script, {"result": "done"}]}}
    return {"name": name, "agent": name, "prompt": name, "check": CHECK, "_agent": agent}


@pytest.fixture
def met(repository: Shell) -> Iterator[Shell]:
    """A repository and a plan in which the second and third worker conflict with the first."""
    steps = [
        _step("s1", _texts("one", "ParseError, LimitError")),
        _step("s2", _texts("two", "ParseError, StreamError")),
        _step("s3", {"a.txt": LINES.replace("line 5\n", "three-5\n")}),
    ]
    agents = {step["name"]: step.pop("_agent") for step in steps}
    plan = {"agents": agents, "pipelines": [{"name": "meet", "steps": steps}]}
    (repository.folder / "plait.yaml").write_text(yaml.safe_dump(plan))
    (repository.folder / "a.txt").write_text(LINES)
    (repository.folder / "b.py").write_text(IMPORTS.format("ParseError"))
    repository.git("add", ".")
    repository.git("commit", "-qm", "start")
    yield repository
    end_engine(repository)


def _review(console: StoryConsole, worker: str) -> None:
    console.shows("s2/worker_1").do("fleet.pick").shows("type a name")
    console.press(worker.encode())
    console.shows(worker).press(b"\r")
    console.do("everywhere.go_review").shows(f"{worker}/worker_1 → main")


def _kill(shell: Shell, console: StoryConsole) -> None:
    """Kill console and engine, without a word of warning."""
    engine = engine_of(shell)
    assert engine is not None
    console.process.kill()
    engine.kill()
    psutil.wait_procs([engine], timeout=30)


def _open(console: StoryConsole, count: int) -> StoryConsole:
    return console.shows(f"→ main   {count} open")


def test_conflicts_of_three_workers_are_decided_left_killed_and_landed(met: Shell) -> None:
    assert met.plait("run", "plait.yaml", "--detach").code == 0
    with console_story(met, "attach") as console:
        console.shows("NEEDS YOU 3")
        assert met.plait("land", "s1/worker_1").code == 0
        met.plait("land", "s2/worker_1")
        _review(console, "s2")
        _open(console.shows("conflict 1 of 3"), 5)
        _open(console.do("review.take_target"), 4)
        _open(console.do("review.take_both"), 3)
        console.do("everywhere.quit_now")
        assert console.end() == 0
    _left_and_killed(met)
    _checked_and_landed(met)
    _as_decided(met)


def _left_and_killed(met: Shell) -> None:
    with console_story(met, "attach") as console:
        _review(console, "s2")
        _open(console.shows("conflict 3 of 3"), 3).do("review.select").shows("LINES 0")
        console.do("review.mark", "review.mark").shows("LINES 2").do("review.select")
        _open(console, 2)
        _kill(met, console)


def _checked_and_landed(met: Shell) -> None:
    with console_story(met) as console:
        _review(console, "s2")
        _open(console, 2).do("everywhere.down", "review.mark")
        _open(console, 1).do("review.take_both")
        _open(console, 0).do("review.check").shows("✗ the check:")
        console.do("review.undo")
        _open(console, 1).do("review.edit")
        console.shows("replaces the conflict")
        console.press(b"last = 3")
        console.shows("last = 3").press(b"\r")
        _open(console, 0).do("review.check").shows("proved on the exact tree")
        console.do("review.land").shows("has landed on main")
        console.do("everywhere.quit_now")
        assert console.end() == 0


def _as_decided(met: Shell) -> None:
    status = met.plait("status", "--json").json()
    assert [w["phase"] for w in status["steps"][1]["workers"]] == ["LANDED"]
    found = met.git("show", "main:a.txt").splitlines()
    decided = [line for line in found if not line.startswith("line ")]
    assert decided == ["one-5", "one-15", "two-15", "one-25"]
    code = met.git("show", "main:b.py")
    assert "from core import ParseError, LimitError, StreamError\n" in code
    assert code.endswith("last = 3\n")
    assert not met.git("status", "--porcelain")

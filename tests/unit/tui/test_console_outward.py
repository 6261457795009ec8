"""Out of the console: the check on the tree that would land, editors and shells in the sandbox."""

import io
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from engine.messages.results import CheckResult
from tests.support.consoles import opened
from tests.support.processes import wait_until
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.app import Options
from tui.kit.outside import editor_words, has_windows, open_copy

pytestmark = pytest.mark.anyio
REVIEW = "port/worker_1"


def _into(*_: str) -> tuple[str, ...]:
    return ("true",)


def _checkable() -> FakePort:
    view = csvlite()
    run = view.runs[0]
    steps = tuple(
        step if step.name != "port" else type(step)(**{**vars(step), "check": "pytest"})
        for step in run.steps
    )
    view = type(view)(**{**vars(view), "runs": (type(run)(**{**vars(run), "steps": steps}),)})
    return FakePort(view)


@pytest.mark.parametrize(
    ("passed", "said"), [(True, "passed in its own tree abcdef1"), (False, "check failed abcdef1")]
)
async def test_the_check_is_run_on_what_would_land(passed: bool, said: str):  # noqa: FBT001
    port = _checkable()
    port.checks[REVIEW] = CheckResult(
        command="pytest", passed=passed, tree="abcdef1234", summary="3 tests\n1 of them \x1b[31mred"
    )
    async with opened(port=port) as console:
        console.screen.session.worker = REVIEW
        await console.do("check")
        await console.shows(f"{REVIEW}: {said}", "1 of them")
        assert "\x1b" not in console.text


async def test_a_check_that_cannot_be_run_says_why():
    async with opened(port=_checkable()) as console:
        console.screen.session.worker = REVIEW
        await console.do("check")
        await console.shows("its tree is not decided yet")


async def test_a_step_without_a_check_has_none_to_run():
    async with opened() as console:
        console.screen.session.worker = REVIEW
        await console.do("check")
        await console.shows("port has no check")


async def test_an_editor_needs_a_sandbox_to_run_in():
    async with opened() as console:
        console.screen.session.worker = REVIEW
        await console.do("edit_all")
        await console.shows(f"`plait shell {REVIEW}` does")


async def test_a_worker_that_was_never_begun_has_no_tree_to_go_into():
    view = changed(csvlite(), "tests/worker_1", attempt=0)
    options = Options(clock=lambda: NOW, shell=_into)
    async with opened(view, options=options) as console:
        console.screen.session.worker = "tests/worker_1"
        await console.do("terminal")
        await console.shows("it has no worktree now; it is waiting")


def _program(*words: str) -> tuple[str, ...]:
    """A sub-command that says what it was asked for, and fails where it was asked for 'pr'."""
    script = (
        "import sys; print(*sys.argv[1:]); sys.exit(sys.argv[1] == 'pr' and '\\x1b[31mno remote.')"
    )
    return (sys.executable, "-c", script, *words)


async def test_the_run_is_exported_and_a_pull_request_asked_for_by_the_sub_commands():
    options = Options(clock=lambda: NOW, program=_program)
    async with opened(options=options) as console:
        console.screen.session.worker = REVIEW
        await console.do("palette")
        await console.type("folder of plain\n")
        await console.shows("✓ the run is exported to export 2f1c")
        await console.do("publish")
        await console.shows("Push ", "and open a pull request into")
        await console.do("publish")
        await console.shows("pr refused:", "no remote.")
        assert "\x1b" not in console.text


async def test_without_a_program_it_is_said_which_command_exports():
    async with opened() as console:
        console.screen.perform("export")
        await console.shows("`plait export 2f1c` does it in a shell")


def test_an_editor_is_told_the_line_where_it_understands_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "nvim -R")
    assert editor_words("src/a.py", 88) == ["nvim", "-R", "+88", "./src/a.py"]
    assert editor_words("") == ["nvim", "-R", "."]
    assert not has_windows()
    monkeypatch.setenv("VISUAL", "/usr/bin/code --wait")
    assert editor_words("a.py", 3) == ["/usr/bin/code", "--wait", "./a.py"]
    assert has_windows()


@pytest.fixture
def packed(tmp_path: Path) -> list[str]:
    """A program that packs a tree with a file, a link to it and a pipe."""
    archive = tmp_path / "packed.tar"
    with tarfile.open(archive, "w") as tar:
        plain = tarfile.TarInfo("./src/a.py")
        plain.size = 2
        tar.addfile(plain, io.BytesIO(b"a\n"))
        link = tarfile.TarInfo("./near")
        link.type, link.linkname = tarfile.SYMTYPE, "src/a.py"
        tar.addfile(link)
        pipe = tarfile.TarInfo("./pipe")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)
    script = f"import sys; sys.stdout.buffer.write(open({str(archive)!r}, 'rb').read())"
    return [sys.executable, "-c", script]


async def test_an_editor_with_windows_gets_a_copy(
    packed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened_on = tmp_path / "opened"
    script = tmp_path / "code"
    script.write_text(f'#!/bin/sh\necho "$1" > "{opened_on}"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    folder, problem = await open_copy(packed, "src/a.py")
    try:
        assert problem == ""
        assert (Path(folder) / "src" / "a.py").read_text() == "a\n"
        assert (Path(folder) / "near").readlink() == Path("src/a.py")
        assert not (Path(folder) / "pipe").exists()
        await wait_until(lambda: opened_on.exists() and opened_on.read_text(), 30)
        assert opened_on.read_text() == f"{folder}/src/a.py\n"
    finally:
        shutil.rmtree(folder)


async def test_an_editor_that_is_not_there_is_told(
    packed: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VISUAL", "/nowhere/code")
    folder, problem = await open_copy(packed, "")
    shutil.rmtree(folder)
    assert problem == "/nowhere/code does not exist"


WAYS_OUT: dict[str, list[tuple[str, str]]] = {
    "an absolute link": [("./out", "/etc")],
    "a link above": [("./out", "../elsewhere")],
    "a name above": [("../out", "")],
    "a link through a link": [("./a/b", ".."), ("./out", "a/b/..")],
    "a link through one that comes later": [("./out", "z/.."), ("./z", ".")],
    "a file through a link": [("./a", "/etc"), ("./a/out", "")],
}


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_a_copy_with_a_way_out_is_refused(tmp_path: Path, way: str):
    archive = tmp_path / "packed.tar"
    with tarfile.open(archive, "w") as tar:
        for name, target in WAYS_OUT[way]:
            entry = tarfile.TarInfo(name)
            if target:
                entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    folder, problem = await open_copy(["sh", "-c", f"cat '{archive}'"], "")
    shutil.rmtree(folder)
    assert "points outside its folder" in problem or "exists" in problem

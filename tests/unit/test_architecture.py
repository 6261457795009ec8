"""The house keeps its own rules: sizes, imports at run time, and pages that tell the truth."""

import ast
import subprocess  # noqa: TID251  imports must be watched in a fresh interpreter
import sys
from pathlib import Path
from typing import get_args

import pytest

from engine.messages.events import Event, public_name
from tui.cli import main
from tui.commands.names import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for room in ("engine", "tui", "themes")
    for path in (ROOT / room).rglob("*.py")
    if "demo/project" not in path.as_posix()
]
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if "fixtures" not in path.parts]
MOST_LINES, MOST_TEST_LINES = 600, 700
EXCEPTIONS: dict[str, str] = {}
"""Files over their size, each with its reason."""


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_outgrows_its_size():
    too_long = {
        path.relative_to(ROOT).as_posix(): lines(path)
        for paths, most in ((SOURCES, MOST_LINES), (TESTS, MOST_TEST_LINES))
        for path in paths
        if lines(path) > most
    }
    assert too_long.keys() == EXCEPTIONS.keys()


def modules_of(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def loaded_by(statement: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(statement)}


@pytest.mark.parametrize(
    "room", ["engine.api.engine", "engine.port.client", "engine.core.advance", "engine.merge"]
)
def test_a_room_of_the_engine_loads_no_terminal(room: str):
    assert not loaded_by(f"import {room}") & {"textual", "rich"}


def test_help_loads_next_to_nothing():
    loaded = loaded_by("from tui.cli import help_text; help_text()")
    assert not loaded & {"textual", "rich", "anyio", "pydantic", "argparse", "engine"}


def test_the_first_frame_of_the_console_needs_nothing_of_the_engine():
    loaded = loaded_by("import tui.commands.console, tui.app")
    assert "textual" in loaded
    assert not loaded & {"engine", "pydantic", "git", "psutil", "sqlite3"}


QUICK = ("tui.commands.quick", "engine.port.finding", "engine.port.direct")


def test_a_command_that_an_engine_runs_loads_next_to_nothing():
    """Each of these modules of the library costs more than the shell's half of such a command."""
    loaded = modules_of(f"import {', '.join(QUICK)}")
    dear = {"typing", "dataclasses", "inspect", "pathlib", "argparse", "secrets", "subprocess"}
    assert not loaded & {*dear, "asyncio", "anyio", "shutil", "datetime", "sqlite3"}
    own = {name for name in loaded if name.startswith(("engine.", "tui."))}
    assert own == {*QUICK, "engine.port", "engine.port.capability", "tui.commands", *STREAMS}


STREAMS = ("tui.commands.streams",)
LOOKING = {"acting", "check", "cleaning", "diff", "drop", "logs", "status"}
"""Commands that a shell asks again and again: nothing is loaded for one but what it works with."""
HEAVY = ["core", "merge", "review", "work", "site.local", "agents", "spec.load", "api.engine"]


def heavy_rooms(statement: str) -> set[str]:
    loaded = modules_of(statement)
    rooms = {f"engine.{room}" for room in HEAVY} | {"pydantic", "git", "yaml", "textual", "rich"}
    return {room for room in rooms if any(f"{one}.".startswith(f"{room}.") for one in loaded)}


@pytest.mark.parametrize("name", sorted(LOOKING))
def test_a_command_that_looks_or_acts_loads_nothing_heavy(name: str):
    assert heavy_rooms(f"import tui.commands.{name}") == set()


def test_what_journals_tell_is_told_without_an_event_loop():
    loaded = modules_of(
        "import tui.commands.status, engine.api.journals, engine.run.journal, engine.run.view"
    )
    assert "engine.core.advance" in loaded
    assert not loaded & {
        "anyio",
        "asyncio",
        "subprocess",
        "engine.git.runner",
        "engine.port.client",
    }


BARE = ("core/*.py", "messages/*.py", "plan/*.py", "limits.py", "policies.py")


def early_classes(source: str) -> list[str]:
    """Return the frozen dataclasses that the library makes when a module is loaded."""
    tree = ast.parse(source)
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    is_library = any(
        one.name == "dataclass"
        for node in imports
        if node.module == "dataclasses"
        for one in node.names
    )
    wanted = {"dataclass(frozen=True)", "dataclass(frozen=True, kw_only=True)"}
    return [
        node.name
        for node in ast.walk(tree)
        if is_library
        and isinstance(node, ast.ClassDef)
        and wanted & set(map(ast.unparse, node.decorator_list))
    ]


def test_what_every_command_loads_makes_its_classes_late():
    """A frozen dataclass of the library costs a quarter of a millisecond when it is loaded."""
    found = {
        str(path.relative_to(ROOT)): early
        for room in BARE
        for path in (ROOT / "engine").glob(room)
        if (early := early_classes(path.read_text()))
    }
    assert found == {}, "engine.values makes them"
    made = "from dataclasses import dataclass, field\n\n@dataclass(frozen=True)\nclass Early: ..."
    assert early_classes(made) == ["Early"]
    assert early_classes(made.replace("dataclasses", "engine.values")) == []


def test_a_heavy_command_is_seen_as_such():
    assert {"engine.spec.load", "pydantic", "yaml"} <= heavy_rooms("import tui.commands.run")


def test_every_command_has_a_module_and_a_row():
    page = (ROOT / "docs/commands.md").read_text()
    for name in COMMANDS:
        assert f"plait {name}" in page, f"docs/commands.md says nothing of {name}"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("usage: plait")


def test_every_event_is_documented():
    page = (ROOT / "docs/events.md").read_text()
    for event in get_args(Event):
        assert f"`{public_name(event)}`" in page


def test_every_link_of_the_readme_leads_somewhere():
    text = (ROOT / "README.md").read_text()
    for part in text.split("](")[1:]:
        target = part.partition(")")[0]
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_no_command_is_promised_that_is_not_there():
    page = (ROOT / "docs/commands.md").read_text()
    named = {words.split()[0] for words in page.split("`plait ")[1:]} - {"[REPO]`", "COMMAND"}
    assert {name.rstrip("`,") for name in named if name[0].isalpha()} <= set(COMMANDS)


def test_no_folder_is_made_private_in_its_last_part_alone():
    """`mkdir(mode=0o700, parents=True)` makes those on the way for everybody."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and {"mode", "parents"} <= {word.arg for word in node.keywords}
    ]
    assert found == [], "engine.private makes them"

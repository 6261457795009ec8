"""The keeper's programs use the standard library alone, and agree with the engine on names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import engine.keeper
from engine.keeper import files, launch, strays
from engine.limits import KINDS
from engine.phases import StopCause

ROOM = Path(engine.keeper.__file__).parent
PROGRAM = [path for path in ROOM.glob("*.py") if path.stem not in ("launch", "strays")]


def loaded_by(program: str) -> set[str]:
    words = launch.words(program, "print(*sys.modules)")
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("program", ["program", "zygote"])
def test_a_program_needs_nothing_but_the_standard_library_and_its_own_room(program: str) -> None:
    loaded = loaded_by(program)
    ours = {name for name in loaded if name.partition(".")[0] == "engine"}
    foreign = {name.partition(".")[0] for name in loaded - ours} - sys.stdlib_module_names
    others = {name for name in ours if not name.startswith("engine.keeper")}
    assert others == {"engine", "engine.system"}  # which knows one thing: on what it runs
    assert foreign <= {"__main__"}


@pytest.mark.parametrize("program", ["program", "zygote"])
def test_a_program_does_not_load_what_would_be_dear_in_each_of_many(program: str) -> None:
    dear = {"typing", "dataclasses", "inspect", "pathlib", "subprocess", "threading"}
    assert loaded_by(program) & dear == set()


def test_every_cause_a_keeper_can_write_down_is_one_the_engine_knows() -> None:
    sources = "".join(path.read_text() for path in PROGRAM)
    held = {KINDS[name] for name in re.findall(r'Excess\(\s*"(\w+)"', sources)}
    causes = {kind.cause for kind in held}
    assert causes == {"MEMORY", "PIDS", "DISK", "TIMEOUT", "OUTPUT"}
    assert {*causes, "SHUTDOWN", strays.LOST} <= set(StopCause)
    assert held >= {kind for kind in KINDS.values() if kind.ends_at_once}


def test_names_of_files_are_those_the_documents_give() -> None:
    assert (files.KEEPER, files.EXIT, files.SOCKET) == ("keeper.json", "exit.json", "control.sock")

"""The environment of a worker: names of variables, its folders, its sandbox; never a secret."""

from dataclasses import replace
from typing import Any

import pytest

from engine.messages.results import EngineView, Entrance, Holding
from tests.support.consoles import Console, opened
from tests.support.world import FakePort, csvlite
from tui.keys import default_keymap

pytestmark = pytest.mark.anyio
_SECRET = "sk-never-shown"  # noqa: S105 - it is looked for, and must not be found


def _port() -> FakePort:
    env = {"HOME": "/runs/home", "TMPDIR": "/scratch/w1", "API_KEY": _SECRET, "PATH": "/usr/bin"}
    entrance = Entrance(argv=("enter",), env=env, folder="/trees/w1")
    return FakePort(csvlite(), entrances={"implement/worker_1": entrance})


async def _shows_environment(console: Console) -> None:
    await console.shows(
        *("SANDBOX", "files", "own worktree by bwrap", "network", "FOLDERS", "/runs/home"),
        *("/scratch/w1", "/trees/w1", "VARIABLES 4", "API_KEY HOME PATH TMPDIR"),
    )
    assert _SECRET not in console.text


async def test_a_key_shows_names_and_folders_and_no_value_that_may_be_a_secret():
    async with opened(port=_port()) as console:
        console.app.session.worker = "implement/worker_1"
        await console.do("go_worker", "go_environment")
        await _shows_environment(console)


async def test_the_palette_leads_there_and_the_tab_is_clicked():
    async with opened(port=_port()) as console:
        console.app.session.worker = "implement/worker_1"
        await console.do("go_worker", "palette")
        await console.type("Environment\n")
        await _shows_environment(console)
        lines = console.text.split("\n")
        y = next(y for y, line in enumerate(lines) if "Env" in line and "Log" in line)
        await console.pilot.click(offset=(lines[y].index("Log"), y))
        await console.shows("FOLLOW")
        await console.pilot.click(offset=(lines[y].index("Env"), y))
        await _shows_environment(console)


def _world(**more: Any) -> EngineView:
    """Return the usual world, with more said of every worker of its first run."""
    view = csvlite()
    (run, *others) = view.runs
    steps = tuple(
        replace(step, workers=tuple(replace(w, **more) for w in step.workers)) for step in run.steps
    )
    return replace(view, runs=(replace(run, steps=steps), *others))


async def test_a_sparse_worktree_says_what_it_holds():
    holds = Holding(folders=("src/parser", "docs"), held=3, of=120)
    async with opened(port=FakePort(_world(holds=holds))) as console:
        console.app.session.worker = "implement/worker_1"
        await console.do("go_worker", "go_environment")
        await console.shows("holds    3 of 120 folders: src/parser, docs")


async def test_a_worker_that_lives_elsewhere_says_where():
    elsewhere = _world(site="gpu-box/n1")
    async with opened(port=FakePort(elsewhere)) as console:
        console.app.session.worker = "implement/worker_1"
        await console.do("go_worker", "go_environment")
        await console.shows("site     gpu-box/n1", "files")


async def test_a_worker_without_a_workspace_says_why():
    async with opened(port=_port()) as console:
        console.app.session.worker = "design/worker_1"
        await console.do("go_worker", "go_environment")
        await console.shows("not known: design/worker_1 has no workspace now")


def test_its_key_is_no_other_key():
    keys = default_keymap().of("everywhere.go_environment")
    assert sum(default_keymap().keys[known] == keys for known in default_keymap().keys) == 1

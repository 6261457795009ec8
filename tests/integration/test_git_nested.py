"""Test what an agent leaves for the user's git to run: it lies there, renamed, and is not run."""

import os
from pathlib import Path

import pytest
from anyio import to_thread

from tests.support.left_behind import WAYS, Ground, set_filter
from tests.support.needs import need
from tests.support.shells import Shell

pytestmark = pytest.mark.anyio


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path.resolve())


_NOT_SEEN = {"a check of signatures"}  # needs a signature to be looked at: only its note is tested


@pytest.mark.parametrize("way", WAYS)
async def test_the_users_git_runs_nothing_that_an_agent_left(ground: Ground, way: str):
    place = await to_thread.run_sync(WAYS[way], ground)
    assert await to_thread.run_sync(ground.use, place) or way in _NOT_SEEN, "the control"
    said = await ground.quiet()
    assert ("set" in said and "aside" in said) or way.startswith("its own .git, another")
    assert not await to_thread.run_sync(ground.use, place)
    assert await ground.quiet() == ""  # nothing is left to be done


async def test_a_plain_repository_stays_as_it_is_byte_by_byte(ground: Ground):
    place = await to_thread.run_sync(ground.nested, "deep/down/sub")
    ground.git(place, "remote", "add", "origin", "https://example.org/x.git")
    config = (place / ".git/config").read_bytes()
    assert await ground.quiet() == ""
    assert (place / ".git/config").read_bytes() == config


async def test_the_users_own_settings_and_hooks_are_no_news(ground: Ground):
    place = await to_thread.run_sync(set_filter, ground)
    ground.user.git("config", "filter.x.clean", str(ground.program))
    hook = ground.user.path / ".git/hooks/pre-commit"
    for path in (hook, place / ".git/hooks/pre-commit"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
    assert await ground.quiet() == ""
    (place / ".git/hooks/pre-commit").write_text("#!/bin/sh\nevil\n")
    assert "hooks` was set aside" in await ground.quiet()


async def test_what_is_told_of_a_repository_does_not_act_on_a_terminal(ground: Ground):
    place = await to_thread.run_sync(ground.nested, "sub\x1b[2J\u202e")
    ground.git(place, "config", "x.\x1b]0;title\x07.y", "z")
    said = await ground.quiet()
    assert "set it aside" in said
    assert said.isprintable()


@pytest.mark.parametrize("spoiled", ["[rubbish", "x" * (2 << 20)])
async def test_settings_that_nobody_can_read_are_set_aside(ground: Ground, spoiled: str):
    place = await to_thread.run_sync(ground.nested)
    (place / ".git/config").write_text(spoiled)
    assert "cannot be read" in await ground.quiet()
    ground.git(place, "status")


async def test_what_is_no_repository_is_passed_over(ground: Ground):
    (ground.tree / "odd").mkdir()
    os.mkfifo(ground.tree / "odd/config")
    (ground.tree / "odd/HEAD").symlink_to("/dev/zero")
    assert await ground.quiet() == ""


PLAN = """
agents:
  sh: {{adapter: command, argv: [sh, -c, {script}]}}
pipelines:
  - name: default
    steps: [{{name: one, agent: sh, prompt: x}}]
"""
SCRIPT = (
    "echo new > new; rm -rf .git; git init -q; git config core.fsmonitor '{program}'; "
    "mkdir sub; cd sub; git init -q; git config core.fsmonitor '{program}'; echo x > x"
)


@pytest.mark.parametrize("rung", ["bwrap", "landlock", "none"])
@pytest.mark.parametrize("isolation", ["worktree", "clone"])
def test_a_worktree_can_be_entered_after_a_hostile_attempt(
    tmp_path: Path, rung: str, isolation: str
):
    if rung != "none":
        need("bubblewrap" if rung == "bwrap" else rung)
    ground = Ground(tmp_path.resolve())
    plan = PLAN.format(script=f'"{SCRIPT.format(program=ground.program)}"')
    plan += f"runtime: {{isolation_strategy: {isolation}}}\n"
    (ground.user.path / "plan.yaml").write_text(plan)
    env = {"HOME": str(ground.user.home), "PLAIT_SANDBOX": rung}
    shell = Shell(ground.user.path, ground.user.home / "state", env)
    done = shell.plait("run", "plan.yaml", "--headless")
    assert done.code == 3, done.err
    tree = next(shell.state.rglob("new")).parent
    assert not ground.use(tree)
    assert not ground.use(tree / "sub")

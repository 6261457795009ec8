"""With a real sandbox: the agent's git works, and collecting reads its files from inside only."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git import CollectRequest, Workspace, snapshot
from tests.support.git_lab import Lab
from tests.support.repositories import snapshot_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        shutil.which("bwrap") is None and os.environ.get("PLAIT_CI") != "1",
        reason="bubblewrap is not installed",
    ),
]


def bwrap(
    lab: Lab, space: Workspace, *, is_collecting: bool
) -> Callable[[Sequence[str]], list[str]]:
    """The sandbox of an attempt, or the one in which it is collected."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
    words += ["--cap-drop", "ALL", "--tmpfs", str(lab.root), "--tmpfs", str(lab.built.path)]
    for folder in space.objects:
        words += ["--ro-bind", folder, folder]
    mode = "--ro-bind" if is_collecting else "--bind"
    assert space.git_dir is not None
    words += [mode, space.path, space.path, mode, space.git_dir, space.git_dir]
    if is_collecting:
        words += ["--bind", space.collect_dir, space.collect_dir]
    if space.gitfile is not None:
        words += ["--ro-bind", space.gitfile, f"{space.path}/.git"]
    return lambda argv: [*words, "--chdir", space.path, *argv]


def in_sandbox(lab: Lab, space: Workspace, script: str) -> None:
    wrap = bwrap(lab, space, is_collecting=False)
    subprocess.run(
        wrap(["sh", "-ec", script]), env=lab.built.environment, check=True, capture_output=True
    )


EVERYDAY = (
    "echo 1 > one; git add one; git commit -qm one; echo 2 >> one; git commit -qa --amend -m two;"
    "git checkout -qb side; echo s > s; git add s; git commit -qm s; git rebase -q main;"
    "git stash list; git tag t; git gc -q; git log --oneline -3; git diff main..HEAD --stat;"
    'git worktree add -q "$(git rev-parse --git-dir)/../git/wt" -b wt; echo l > left'
)


async def test_an_agent_works_in_its_sandbox_and_is_collected_from_inside_it(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(is_mounted=True)
    shared = snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees"))
    await to_thread.run_sync(in_sandbox, lab, space, EVERYDAY)
    assert snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees")) == shared
    tree = snapshot_of(tmp_path / space.path)

    change = await lab.collect(space, wrap=bwrap(lab, space, is_collecting=True))

    assert {"one", "left"} <= set(lab.files(change.head))
    assert change.found_on == "refs/heads/side"
    assert snapshot_of(tmp_path / space.path) == tree
    assert lab.built.status(tmp_path / space.path) == ""


async def test_a_worker_cannot_have_another_workers_commits_imported(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    other = await lab.prepare("r1/fix/worker_2@1")
    lab.agent(other, "echo secret > secret; git add -A; git commit -qm secret")
    secret = lab.built.git("rev-parse", "HEAD", cwd=tmp_path / other.path)
    space = await lab.prepare()
    lab.agent(
        space,
        f'echo "{other.git_dir}/objects" >> "$PRIVATE/objects/info/alternates";'
        f'echo {secret} > "$PRIVATE/refs/heads/stolen"; echo w > w',
    )

    confined = await lab.collect(space, wrap=bwrap(lab, space, is_collecting=True))
    assert not any("stolen" in ref for ref, _ in confined.refs)

    exposed = await lab.collect(space)
    assert any("stolen" in ref for ref, _ in exposed.refs), "the attack is dead: nothing proved"


@pytest.mark.parametrize("place", ["in the clone", "embedded"])
async def test_nothing_an_agent_configured_runs_when_its_tree_is_read(tmp_path: Path, place: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    sentinel = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {sentinel}\ncat\n")
    program.chmod(0o755)
    into = ""
    if place == "embedded":
        into = "git clone -q . e; git add e 2>/dev/null; git commit -qm e; cd e; echo x > x;"
    lab.agent(
        space,
        into + "echo '* filter=x diff=x' > .gitattributes; "
        f"for k in core.fsmonitor filter.x.clean filter.x.smudge diff.x.textconv "
        f"uploadpack.packObjectsHook core.alternateRefsCommand; do git config $k {program}; done;"
        "hooks=$(git rev-parse --git-path hooks); for h in post-index-change reference-transaction;"
        f"do cp {program} $hooks/$h; done",
    )

    change = await lab.collect(space)
    await snapshot(lab.repo, space, CollectRequest(author=lab.me), objects=tmp_path / "radar")

    assert not await to_thread.run_sync(sentinel.exists)
    assert change.head != change.base
    lab.built.try_git("add", "-A", cwd=tmp_path / space.path / ("e" if into else ""))
    lab.built.try_git("status", cwd=tmp_path / space.path / ("e" if into else ""))
    if into:
        assert sentinel.exists(), "the plant is dead: nothing proved"


async def test_a_snapshot_is_taken_from_inside(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, "echo now > now")

    request = CollectRequest(author=lab.me, wrap=bwrap(lab, space, is_collecting=True))
    seen = await snapshot(lab.repo, space, request, objects=tmp_path / "objects")

    assert seen is not None

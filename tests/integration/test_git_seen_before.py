"""A second look at a workspace is short where nothing was done since the first, and only there."""

import os
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git import removal
from engine.git.collection import CollectRequest, lead_inside
from engine.git.removal import examine
from engine.git.seen_before import forget_sight, is_as_collected
from engine.git.workspace import Strategy, Workspace
from tests.support.git_lab import Lab

pytestmark = pytest.mark.anyio

WORK = "echo w > w; git add w; git commit -qm w; echo left > over; echo build > .gitignore"
DEEDS = {
    "a file changed": "echo more >> w",
    "changed within its size and time": (
        "touch -r w time; printf W > w; printf '\\n' >> w; touch -r time w; rm time"
    ),
    "a new file": "echo n > new",
    "a new file in a new folder": "mkdir -p a/b; echo n > a/b/new",
    "a file gone": "rm w",
    "a mode": "chmod +x w",
    "a link": "rm w; ln -s over w",
    "a commit": "echo c > c; git add c; git commit -qm c; git rm -q c; git commit -qm away",
    "a branch": (
        "git branch by-hand; git commit -q --allow-empty -m e; git reset -q --hard HEAD~1"
    ),
    "a stash": "echo s >> w; git stash -q",
    "a forced file": "mkdir build; echo b > build/b; git add -f build/b",
    "a file that git does not look at": "git update-index --assume-unchanged w; echo hidden >> w",
    "a rule that opens what was ignored": "mkdir build; echo b > build/b; : > .gitignore",
    "a repository": "git init -q inner; cd inner; echo i > i; git add i; git commit -qm i",
}


async def is_the_same(lab: Lab, space: Workspace) -> bool:
    return await is_as_collected(lab.repo, space, lambda argv: argv)


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
async def test_a_workspace_that_nobody_touched_is_known_again(tmp_path: Path, strategy: Strategy):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(strategy=strategy)
    assert not await is_the_same(lab, space), "nothing was collected yet"
    lab.agent(space, WORK)
    await lab.collect(space)
    assert await is_the_same(lab, space)
    lab.agent(space, "mkdir build; echo ignored > build/b")
    assert await is_the_same(lab, space), "what is ignored goes to the trash"
    assert (await examine(lab.repo, space, CollectRequest(author=lab.me))).is_safe
    await to_thread.run_sync(forget_sight, space)
    assert not await is_the_same(lab, space)


@pytest.mark.parametrize("deed", DEEDS)
async def test_whatever_was_done_since_is_collected_before_a_workspace_goes(
    tmp_path: Path, deed: str
):
    """The kept refs are those that a full collection leaves, and nothing is passed over."""
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    await to_thread.run_sync(lead_inside, space)
    lab.agent(space, DEEDS[deed])

    assert not await is_the_same(lab, space)
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))

    kept = lab.built.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/plait")
    await to_thread.run_sync(forget_sight, space)
    assert (await examine(lab.repo, space, CollectRequest(author=lab.me))) == verdict
    assert lab.built.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/plait") == kept


async def test_without_looking_again_what_was_done_since_would_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def blind(*_: object) -> bool:
        return True

    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    lab.agent(space, "echo late > late")
    with monkeypatch.context() as patched:
        patched.setattr(removal, "is_as_collected", blind)
        await examine(lab.repo, space, CollectRequest(author=lab.me))
    head = lab.built.git("rev-parse", space.refs.head)
    assert "late" not in lab.built.git("ls-tree", "--name-only", head)
    await examine(lab.repo, space, CollectRequest(author=lab.me))
    head = lab.built.git("rev-parse", space.refs.head)
    assert "late" in lab.built.git("ls-tree", "--name-only", head)


async def test_refs_that_were_deleted_since_are_put_back(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    change = await lab.collect(space)
    lab.built.git("update-ref", "-d", space.refs.head)

    assert not await is_the_same(lab, space)
    await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert lab.built.git("rev-parse", space.refs.head) == change.head


@pytest.mark.parametrize("odd", ["head -c 6000000 /dev/zero > big", "git init -q e; touch e/x"])
async def test_what_no_commit_can_hold_is_looked_at_in_full(tmp_path: Path, odd: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, odd)
    await lab.collect(space)
    assert not await is_the_same(lab, space)


async def test_a_pipe_that_git_would_wait_for_is_no_obstacle(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    os.mkfifo(Path(space.path, "pipe"))
    os.mkfifo(Path(space.path, "src", ".gitignore"))
    assert not await is_the_same(lab, space)

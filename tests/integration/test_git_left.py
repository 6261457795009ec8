"""A look at a worktree for removal moves no ref of work that is recorded, and loses nothing."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git import removal
from engine.git.collection import CollectRequest, collect, lead_inside
from engine.git.removal import RemovalVerdict, examine
from engine.git.seen_before import forget_sight
from engine.git.strays import examine_stray
from engine.git.workspace import Strategy, Workspace
from engine.site import trash
from engine.site.trash import discard
from engine.store.codec import from_json
from engine.store.files import write_atomically
from tests.integration.test_git_recycling import Pool, opened, whole
from tests.support.git_lab import Lab

pytestmark = pytest.mark.anyio
SEEDS = range(100 if os.environ.get("PLAIT_THOROUGH") else 4)
WORK = "echo w > w; git add w; git commit -qm w; echo over > over; rm README.md"
LATE = [
    "echo $N > new$N",
    "mkdir -p d$N/e; echo $N > d$N/e/x; ln -s e d$N/link",
    "echo $N >> w",
    "rm -f over",
    "rm -rf src",
    "git rm -rq many/1",
    "echo back > README.md",
    "chmod +x w",
    "git add -A",
    "git add -A; git commit -qm late$N --allow-empty",
    "git commit -qam amended$N --amend --allow-empty",
    "git checkout -q -b b$N; echo $N > b$N; git add b$N; git commit -qm b$N",
    "git checkout -q --detach; git commit -qm alone$N --allow-empty",
    "git checkout -q -",
    "git reset -q --hard HEAD~1",
    "git reset -q --soft HEAD~1",
    "git stash -q -u",
    "git tag t$N",
    "git checkout -q --orphan o$N",
    "rm -f w; git commit -qam gone$N",
]
HANDS = {"agent": Strategy.WORKTREE, "user": Strategy.WORKTREE, "clone": Strategy.CLONE}
"""Whose git is behind the workspace: its own, that of the user, its own inside of it."""


def act(lab: Lab, space: Workspace, dice: random.Random, *, is_users: bool) -> set[str]:
    """Do a few things late, well or badly; return each commit on which HEAD stood.

    Of the user's only the last: what a user drops is dropped.
    """
    seen: list[str] = []
    for n in range(dice.randint(1, 6)):
        done = subprocess.run(
            ["sh", "-c", f"({dice.choice(LATE)}) >/dev/null 2>&1; git rev-parse -q --verify HEAD"],
            cwd=space.path,
            env={**lab.built.environment, "N": str(n)},
            capture_output=True,
            check=False,
            timeout=60,
        )
        seen += done.stdout.decode().split()
    return set(seen[-1:] if is_users else seen)


async def recorded(pool: Pool, hand: str) -> Workspace:
    """A workspace whose work is recorded, and in which that hand may go on."""
    space = await pool.lab.prepare(strategy=HANDS[hand])
    pool.lab.agent(space, WORK)
    await pool.lab.collect(space)
    if hand == "agent":
        await to_thread.run_sync(lead_inside, space)
    return space


async def asked(pool: Pool, space: Workspace) -> RemovalVerdict:
    request = CollectRequest(author=pool.lab.me)
    return await examine(pool.lab.repo, space, request, is_asked=True)


def refs_of(lab: Lab, space: Workspace) -> dict[str, str]:
    """The branch of the worker and every ref of the attempt, but for what was found late."""
    found = lab.refs(space.refs.pinned, space.refs.branch_ref)
    return {ref: oid for ref, oid in found.items() if not ref.startswith(space.refs.left)}


def reached(lab: Lab) -> set[str]:
    return set(lab.built.git("rev-list", "--all").split())


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_found_late_moves_no_ref_and_every_byte_of_it_comes_back(
    tmp_path: Path, seed: int, hand: str
):
    pool = await opened(tmp_path)
    lab, dice = pool.lab, random.Random(f"{seed} {hand}")
    space = await recorded(pool, hand)
    for turn in range(2):
        is_asked, is_lent = dice.random() < 0.5, dice.random() < 0.7
        commits = act(lab, space, dice, is_users=hand == "user")
        before, refs = whole(space.path), refs_of(lab, space)

        if is_asked:
            assert (await asked(pool, space)).is_safe
            assert (refs_of(lab, space), whole(space.path)) == (refs, before)
        await pool.release(space)

        assert refs_of(lab, space) == refs
        assert commits <= reached(lab)
        if is_lent and hand != "clone":
            spare = await pool.lent()
            assert spare is not None or turn  # a tree that came back has files of its own
            if spare is not None:
                await to_thread.run_sync(spare.tree.rename, tmp_path / f"lent{turn}")
        await pool.restore(space)
        assert whole(space.path) == before
        assert refs_of(lab, space) == refs
        if hand == "agent":
            await to_thread.run_sync(lead_inside, space)
    lab.built.fsck()


async def test_without_the_rule_the_head_and_the_branch_would_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def as_first(*given: object, is_late: bool) -> object:
        del is_late
        return await collect(*given)  # type: ignore[arg-type]

    pool = await opened(tmp_path)
    space = await recorded(pool, "user")
    before = refs_of(pool.lab, space)
    pool.lab.agent(space, "echo late > late")
    with monkeypatch.context() as patch:
        patch.setattr(removal, "collect", as_first)
        await asked(pool, space)
    moved = {ref for ref, oid in refs_of(pool.lab, space).items() if before[ref] != oid}
    assert moved == {space.refs.head, space.refs.branch_ref}


async def test_without_the_commit_on_its_label_a_lent_tree_would_come_back_with_a_deleted_file(
    tmp_path: Path,
):
    pool = await opened(tmp_path)
    space = await recorded(pool, "user")
    pool.lab.agent(space, "rm src/a.py")
    before = whole(space.path)
    await pool.release(space)
    (label,) = pool.layout.trash.glob(f"*/{trash.LABEL}")
    removed = from_json(removal.Removed, await to_thread.run_sync(label.read_text))
    assert removed.files == pool.lab.refs(space.refs.left)[space.refs.left_head]
    without = json.loads(await to_thread.run_sync(label.read_text))
    del without["files"]  # as in a label of an earlier version
    await to_thread.run_sync(write_atomically, label, json.dumps(without).encode())

    assert await pool.lent() is not None
    await pool.restore(space)

    assert whole(space.path).keys() - before.keys() == {"src/a.py"}


@pytest.mark.parametrize("hand", HANDS)
async def test_nothing_is_kept_twice(tmp_path: Path, hand: str):
    pool = await opened(tmp_path)
    lab, space = pool.lab, await recorded(pool, hand)
    await asked(pool, space)
    assert lab.refs(space.refs.left) == {}
    lab.agent(space, "echo late > late")
    await asked(pool, space)
    lab.agent(space, "rm late")
    assert (await asked(pool, space)).files == lab.built.rev(space.refs.head)
    await pool.release(space)
    assert list(lab.refs(space.refs.left)) == [space.refs.left_head]


async def test_the_same_files_are_not_kept_again_by_a_commit_of_another_time(tmp_path: Path):
    """A later version may word the commit otherwise, and a later attempt has another time."""
    pool = await opened(tmp_path)
    lab, space = pool.lab, await recorded(pool, "agent")
    later = CollectRequest(author=lab.repo.settings.sign(1_800_000_000), message="Other\n")
    await to_thread.run_sync(forget_sight, space)

    verdict = await examine(lab.repo, space, later)

    assert lab.refs(space.refs.left) == {}
    assert verdict.files == lab.built.rev(space.refs.head)


async def test_work_that_nobody_recorded_is_recorded_when_its_workspace_goes(tmp_path: Path):
    """A question about it moves nothing, and keeps it all the same."""
    pool = await opened(tmp_path)
    lab, space = pool.lab, await pool.lab.prepare()
    lab.agent(space, WORK)
    base = refs_of(lab, space)

    verdict = await asked(pool, space)

    assert refs_of(lab, space) == base
    assert lab.refs(space.refs.left)[space.refs.left_head] == verdict.files
    await pool.release(space)
    assert lab.refs(space.refs.left) == {}
    assert lab.refs(space.refs.head, space.refs.branch_ref) == dict.fromkeys(
        [space.refs.branch_ref, space.refs.head], verdict.files
    )


async def test_a_commit_of_the_user_on_the_branch_stays_there(tmp_path: Path):
    pool = await opened(tmp_path)
    lab, space = pool.lab, await recorded(pool, "user")
    lab.agent(space, "echo mine > mine; git add mine; git commit -qm mine")
    mine = lab.built.rev(space.refs.branch_ref)
    status = lab.built.status(Path(space.path))

    await pool.release(space)
    await pool.restore(space)

    assert lab.built.rev(space.refs.branch_ref) == mine
    assert lab.built.git("symbolic-ref", "HEAD", cwd=Path(space.path)).strip() == (
        space.refs.branch_ref
    )
    assert lab.built.status(Path(space.path)) == status


@pytest.mark.parametrize("is_stray", [False, True], ids=["of a run", "of a run that is gone"])
async def test_commits_of_the_user_on_no_branch_are_kept_when_the_worktree_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_stray: bool
):
    users = tmp_path / "collected.json"  # called like a note of ours
    await to_thread.run_sync(users.write_text, "mine")
    monkeypatch.chdir(tmp_path)
    pool = await opened(tmp_path)
    lab, space = pool.lab, await recorded(pool, "user")
    lab.agent(space, "git checkout -q --detach; git commit -qm alone --allow-empty")
    alone = lab.built.git("rev-parse", "HEAD", cwd=Path(space.path)).strip()
    assert alone not in reached(lab) - set(heads_of_worktrees(lab))

    if is_stray:
        verdict = await examine_stray(lab.repo, space.attempt, Path(space.path))
        await discard(lab.repo, pool.layout, verdict)
    else:
        await pool.release(space)

    assert space.path not in lab.built.worktrees()
    assert alone in reached(lab)
    assert await to_thread.run_sync(users.read_text) == "mine"


def heads_of_worktrees(lab: Lab) -> Iterator[str]:
    for line in lab.built.git("worktree", "list", "--porcelain").splitlines():
        word, _, oid = line.partition(" ")
        if word == "HEAD":
            yield oid


async def test_a_worktree_whose_run_is_gone_may_go_with_what_was_found_late(tmp_path: Path):
    pool = await opened(tmp_path)
    lab, space = pool.lab, await recorded(pool, "user")
    lab.agent(space, "echo late > late")
    stray = partial(examine_stray, lab.repo, space.attempt, Path(space.path))
    assert "in no commit" in (await stray()).reasons[0]

    await asked(pool, space)

    assert (await stray()).files == lab.built.rev(space.refs.left_head)
    lab.agent(space, "rm late")
    assert (await stray()).files == lab.built.rev(space.refs.head)

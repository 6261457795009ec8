"""Test what is taken away is provably kept elsewhere, goes to the trash whole, and comes back."""

import tempfile
from pathlib import Path

import anyio
import pytest

from engine.errors import WorkspaceError
from engine.git.collection import CollectRequest
from engine.git.merge3 import Merger
from engine.git.removal import drop_missing, examine, remove, remove_branch, restore
from engine.git.workspace import Strategy, Workspace
from tests.support.git_lab import Lab
from tests.support.repositories import snapshot_of

pytestmark = pytest.mark.anyio

CASES = {
    "clean": ("true", ""),
    "committed": ("echo w > w; git add -A; git commit -qm w", ""),
    "uncommitted": ("echo w > w; rm README.md; echo e >> src/a.py", ""),
    "stashed": ("echo w >> README.md; git stash -q", ""),
    "detached": ("git checkout -q --detach; echo w > w; git add -A; git commit -qm w", ""),
    "ignored": ("echo ignored > .git-no; echo .git-no > .gitignore; echo i > .git-no", ""),
    "embedded": ("mkdir e; cd e; git init -q; echo 1 > 1; git add 1; git commit -qm e", ""),
    "big": ("head -c 6000000 /dev/zero > big", "is in no commit"),
    "embedded elsewhere": ("git init -q --separate-git-dir ../apart e; touch e/x", "no other copy"),
    "worktree deleted": ('rm -rf "$PWD"', ""),
    "clone deleted": ('echo w > w; rm -rf "$PRIVATE"', ""),
}


async def verdict_of(lab: Lab, space: Workspace):
    return await examine(lab.repo, space, CollectRequest(author=lab.me))


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
@pytest.mark.parametrize(("script", "reason"), CASES.values(), ids=CASES)
async def test_a_workspace_goes_only_if_its_work_is_kept_and_comes_back_the_same(
    tmp_path: Path, script: str, reason: str, strategy: Strategy
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(strategy=strategy)
    lab.agent(space, script)
    path = tmp_path / space.path

    verdict = await verdict_of(lab, space)

    assert verdict.is_safe is (not reason)
    assert all(reason in said for said in verdict.reasons)
    if reason:
        with pytest.raises(WorkspaceError):
            await remove(lab.repo, verdict, tmp_path / "trash")
        assert path.exists()
        return
    before = snapshot_of(path)
    removed = await remove(lab.repo, verdict, tmp_path / "trash")
    assert not path.exists()
    assert lab.built.worktrees() == [str(lab.built.path)]
    lab.built.fsck()
    if "PWD" in script:
        return
    await restore(lab.repo, removed)
    assert snapshot_of(path) == before
    if strategy is Strategy.WORKTREE:
        assert str(path) in lab.built.worktrees()
        assert lab.built.git("symbolic-ref", "HEAD", cwd=path) == space.refs.branch_ref
        with pytest.raises(WorkspaceError, match="in the way"):
            await restore(lab.repo, removed)


async def test_a_workspace_in_which_somebody_works_stays(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    async with await anyio.open_process(["sleep", "60"], cwd=space.path) as worker:
        verdict = await verdict_of(lab, space)
        worker.kill()

    assert f"process {worker.pid}" in verdict.reasons[0]
    assert (await verdict_of(lab, space)).is_safe


async def test_a_workspace_whose_work_is_refused_stays(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, "echo w > w")
    request = CollectRequest(
        author=lab.me, wrap=lambda argv: ["false"] if "upload-pack" in argv else argv
    )

    verdict = await examine(lab.repo, space, request)

    assert not verdict.is_safe
    assert "did not accept its work" in verdict.reasons[0]


async def test_a_plain_directory_goes_only_if_nothing_was_made_in_it(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(strategy=Strategy.DIRECTORY)
    assert (await verdict_of(lab, space)).is_safe

    lab.agent(space, "mkdir out; echo r > out/report")

    assert "'out/report'" in (await verdict_of(lab, space)).reasons[0]


@pytest.mark.needs("second file system")
async def test_a_trash_on_another_file_system_is_not_copied_to(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as far:
        removed = await remove(lab.repo, await verdict_of(lab, space), Path(far, "trash"))

    assert removed.kept_in == f"{space.path}.trash"
    await restore(lab.repo, removed)
    assert lab.built.status(tmp_path / space.path) == ""


async def test_a_branch_goes_only_once_its_work_is_in_a_target(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    built, merger = lab.built, Merger(lab.repo)
    space = await lab.prepare()
    lab.agent(space, "echo w > w; git add -A; git commit -qm w")
    change = await lab.collect(space)

    async def reason() -> str:
        return await remove_branch(lab.repo, merger, space.refs, targets=["main"])

    assert await reason() == "it is checked out"
    await remove(lab.repo, await verdict_of(lab, space), tmp_path / "trash")
    assert await reason() == "its work has not landed yet"
    built.git("merge", "-q", "--squash", change.head)
    built.commit(say="squashed")
    extra = built.git("commit-tree", f"{change.head}^{{tree}}", "-p", change.head, "-m", "x")
    built.git("update-ref", space.refs.branch_ref, extra)
    assert await reason() == "it has commits that no attempt has"
    built.git("update-ref", space.refs.branch_ref, change.head)
    assert await reason() == ""
    assert built.branches() == ["main"]
    assert built.rev(space.refs.head) == change.head


async def test_entries_whose_folder_is_gone_are_forgotten_and_only_ours(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    theirs = tmp_path / "spaces" / "theirs"
    lab.built.git("worktree", "add", "-q", "--lock", "--detach", str(theirs))
    for path in (tmp_path / space.path, theirs):
        path.rename(tmp_path / f"gone-{path.name}")

    dropped = await drop_missing(lab.repo, lab.root)

    assert dropped == (space.path,)
    assert lab.built.worktrees() == [str(lab.built.path), str(theirs)]

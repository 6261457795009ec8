"""Workspaces: twenty at once, none failed, in repositories as people have them."""

import os
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.errors import BranchTaken, GitFailed, WorkspaceError
from engine.git.base import resolve_base
from engine.git.collection import CollectedChange
from engine.git.merge3 import Merger
from engine.git.names import check_prefix
from engine.git.objects import Wording
from engine.git.runner import Call
from engine.git.stacking import Record, StackConflict, stack_base
from engine.git.workspace import Strategy, Workspace, check_space
from engine.git.worktrees import our_entries
from engine.review.change import measured
from engine.site.artifacts import Artifacts
from tests.support.git_lab import Lab, shell
from tests.support.kinds import submodule
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio
IS_LONG = bool(os.environ.get("PLAIT_THOROUGH"))
WORK = "echo work > work.txt; git add -A; git commit -qm work; git status --porcelain"


async def test_twenty_workspaces_at_once_all_come_up_and_touch_nothing_of_the_users(
    tmp_path: Path,
):
    built = RepositoryBuilder.with_files(tmp_path / "repo", 60)
    lab = await Lab.open(tmp_path, built)
    before = snapshot_of(built.path)
    for number in range(50 if IS_LONG else 2):
        names = [f"r{number}/fix/worker_{n}@1" for n in range(1, 21)]
        made: list[Workspace] = []

        async def one(name: str, made: list[Workspace] = made) -> None:
            made.append(await lab.prepare(name))

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(one, name)
        assert len({space.path for space in made}) == 20
        assert all(built.status(Path(space.path)) == "" for space in made)
        assert sorted(b for b in built.branches() if b.startswith(f"plait/r{number}/")) == sorted(
            f"plait/{name.removesuffix('@1')}" for name in names
        )
    assert snapshot_of(built.path) == before
    assert built.status() == ""
    built.fsck()


async def test_two_engines_make_workspaces_at_the_same_time(tmp_path: Path):
    one = await Lab.open(tmp_path)
    other = await Lab.open(tmp_path, one.built)

    async with anyio.create_task_group() as group:
        for lab, run in ((one, "r1"), (other, "r2")):
            for n in range(1, 7):
                group.start_soon(lab.prepare, f"{run}/fix/worker_{n}@1")

    assert len(one.built.worktrees()) == 13


def test_the_folder_of_worktrees_may_go_while_it_is_read(tmp_path: Path):
    common, done = tmp_path / "git", threading.Event()
    common.mkdir()

    def come_and_go() -> None:
        while not done.is_set():
            (common / "worktrees").mkdir()
            (common / "worktrees").rmdir()

    user = threading.Thread(target=come_and_go)
    user.start()
    try:
        assert all(our_entries(str(common)) == [] for _ in range(5_000))
    finally:
        done.set()
        user.join()


async def test_workspaces_come_up_while_the_user_adds_and_prunes_worktrees(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    theirs = (
        "while [ ! -e ../stop ]; do git worktree prune --expire=now; git branch -f busy;"
        "git worktree add -q --detach ../theirs && git worktree remove --force ../theirs; done"
    )
    async with anyio.create_task_group() as group:
        group.start_soon(partial(to_thread.run_sync, lab.built.shell, f"{theirs} || true"))
        async with anyio.create_task_group() as ours:
            for n in range(1, 9):
                ours.start_soon(lab.prepare, f"r1/fix/worker_{n}@1")
        (tmp_path / "stop").touch()

    assert len([path for path in lab.built.worktrees() if "/spaces/" in path]) == 8
    lab.built.fsck()


async def test_a_lock_of_the_users_git_is_waited_for(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    lock = lab.built.write(".git/refs/heads/held.lock", "")
    write = Call(writes=True)
    async with anyio.create_task_group() as group:
        group.start_soon(partial(lab.repo.run, "update-ref", "refs/heads/held", "HEAD", call=write))
        await anyio.sleep(0.03)
        lock.unlink()

    assert lab.built.rev("held") == lab.built.head
    lab.built.write(".git/refs/heads/stale.lock", "")
    with pytest.raises(GitFailed, match="File exists"):
        await lab.repo.run("update-ref", "refs/heads/stale", "HEAD", call=write)


async def test_an_agent_works_in_its_own_clone_and_the_user_sees_a_locked_worktree(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    shared = snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees"))

    lab.agent(space, WORK + "; git stash list; git tag t; git gc -q; git branch other")

    assert snapshot_of(lab.built.path / ".git", skip=("plait", "worktrees")) == shared
    listing = lab.built.git("worktree", "list", "--porcelain")
    assert f"worktree {space.path}" in listing
    assert "locked plait r1/fix/worker_1@1" in listing


async def test_a_mounted_workspace_leads_the_user_to_the_shared_repository(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(is_mounted=True)

    assert space.gitfile is not None
    assert (tmp_path / Path(space.gitfile)).read_text() == f"gitdir: {space.git_dir}\n"
    common = lab.built.git("rev-parse", "--git-common-dir", cwd=Path(space.path))
    assert common == str(lab.built.path / ".git")


async def test_preparing_again_gives_back_the_same_and_keeps_what_is_in_it(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, "echo work > work.txt")

    again = await (await Lab.open(tmp_path, lab.built)).prepare()

    assert again == space
    assert (tmp_path / space.path / "work.txt").exists()


async def test_a_second_attempt_takes_the_branch_over(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    first = await lab.prepare()
    lab.agent(first, WORK)
    change = await lab.collect(first)

    second = await lab.prepare("r1/fix/worker_1@2")

    assert lab.built.rev("plait/r1/fix/worker_1") == second.base
    assert lab.built.git("rev-parse", "HEAD", cwd=Path(first.path)) == change.head
    assert lab.built.try_git("symbolic-ref", "-q", "HEAD", cwd=Path(first.path)).returncode
    assert lab.refs("refs/plait/")["refs/plait/r1/fix/worker_1/attempt_1/head"] == change.head


async def test_a_branch_that_the_user_has_checked_out_is_not_moved_under_them(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    first = await lab.prepare()
    lab.agent(first, WORK)
    await lab.collect(first)
    lab.built.git("checkout", "-q", "--ignore-other-worktrees", first.branch)
    lab.agent(first, "echo more > more.txt")

    change = await lab.collect(first)

    assert change.notes == (
        f"{first.branch} is checked out in {lab.built.path}, so plait did not move it.",
    )
    assert lab.built.status() == ""
    assert lab.built.rev(first.refs.head) == change.head
    with pytest.raises(BranchTaken) as refused:
        await lab.prepare("r1/fix/worker_1@2")
    assert str(lab.built.path) in str(refused.value)


GONE = {
    "by hand": 'rm -rf "$GONE"',
    "and pruned by git": 'rm -rf "$GONE"; git worktree prune --expire=now',
}


@pytest.mark.parametrize("script", GONE.values(), ids=GONE)
async def test_a_worktree_that_is_gone_keeps_no_later_attempt_from_the_branch(
    tmp_path: Path, script: str
):
    """Git counts a worktree without a folder too, and prunes none that is locked."""
    lab = await Lab.open(tmp_path)
    first = await lab.prepare("r1/fix/worker_1@1")
    lab.agent(first, WORK)
    change = await lab.collect(first)
    words = ["env", f"GONE={first.path}", f"BRANCH={first.branch}", "sh", "-ec", script]
    await to_thread.run_sync(shell, words, lab.built.path)

    second = await lab.prepare("r1/fix/worker_1@2")

    assert lab.built.git("symbolic-ref", "HEAD", cwd=Path(second.path)).endswith(first.branch)
    assert second.admin is not None
    assert first.admin is not None
    head = await to_thread.run_sync(Path(first.admin, "HEAD").read_text)
    assert head.strip() == change.head  # its folder may come back: a disk that was not mounted


async def test_a_branch_on_a_disk_of_the_users_that_is_away_is_refused(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    first = await lab.prepare("r1/fix/worker_1@1")
    script = 'rm -rf "$GONE"; git worktree add -qf ../own "$BRANCH"; mv ../own ../away'
    words = ["env", f"GONE={first.path}", f"BRANCH={first.branch}", "sh", "-ec", script]
    await to_thread.run_sync(shell, words, lab.built.path)

    with pytest.raises(BranchTaken) as refused:
        await lab.prepare("r1/fix/worker_1@2")
    assert "/own" in str(refused.value)
    assert "git worktree prune" in refused.value.hint

    await to_thread.run_sync(shell, ["git", "worktree", "prune", "--expire=now"], lab.built.path)
    second = await lab.prepare("r1/fix/worker_1@2")
    assert second.branch == first.branch


async def test_no_agent_sees_another_agents_branch_or_the_users_stash(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    lab.built.write("README.md", "stashed\n")
    lab.built.git("stash", "-q")
    lab.agent(await lab.prepare("r1/fix/worker_1@1"), WORK)
    await lab.collect(await lab.prepare("r1/fix/worker_1@1"))

    other = await lab.prepare("r1/fix/worker_2@1")

    seen = lab.agent(other, "git for-each-ref --format='%(refname)'").stdout.decode().split()
    assert seen == ["refs/heads/main", "refs/heads/plait/r1/fix/worker_2"]


async def test_a_branch_called_like_the_prefix_is_refused_with_the_way_out(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    lab.built.git("branch", "plait")

    with pytest.raises(BranchTaken) as refused:
        await lab.prepare()
    assert all(way in refused.value.hint for way in ("branch_prefix", "git branch -m plait"))

    space = await lab.prepare("r2/fix/worker_1@1", branch_prefix="agents/plait")
    assert space.branch == "agents/plait/r2/fix/worker_1"
    await check_prefix(lab.repo, "free")


async def test_the_private_clone_carries_no_secret_and_no_program(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    built = lab.built
    built.configure("remote.origin.url", "https://user:secret@example.org/r.git")
    for key in ("core.sshCommand", "core.fsmonitor", "filter.x.clean", "diff.external"):
        built.configure(key, "touch /tmp/never")
    built.configure("credential.helper", "!echo password=secret")
    built.configure("core.hooksPath", ".husky")
    space = await lab.prepare()

    config = (tmp_path / str(space.git_dir) / "config").read_text()

    assert "secret" not in config
    assert "never" not in config
    assert "https://example.org/r.git" in config
    assert 'hooksPath = ".husky"' in config  # its hooks lie in the tree, and run in the sandbox


async def test_includes_are_copied_and_never_lead_out(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({".gitignore": ".env\nconf/\nout\nsrc/extra\n", ".worktreeinclude": "conf/\n"})
    built.write(".env", "A=1\n")
    built.write("conf/deep/x", "x\n")
    built.write("src/extra", "e\n")
    (built.path / "conf/in").symlink_to("deep/x")
    (built.path / "out").symlink_to("/etc/passwd")
    lab = await Lab.open(tmp_path, built)

    space = await lab.prepare(includes=[".env", "out", "src/extra", "README.md"])

    place = tmp_path / space.path
    assert (place / ".env").read_text() == "A=1\n"
    assert (place / "conf/deep/x").read_text() == "x\n"
    assert (place / "conf/in").is_symlink()
    assert not (place / "out").is_symlink()
    refused = {one.path: one.refused for one in space.included if one.refused}
    assert refused == {b"out": "the link points outside the repository"}
    assert (await lab.collect(space)).is_empty


async def test_workspaces_that_would_fill_the_disk_are_refused(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    room = {"root": tmp_path / "not" / "yet", "floor": 0}

    await check_space(lab.repo, "HEAD", count=20, **room)
    with pytest.raises(WorkspaceError, match="MB are free"):
        await check_space(lab.repo, "HEAD", count=1 << 40, **room)


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
async def test_submodules_are_filled_and_work_in_them_is_kept(tmp_path: Path, strategy: Strategy):
    built = submodule(RepositoryBuilder.small(tmp_path / "repo"))
    lab = await Lab.open(tmp_path, built)
    modules = built.path / ".git/modules"
    before = snapshot_of(built.path), snapshot_of(modules)
    untouched = await lab.prepare("r1/fix/worker_2@1", strategy=strategy)
    seen = lab.agent(untouched, "git submodule status; git status --porcelain; cat mod/README.md")
    assert seen.stdout.decode().split()[1:] == ["mod", "(heads/main)", "#", "sample"]
    assert (await lab.collect(untouched)).embedded == ()

    space = await lab.prepare(strategy=strategy)
    lab.agent(
        space,
        "cd mod; echo 1 > committed; git add -A; git commit -qm one; echo 2 > left; cd ..;"
        "git add mod; git commit -qm moved",
    )
    change = await lab.collect(space)

    (kept,) = change.embedded
    assert kept.path == b"mod"
    inner = RepositoryBuilder(tmp_path / "inner", init=False)
    inner.git("fetch", "-q", str(kept.bundle), "refs/*:refs/kept/*")
    assert inner.show("refs/kept/plait/head", "left") == b"2\n"
    link = built.git("rev-parse", f"{change.head}:mod")
    assert inner.git("log", "-1", "--format=%s", link) == "one"
    assert (snapshot_of(built.path), snapshot_of(modules)) == before


async def test_a_users_status_in_a_worktree_looks_into_no_repository_of_an_agent(tmp_path: Path):
    built = submodule(RepositoryBuilder.small(tmp_path / "repo"))
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare(is_mounted=True)
    inside = f"{space.git_dir}/modules/mod"
    built.git("config", "--file", f"{inside}/config", "core.fsmonitor", f"touch {tmp_path}/ran;:")
    outer = tmp_path / space.path

    built.git("status", cwd=outer)
    built.git("diff", "HEAD", cwd=outer)
    await lab.collect(space)
    built.git("status", cwd=outer)

    assert not (tmp_path / "ran").exists()
    built.git("status", cwd=outer / "mod")
    assert (tmp_path / "ran").exists(), "the plant is dead: nothing proved"


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_the_other_event_loop_does_as_well(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)

    assert "work.txt" in lab.files((await lab.collect(space)).head)


async def test_a_directory_workspace_has_no_git(tmp_path: Path):
    lab = await Lab.open(tmp_path)

    space = await lab.prepare(strategy=Strategy.DIRECTORY)

    assert list((tmp_path / space.path).iterdir()) == []
    assert (await lab.collect(space)).is_empty


async def test_a_base_of_uncommitted_edits_holds_them_and_touches_nothing(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    built = lab.built
    built.write("README.md", "edited\n")
    built.write("untracked.txt", "mine\n")
    built.write("staged.txt", "staged\n")
    built.git("add", "staged.txt")
    status, before = built.status(), snapshot_of(built.path)

    clean = await resolve_base(lab.repo, "HEAD", lab.me)
    dirty = await resolve_base(lab.repo, "WORKTREE", lab.me)

    assert clean.commit == built.head
    assert sorted(clean.left_out) == [b"README.md", b"staged.txt", b"untracked.txt"]
    assert dirty.is_snapshot
    assert lab.files(dirty.commit)["README.md"] == "edited\n"
    assert {"untracked.txt", "staged.txt"} <= set(lab.files(dirty.commit))
    assert built.rev(f"{dirty.commit}^") == built.head
    assert await resolve_base(lab.repo, "WORKTREE", lab.me) == dirty
    assert (built.status(), snapshot_of(built.path)) == (status, before)
    with pytest.raises(WorkspaceError, match="is not a commit"):
        await resolve_base(lab.repo, "no-such", lab.me)


async def test_a_stacked_base_is_the_merge_of_its_dependencies_or_their_conflict(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    built, base = lab.built, lab.built.head
    heads = []
    for name, text in (("one", "1\n"), ("two", "2\n"), ("three", "3\n")):
        built.git("checkout", "-q", "-b", name, base)
        path = "clash" if name != "one" else "one"
        heads.append(built.commit({path: text}, name))
    merger, wording = Merger(lab.repo), Wording(message="stack\n", author=lab.me)

    record = Record(root=base, bases=dict.fromkeys(heads, (base,)))

    made = await stack_base(lab.repo, merger, record, heads[:2], wording=wording)
    clash = await stack_base(lab.repo, merger, record, heads, wording=wording)

    assert not isinstance(made, StackConflict)
    assert {"one", "clash"} <= set(lab.files(made.commit))
    assert isinstance(clash, StackConflict)
    assert clash.onto == made.commit
    assert [one.path for one in clash.merged.conflicts] == [b"clash"]


async def test_a_link_to_a_commit_that_the_user_has_not_is_said_for_review(tmp_path: Path):
    built = submodule(RepositoryBuilder.small(tmp_path / "repo"))
    lab = await Lab.open(tmp_path, built)
    older = RepositoryBuilder(built.path / "mod", init=False).commit({"n": "1\n"}, "the user's")
    for name, commit in (("known", older), ("unknown", "1" * 40)):
        space = await lab.prepare(f"r1/{name}/worker_1@1")
        link = f"git update-index --cacheinfo 160000,{commit},mod"
        lab.agent(space, f"rm -rf mod; mkdir mod; {link}; git commit -qm link")
        change = await lab.collect(space)
        assert built.rev(f"{change.head}:mod") == commit

        kept = await measured(lab.repo, change, change.base, meant=(), artifacts=Artifacts())

        assert kept is not None
        said = [note for note in kept.set_aside if "your submodule does not have" in note]
        assert said == (["mod: points to a commit that your submodule does not have"]
                        if name == "unknown" else [])  # fmt: skip


async def test_line_ends_follow_the_repository_while_an_engine_lives(tmp_path: Path):
    """Our git writes as the user's would, and nothing of that counts as a worker's change."""
    lab = await Lab.open(tmp_path)
    for number, (said, ends) in enumerate((("true", b"e\r\n"), ("false", b"e\n")), 1):
        lab.built.configure("core.autocrlf", said)
        space = await lab.prepare(f"r1/fix/worker_{number}@1")
        content = await to_thread.run_sync(Path(space.path, "README.md").read_bytes)
        assert content.endswith(ends)
        change = await lab.collect(space)
        assert isinstance(change, CollectedChange)
        assert change.head == change.base

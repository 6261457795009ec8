"""A landing ends at the old commit or at the new one, and the user's edits are never touched."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.errors import DirtyTarget, GitFailed, WorkspaceError, WorktreeBusy
from engine.git.composition import Composed, LandingStyle, LandRequest, compose
from engine.git.landing import (
    LandingDone,
    LandingRefused,
    LandPrepared,
    RefusalReason,
    land,
    prepare_landing,
    recover_landing,
)
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording
from engine.git.undo import undo_landing
from tests.support.git_lab import Lab
from tests.support.landing_target import Target
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("style", list(LandingStyle))
async def test_landing_brings_files_index_and_ref_of_the_checked_out_target(
    tmp_path: Path, style: LandingStyle
):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo, style)

    done = await land(repo, plan)

    assert isinstance(done, LandingDone)
    target.assert_landed(plan.new)
    subjects = target.built.git("log", "--format=%s", f"{target.old}..main").split("\n")
    assert (
        subjects
        == {
            LandingStyle.MERGE: ["Land the work", "second", "first"],
            LandingStyle.SQUASH: ["Land the work"],
            LandingStyle.REBASE: ["second", "first"],
        }[style]
    )


async def test_landing_moves_a_branch_that_nobody_has_checked_out(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("checkout", "-q", "-b", "elsewhere")
    before = snapshot_of(target.built.path)
    repo = await target.open()
    plan = await target.prepared(repo)

    assert isinstance(await land(repo, plan), LandingDone)

    assert plan.worktree is None
    assert target.built.rev("main") == plan.new
    assert snapshot_of(target.built.path) == before


async def test_landing_creates_a_branch_when_told_to(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    made = await target.composed(repo, target="fresh", creates=True)
    plan = await prepare_landing(repo, made)
    assert isinstance(plan, LandPrepared)

    await land(repo, plan)

    assert target.built.rev("fresh") == target.head
    with pytest.raises(WorkspaceError, match="exists already"):
        await target.composed(repo, target="fresh", creates=True)


async def test_landing_writes_trailers_and_keeps_the_agents_author(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("checkout", "-q", "work")
    target.built.git("commit", "-q", "--amend", "--no-edit", "--author=Bot <bot@x>")
    target.head = target.built.head
    target.built.git("checkout", "-q", "main")
    repo = await target.open()
    made = await target.composed(repo, LandingStyle.REBASE, trailers=(("Plait-Check", "failed"),))

    shown = target.built.git("log", "-1", "--format=%an %cn|%(trailers:only)", made.new)

    assert shown.strip() == "Bot Ada User|Plait-Check: failed"


async def test_composing_gives_conflicts_back_and_moves_nothing(tmp_path: Path):
    target = Target(tmp_path)
    target.old = target.built.commit({"src/a.py": "a = 1\nb = 4\nc = 3\n"}, "clash")
    repo = await target.open()

    merged = await compose(repo, Merger(repo), target.request(repo))

    assert isinstance(merged, MergedTrees)
    assert [one.path for one in merged.conflicts] == [b"src/a.py"]
    assert target.built.rev("main") == target.old
    resolved = await target.composed(repo, tree=target.built.rev(f"{target.head}^{{tree}}"))
    assert target.built.rev(f"{resolved.new}^{{tree}}") == resolved.tree


class _Milder(Merger):
    """Merges for real, and says that git had to leave something out."""

    async def merge3(self, base: str, ours: str, theirs: str) -> MergedTrees:
        return replace(await super().merge3(base, ours, theirs), caveat="No moves were followed.")


async def test_a_landing_tells_what_git_left_out_of_its_merge(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()

    made = await compose(repo, _Milder(repo), target.request(repo))

    assert isinstance(made, Composed)
    assert made.note == "No moves were followed."
    assert (await target.composed(repo)).note == ""


async def test_only_the_change_lands_when_its_base_held_uncommitted_edits(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("checkout", "-q", "-b", "dirty", target.base)
    target.base = target.built.commit({"mine.txt": "uncommitted edit\n"}, "snapshot")
    target.head = target.built.commit({"agent.txt": "agent\n"}, "agent")
    target.built.git("checkout", "-q", "main")
    repo = await target.open()

    for style in LandingStyle:
        made = await target.composed(repo, style)
        assert target.built.show(made.new, "mine.txt") == b"mine\n"
        assert target.built.show(made.new, "agent.txt") == b"agent\n"
        reached = target.built.git("rev-list", made.new).split()
        assert target.base not in reached


DIRT = {
    "an edit": lambda root: (root / "src/a.py").write_text("mine\n"),
    "an edit of the same size": lambda root: (root / "src/a.py").write_text(
        "a = 1\nb = 7\nc = 3\n"
    ),
    "a removal": lambda root: (root / "src/a.py").unlink(),
    "an untracked file": lambda root: (root / "new").write_text("mine\n"),
    "an untracked folder": lambda root: (
        (root / "new/deep/file.txt").mkdir(parents=True),
        (root / "new/deep/file.txt/mine").write_text("mine\n"),
    ),
    "a link to a folder": lambda root: (root / "new").symlink_to(root / "src"),
    "a changed mode": lambda root: (root / "src/a.py").chmod(0o755),
    "a link": lambda root: (
        (root / "src/a.py").unlink(),
        (root / "src/a.py").symlink_to("/etc/passwd"),
    ),
}


@pytest.mark.parametrize("dirty", DIRT.values(), ids=DIRT)
async def test_landing_refuses_edits_in_its_way_and_leaves_everything(tmp_path: Path, dirty):  # noqa: ANN001 (a callable of a path)
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    dirty(target.built.path)
    before = snapshot_of(target.built.path)
    status = target.built.status()

    for attempt in (
        lambda: land(repo, plan),
        lambda: recover_landing(repo, plan, target.trash),
    ):
        with pytest.raises(DirtyTarget):
            await attempt()

    with pytest.raises(DirtyTarget):
        await target.prepared(repo)
    assert snapshot_of(target.built.path) == before
    assert target.built.status() == status
    assert target.built.rev("main") == target.old


async def test_landing_refuses_staged_and_assumed_unchanged_edits(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    target.built.git("update-index", "--assume-unchanged", "src/a.py")
    target.built.write("src/a.py", "mine\n")
    with pytest.raises(DirtyTarget):
        await target.prepared(repo)
    target.built.git("update-index", "--no-assume-unchanged", "src/a.py")
    target.built.git("add", "src/a.py")
    target.built.git("show", "HEAD:src/a.py")
    target.built.write("src/a.py", target.built.show("HEAD", "src/a.py"))
    with pytest.raises(DirtyTarget):
        await target.prepared(repo)


async def test_landing_leaves_edits_elsewhere_alone(tmp_path: Path):
    target = Target(tmp_path)
    target.built.write("mine.txt", "edited\n")
    target.built.write("untracked.txt", "mine\n")
    target.built.write("other.txt", "staged\n")
    target.built.git("add", "other.txt")
    repo = await target.open()

    assert isinstance(await land(repo, await target.prepared(repo)), LandingDone)

    assert target.built.status().split("\n") == [
        "M mine.txt", "M  other.txt", "?? untracked.txt",
    ]  # fmt: skip


async def test_landing_refuses_a_target_that_moved(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    moved = target.built.commit({"late.txt": "late\n"}, "late")

    refused = await land(repo, plan)

    assert isinstance(refused, LandingRefused)
    assert refused.reason is RefusalReason.MOVED
    assert target.built.rev("main") == moved
    assert target.built.status() == ""


async def test_landing_goes_back_when_the_ref_is_moved_while_it_writes(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    moved = target.built.git("commit-tree", f"{target.old}^{{tree}}", "-p", target.old, "-m", "x")
    run = repo.run

    async def sneak(*words: str, **more: object) -> object:
        if words[0] == "checkout-index":
            move = ("update-ref", "refs/heads/main", moved)
            await to_thread.run_sync(target.built.git, *move)
        return await run(*words, **more)  # type: ignore[arg-type]

    repo.run = sneak  # type: ignore[method-assign]
    refused = await land(repo, plan)

    assert isinstance(refused, LandingRefused)
    assert target.built.rev("main") == moved
    assert target.built.status() == ""


UNDER_WAY = {
    "a rebase of another branch": ("git checkout -q work; git rebase main || true", None),
    "a merge": (
        (
            "git checkout -q -b c main~1; echo x > src/a.py; git commit -qam c;"
            "git checkout -q main; echo y > src/a.py; git commit -qam d; git merge c || true"
        ),
        RefusalReason.UNDER_WAY,
    ),
    "a bisect of the target": ("git bisect start main main~2", RefusalReason.UNDER_WAY),
    "a rebase of the target": (
        (
            "git branch up main~1; echo z > src/a.py; git commit -qam z; git checkout -q up;"
            "echo q > src/a.py; git commit -qam q; git checkout -q main; git rebase up || true"
        ),
        RefusalReason.UNDER_WAY,
    ),
}


@pytest.mark.parametrize(("state", "reason"), UNDER_WAY.values(), ids=UNDER_WAY)
async def test_landing_waits_for_what_is_under_way(
    tmp_path: Path, state: str, reason: RefusalReason | None
):
    target = Target(tmp_path)
    target.built.shell(state)
    repo = await target.open()
    made = Composed(
        target="main",
        old=target.built.rev("main"),
        new=target.built.git("commit-tree", "main^{tree}", "-p", "main", "-m", "x"),
        tree="",
    )

    plan = await prepare_landing(repo, made)

    if reason is None:
        assert isinstance(plan, LandPrepared)
    else:
        assert isinstance(plan, LandingRefused)
        assert plan.reason is reason


async def test_landing_refuses_a_target_checked_out_twice(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("worktree", "add", "-q", "--force", str(tmp_path / "second"), "main")
    repo = await target.open()

    refused = await prepare_landing(repo, await target.composed(repo))

    assert isinstance(refused, LandingRefused)
    assert refused.reason is RefusalReason.TWICE


async def test_landing_reaches_a_target_checked_out_in_a_linked_worktree(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("checkout", "-q", "-b", "elsewhere")
    place = tmp_path / "linked"
    target.built.git("worktree", "add", "-q", str(place), "main")
    repo = await target.open()

    plan = await target.prepared(repo)
    assert isinstance(await land(repo, plan), LandingDone)

    assert plan.worktree == str(place)
    assert target.built.status(place) == ""
    assert target.built.git("rev-parse", "HEAD", cwd=place) == plan.new
    assert target.built.git("reflog", "-1", "--format=%gs", cwd=place) == "plait: land"


async def test_landing_waits_for_a_foreign_index_lock(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    lock = target.built.write(".git/index.lock", b"somebody else's")

    for attempt in (land(repo, plan), recover_landing(repo, plan, target.trash)):
        with pytest.raises(WorktreeBusy):
            await attempt

    assert lock.read_bytes() == b"somebody else's"
    assert target.built.rev("main") == target.old


@pytest.mark.parametrize("eol", ["true", "input", "false"])
async def test_landing_writes_line_ends_as_the_user_has_them(tmp_path: Path, eol: str):
    target = Target(tmp_path)
    target.built.configure("core.autocrlf", eol, scope="--global")
    target.built.git("rm", "-rq", "--cached", ".")
    target.built.git("reset", "-q", "--hard")
    repo = await target.open()

    await land(repo, await target.prepared(repo))

    ending = b"\r\n" if eol == "true" else b"\n"
    assert (target.built.path / "new/deep/file.txt").read_bytes() == b"new" + ending
    assert target.built.status() == ""


async def test_landing_leaves_out_of_a_sparse_checkout_what_is_not_in_it(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({"in/x": "1\n", "out/y": "1\n"})
    built.git("sparse-checkout", "set", "in")
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, "git sparse-checkout disable; echo 2 > in/x; echo 2 > out/y; echo n > in/n")
    change = await lab.collect(space)
    assert lab.files(change.head)["out/y"] == "2\n"
    request = LandRequest(
        target="main",
        base=change.base,
        head=change.head,
        message="x",
        author=lab.me,
        committer=lab.me,
    )

    made = await compose(lab.repo, Merger(lab.repo), request)
    assert isinstance(made, Composed)
    plan = await prepare_landing(lab.repo, made)
    assert isinstance(plan, LandPrepared)
    assert isinstance(await land(lab.repo, plan), LandingDone)

    assert built.status() == ""
    assert (built.path / "in/x").read_text() == "2\n"
    assert not (built.path / "out/y").exists()


LFS = {
    "clean": "git-lfs clean -- %f",
    "smudge": "git-lfs smudge -- %f",
    "process": "git-lfs filter-process",
    "required": "true",
}


@pytest.mark.needs("git-lfs")
async def test_large_files_are_pointers_for_agents_and_whole_for_the_user(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    for key, value in LFS.items():
        built.configure(f"filter.lfs.{key}", value, scope="--global")
    built.commit({".gitattributes": "*.psd filter=lfs -text\n", "a.psd": "large\n" * 9})
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    seen = lab.agent(space, "cat a.psd; git status --porcelain; git mv a.psd b.psd")
    assert seen.stdout.startswith(b"version https://git-lfs")
    assert seen.stdout.count(b"\n") == 3
    lab.agent(space, "echo new > new.psd; git add -A; git commit -qm new; echo left > left.psd")
    change = await lab.collect(space)
    assert built.show(change.head, "left.psd").startswith(b"version https://git-lfs")
    request = LandRequest(
        target="main",
        base=change.base,
        head=change.head,
        message="x",
        author=lab.me,
        committer=lab.me,
    )

    made = await compose(lab.repo, Merger(lab.repo), request)
    assert isinstance(made, Composed)
    plan = await prepare_landing(lab.repo, made)
    assert isinstance(plan, LandPrepared)
    assert isinstance(await land(lab.repo, plan), LandingDone)

    assert (built.path / "b.psd").read_text() == "large\n" * 9
    assert (built.path / "new.psd").read_text() == "new\n"
    assert (built.path / "left.psd").read_text() == "left\n"
    assert not (built.path / "a.psd").exists()
    assert built.status() == ""


@pytest.mark.needs("ssh-keygen")
async def test_landings_are_signed_as_the_user_signs(tmp_path: Path):
    target = Target(tmp_path)
    built = target.built
    key = tmp_path / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    await anyio.run_process(words)
    (tmp_path / "signers").write_text(f"ada@example.org {key.with_suffix('.pub').read_text()}")
    for name, value in {
        "gpg.format": "ssh",
        "user.signingkey": str(key),
        "commit.gpgsign": "true",
        "gpg.ssh.allowedSignersFile": str(tmp_path / "signers"),
    }.items():
        built.configure(name, value, scope="--global")
    repo = await target.open()

    plan = await target.prepared(repo)

    built.git("verify-commit", str(plan.new))
    shown = built.git("log", "-1", "--format=%an %at %cn %ct %s", str(plan.new))
    assert shown == "Ada User 1767225600 Ada User 1767225600 Land the work"
    key.unlink()
    with pytest.raises(GitFailed):
        await target.composed(repo)


@pytest.mark.parametrize("is_pinned", [True, False])
async def test_a_gc_of_the_users_takes_away_no_landing_that_is_prepared(
    tmp_path: Path,
    is_pinned: bool,  # noqa: FBT001 (a table)
):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    pins = target.built.git("for-each-ref", "--format=%(refname)", "refs/plait/@landing").split()
    if not is_pinned:
        target.built.git("update-ref", "-d", *pins)

    target.built.forget_unreachable()

    if is_pinned:
        assert isinstance(await land(repo, plan), LandingDone)
        target.assert_landed(plan.new)
        assert target.built.git("for-each-ref", "refs/plait/@landing") == ""
    else:
        with pytest.raises(GitFailed):
            await land(repo, plan)


async def test_undo_goes_back_to_where_the_target_was(tmp_path: Path):
    target = Target(tmp_path)
    before = snapshot_of(target.built.path)
    repo = await target.open()
    plan = await target.prepared(repo)
    await land(repo, plan)

    back = await undo_landing(
        repo, Merger(repo), plan, Wording(message="x", author=repo.settings.sign(0))
    )
    assert isinstance(back, LandPrepared)
    await land(repo, back)

    assert target.built.rev("main") == target.old
    assert snapshot_of(target.built.path) == before
    assert target.built.status() == ""


async def test_undo_keeps_what_came_after(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    await land(repo, plan)
    target.built.commit({"late.txt": "late\n"}, "late")

    wording = Wording(message="Undo a landing", author=repo.settings.sign(0))
    back = await undo_landing(repo, Merger(repo), plan, wording)
    assert isinstance(back, LandPrepared)
    await land(repo, back)

    assert (target.built.path / "late.txt").exists()
    assert (target.built.path / "README.md").exists()
    assert not (target.built.path / "new").exists()
    assert target.built.status() == ""

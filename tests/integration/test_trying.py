"""A try puts a result into the user's checkout and takes it back byte for byte."""

import os
from pathlib import Path

import pytest

from engine.errors import WorkspaceError, WorktreeBusy
from engine.review.trying import OpenTry, leave_on, put_on, take_back, try_in
from tests.support.checkouts import Checkout, opened, picture, result_of, told
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


async def tried(place: Checkout, tree: str = "") -> OpenTry:
    repo = await opened(place.built)
    trial, _ = await put_on(repo, result_of(place.built, tree or place.tree), now=1.0)
    return trial


async def test_the_result_is_there_and_goes_again_from_a_clean_checkout(place: Checkout):
    seen, before = told(place.built), picture(place.built)
    trial = await tried(place)
    assert trial.aside == ()
    assert (place.path / "changed").read_text() == "one\nTWO\n"
    assert (place.path / "turned/inner").read_text() == "was a file\n"
    assert (place.path / "folder").read_text() == "was a folder\n"
    assert (place.path / "link").readlink() == Path("other")
    assert not os.access(place.path / "script", os.X_OK)
    assert not (place.path / "deep").exists()
    now = picture(place.built)
    assert {one: now[one] for one in ("HEAD", "BRANCHES", "INDEX")} == {
        one: before[one] for one in ("HEAD", "BRANCHES", "INDEX")
    }
    done = await take_back(await opened(place.built))
    assert done is not None
    assert (done.edited, done.staged) == ((), "")
    assert picture(place.built) == before
    assert told(place.built) == seen


async def test_own_edits_of_every_kind_come_back(place: Checkout):
    place.edit()
    seen, before = told(place.built), picture(place.built)
    trial = await tried(place)
    assert set(trial.aside) == {b"clash", b"new/deep/file", b"turned"}
    assert (place.path / "clash").read_text() == "theirs\n"
    assert (place.path / "other").read_text() == "staged, then edited\n"
    assert (place.path / "untracked/file").read_text() == "untracked\n"
    assert place.built.git("show", f"{trial.edits}:clash") == "mine, unstaged"
    assert place.built.git("show", f"{trial.edits}:new/deep/file") == "an untracked file of mine"
    await take_back(await opened(place.built))
    assert picture(place.built) == before
    assert told(place.built) == seen


async def test_a_conflicted_index_comes_back(place: Checkout):
    built = place.built
    built.write("clash", "stashed\n")
    built.git("stash", "-q")
    built.commit({"clash": "committed\n"}, "mine")
    assert built.try_git("stash", "pop").returncode == 1
    assert b"u UU" in told(built)[1]
    seen, before = told(built), picture(built)
    trial = await tried(place)
    assert b"clash" in trial.aside
    assert (place.path / "clash").read_text() == "theirs\n"
    await take_back(await opened(built))
    assert picture(built) == before
    assert told(built) == seen


async def test_folders_of_the_users_in_the_way_of_files_come_back(place: Checkout):
    built = place.built
    (place.path / "changed").unlink()
    built.write("changed/mine/deep.txt", "in the way\n", mode=0o600)
    (place.path / "changed/empty").mkdir(mode=0o711)
    (place.path / "folder/more").mkdir()
    built.write("folder/more/x.log", "ignored, in the way\n")
    (place.path / "new").symlink_to("untracked")
    before = picture(built)
    trial = await tried(place)
    assert {b"changed/mine/deep.txt", b"folder/more/x.log", b"new"} <= set(trial.aside)
    assert (place.path / "changed").read_text() == "one\nTWO\n"
    assert (place.path / "new/deep/file").read_text() == "new\n"
    await take_back(await opened(built))
    assert picture(built) == before


async def test_edits_made_while_trying_are_kept_and_named(place: Checkout):
    before = picture(place.built)
    await tried(place)
    place.built.write("changed", "edited while trying\n")
    place.built.write("turned/more", "added while trying\n")
    place.built.write("mine", "an edit elsewhere\n")
    place.built.git("add", "changed")
    done = await take_back(await opened(place.built))
    assert done is not None
    assert set(done.edited) == {b"changed", b"turned/more"}
    assert place.built.git("show", f"{done.ref}:changed") == "edited while trying"
    assert place.built.git("show", f"{done.ref}:turned/more") == "added while trying"
    (copy,) = place.path.glob(".git/plait/trash/*/files/changed")
    assert str(copy.parent) == done.copies
    assert place.built.git("show", f"{done.staged}:changed") == "edited while trying"
    after = picture(place.built)
    assert (place.path / "mine").read_text() == "an edit elsewhere\n"
    assert {k: v for k, v in after.items() if k != "mine"} == {
        k: v for k, v in before.items() if k != "mine"
    }


async def test_another_result_replaces_the_first(place: Checkout):
    place.edit()
    before = picture(place.built)
    await tried(place)
    repo = await opened(place.built)
    trial, back = await put_on(
        repo, result_of(place.built, place.built.rev("main^{tree}"), "s2/worker_1"), now=2.0
    )
    assert back is not None
    assert back.trial.result.worker == "s1/worker_1"
    assert trial.written == 0
    assert picture(place.built) == before
    await take_back(repo)
    assert picture(place.built) == before


async def test_going_back_is_refused_after_a_commit_and_keeping_ends_it(place: Checkout):
    await tried(place)
    place.built.git("commit", "-qam", "while trying")
    during = picture(place.built)
    repo = await opened(place.built)
    with pytest.raises(WorkspaceError, match="another commit has been checked out") as refused:
        await take_back(repo)
    assert "git reset --soft" in refused.value.hint
    assert picture(place.built) == during
    assert await leave_on(repo) is not None
    assert try_in(repo.plait_dir) is None
    assert picture(place.built) == during


async def test_it_goes_back_after_the_commit_is_taken_back(place: Checkout):
    before = picture(place.built)
    await tried(place)
    place.built.git("commit", "-qam", "while trying")
    place.built.git("reset", "-q", "--soft", "HEAD~1")
    assert await take_back(await opened(place.built)) is not None
    assert picture(place.built) == before


def diverge(place: Checkout) -> None:
    """Commit something on `main` that conflicts with the branch `side`."""
    place.built.git("checkout", "-q", "-b", "side")
    place.built.commit({"clash": "side\n"}, "side")
    place.built.git("checkout", "-q", "main")
    place.built.commit({"clash": "main\n"}, "main")


async def test_a_merge_under_way_comes_back_and_can_go_on(place: Checkout):
    diverge(place)
    assert place.built.try_git("merge", "side").returncode == 1
    seen, before = told(place.built), picture(place.built)
    await tried(place)
    assert (place.path / "clash").read_text() == "theirs\n"
    await take_back(await opened(place.built))
    assert picture(place.built) == before
    assert told(place.built) == seen
    place.built.git("merge", "--abort")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rebase", "side"), "a rebase is under way"),
        (("bisect", "start"), "a bisect is under way"),
        (("update-index", "--split-index"), "the index here is split"),
    ],
)
async def test_states_in_which_nothing_is_tried(place: Checkout, words: list[str], said: str):
    diverge(place)
    place.built.try_git(*words)
    before = picture(place.built)
    with pytest.raises(WorkspaceError, match=said):
        await tried(place)
    assert picture(place.built) == before
    assert not (place.path / ".git/plait/try.json").exists()


async def test_a_bare_repository_and_a_submodule_are_refused(place: Checkout, tmp_path: Path):
    bare = RepositoryBuilder(tmp_path / "bare", bare=True)
    with pytest.raises(WorkspaceError, match="a bare repository"):
        await put_on(await opened(bare), result_of(place.built, place.tree), now=1.0)
    line = f"160000 commit {place.built.head}\tsub\n"
    tree = place.built.git("mktree", stdin=line.encode())
    before = picture(place.built)
    with pytest.raises(WorkspaceError, match="the submodule sub"):
        await tried(place, tree)
    assert picture(place.built) == before


async def test_another_git_at_work_and_a_pipe_in_the_way_are_refused(place: Checkout):
    lock = place.path / ".git/index.lock"
    lock.write_bytes(b"")
    with pytest.raises(WorktreeBusy):
        await tried(place)
    lock.unlink()
    assert try_in(place.path / ".git/plait") is None
    (place.path / "changed").unlink()
    os.mkfifo(place.path / "changed")
    before = told_names(place)
    with pytest.raises(WorkspaceError, match="neither a file"):
        await tried(place)
    assert told_names(place) == before
    assert not list((place.path / ".git/plait/tries").iterdir())


def told_names(place: Checkout) -> dict[str, int]:
    return {str(one): one.lstat().st_mode for one in sorted(place.path.iterdir())}


async def test_each_write_that_fails_leaves_everything_as_it_was(
    place: Checkout, monkeypatch: pytest.MonkeyPatch
):
    place.edit()
    before, real, n = picture(place.built), os.fchmod, 0
    while True:
        left = n = n + 1

        def fchmod(number: int, mode: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(28, "No space left on device")
            real(number, mode)

        monkeypatch.setattr("engine.git.shifts.os.fchmod", fchmod)
        try:
            await tried(place)
        except OSError:
            monkeypatch.undo()
            assert picture(place.built) == before
            assert try_in(place.path / ".git/plait") is None
            assert not (place.path / ".git/index.lock").exists()
            assert not list((place.path / ".git/plait/tries").iterdir())
            continue
        break
    assert n > 12, "too little was written for this test to mean anything"


async def test_a_file_edited_in_the_last_moment_stops_the_try(
    place: Checkout, monkeypatch: pytest.MonkeyPatch
):
    """The edit comes after everything was kept and the index locked."""
    real, is_edited = os.fsync, False

    def fsync(number: int) -> None:
        nonlocal is_edited
        real(number)
        if not is_edited and (place.path / ".git/plait/try.json").exists():
            is_edited = True
            place.built.write("changed", "edited in the last moment\n")

    before = picture(place.built)
    monkeypatch.setattr("engine.store.files.os.fsync", fsync)
    with pytest.raises(WorkspaceError, match="changed has just changed"):
        await tried(place)
    monkeypatch.undo()
    assert {k for k, v in picture(place.built).items() if before[k] != v} == {"changed"}
    assert try_in(place.path / ".git/plait") is None


async def test_line_ends_are_those_that_git_would_write(place: Checkout):
    place.built.commit({".gitattributes": "*.bat text eol=crlf\n"}, "attributes")
    place.built.git("checkout", "-q", "-b", "crlf")
    place.built.commit({"run.bat": "one\ntwo\n"}, "bat")
    tree = place.built.rev("crlf^{tree}")
    place.built.git("checkout", "-q", "main")
    place.built.git("update-index", "-q", "--refresh")
    before = picture(place.built)
    await tried(place, tree)
    assert (place.path / "run.bat").read_bytes() == b"one\r\ntwo\r\n"
    await take_back(await opened(place.built))
    assert picture(place.built) == before


async def test_a_repository_without_a_commit_gets_its_nothing_back(tmp_path: Path):
    source = Checkout(tmp_path / "a")
    built = RepositoryBuilder(tmp_path / "b")
    built.git("fetch", "-q", str(source.path), "refs/plait/kept:refs/plait/kept")
    built.write("changed", "an untracked file\n")
    before = picture(built)
    repo = await opened(built)
    trial, _ = await put_on(repo, result_of(built, source.tree), now=1.0)
    assert trial.aside == (b"changed",)
    await take_back(repo)
    assert picture(built) == before


async def test_a_linked_worktree_has_its_own_try(place: Checkout, tmp_path: Path):
    linked = RepositoryBuilder(tmp_path / "linked", init=False)
    place.built.git("worktree", "add", "-q", "--detach", "--force", str(linked.path), "main")
    linked.write("clash", "mine\n")
    main, before = picture(place.built), (linked.path / "clash").read_bytes()
    there = await opened(linked)
    await put_on(there, result_of(place.built, place.tree), now=1.0)
    assert (linked.path / "clash").read_text() == "theirs\n"
    assert picture(place.built) == main
    with pytest.raises(WorkspaceError, match="has the result of r1/s1/worker_1"):
        await tried(place)
    assert picture(place.built) == main
    assert await take_back(await opened(place.built)) is not None
    assert (linked.path / "clash").read_bytes() == before
    assert linked.git("status", "--porcelain") == "M clash"


async def test_files_that_a_sparse_checkout_leaves_out_stay_out(place: Checkout):
    place.built.git("sparse-checkout", "set", "--no-cone", "/*", "!/changed")
    assert not (place.path / "changed").exists()
    seen, before = told(place.built), picture(place.built)
    trial = await tried(place)
    assert trial.skipped == 1
    assert not (place.path / "changed").exists()
    assert (place.path / "clash").read_text() == "theirs\n"
    await take_back(await opened(place.built))
    assert picture(place.built) == before
    assert told(place.built) == seen


async def test_attributes_of_an_own_file_come_back(place: Checkout):
    file = place.built.write("clash", "mine\n")
    try:
        os.setxattr(file, "user.mine", b"kept")
    except OSError:
        pytest.skip("no attributes of files here [mount the temporary folder with user_xattr]")
    await tried(place)
    assert os.listxattr(file) == []
    await take_back(await opened(place.built))
    assert os.getxattr(file, "user.mine") == b"kept"


async def test_a_try_cut_short_stays_locked_while_it_cannot_go_back(place: Checkout):
    before = picture(place.built)
    trial = await tried(place)
    lock = place.path / ".git/index.lock"
    lock.write_bytes(b"plait landing try\n")  # as a process leaves it that is killed
    place.built.git("update-ref", "refs/heads/main", "refs/plait/kept")
    repo = await opened(place.built)
    with pytest.raises(WorkspaceError, match="another commit"):
        await take_back(repo)
    assert lock.exists()
    place.built.git("update-ref", "refs/heads/main", trial.head or "")
    assert await take_back(repo) is not None
    assert not lock.exists()
    assert picture(place.built) == before

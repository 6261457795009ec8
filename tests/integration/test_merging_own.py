"""The user's own conflicted merge, rebase, cherry-pick or stash, decided without any run."""

import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from engine.errors import StoreError, WorkspaceError, WorktreeBusy
from engine.git.checkout import keep_copies
from engine.git.unfinished import remove_dead_locks
from engine.messages import commands as c
from engine.review.alone.other_merges import BranchMerge, ToolFiles, ToolMerge
from engine.review.alone.own import OwnMerge
from engine.site.trash import KEPT_S, bring_back, purge, trash_items
from tests.support.merging_runs import SOURCE, changed
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
MINE, THEIRS = (
    changed(3, "mine", changed(9, "mine 9")),
    changed(3, "theirs", changed(9, "theirs 9")),
)
KINDS = {
    "merge": ("merge", "side", "git merge --continue"),
    "rebase": ("rebase", "side", "git rebase --continue"),
    "cherry-pick": ("cherry-pick", "side", "git cherry-pick --continue"),
    "stash": ("stash", "pop", "git stash drop"),
}


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    """`main` and `side` conflict at two places of `code`; nothing is under way."""
    made = RepositoryBuilder(tmp_path / "project")
    made.commit({"code": SOURCE, "other": SOURCE, "gone": SOURCE}, "start")
    made.git("checkout", "-q", "-b", "side")
    made.commit({"code": THEIRS, "other": changed(2, "theirs"), "gone": THEIRS}, "their work")
    made.git("checkout", "-q", "main")
    made.commit({"code": MINE}, "my work")
    return made


def begin(built: RepositoryBuilder, doing: str) -> None:
    if doing == "stash":
        (built.path / "code").write_text(THEIRS)
        built.git("stash")
        built.commit({"code": changed(3, "later", changed(9, "later 9"))}, "meanwhile")
    done = built.try_git(*KINDS[doing][:2])
    assert done.returncode, done


async def opened(built: RepositoryBuilder) -> OwnMerge:
    return await OwnMerge.begin(built.path, built.environment)


@pytest.mark.parametrize("doing", KINDS)
async def test_each_of_gits_own_conflicts_is_decided_and_put_in_place(
    built: RepositoryBuilder, doing: str
):
    begin(built, doing)
    merge = await opened(built)
    view = await merge.conflicts()
    assert (view.doing, view.next_step) == (doing, KINDS[doing][2])
    assert view.target == ("side" if doing == "rebase" else "main")
    assert [(file.path, len(file.hunks)) for file in view.files] == [("code", 2)]
    first = "".join(line.text for line in view.files[0].hunks[0].incoming if line.sign == "+")
    await merge.resolve(c.ChooseHunk(path="code", hunk=0, choice="incoming"))
    view = await merge.resolve(c.WriteHunk(path="code", hunk=1, text="agreed\n"))
    assert view.is_resolved
    assert "<<<<<<<" in (built.path / "code").read_text()
    done = await merge.resolve(c.FinishResolving())
    assert done.is_finished
    assert (built.path / "code").read_text() == changed(3, first.strip(), changed(9, "agreed"))
    assert built.git("diff", "--name-only", "--diff-filter=U") == ""
    assert built.git("status", "--porcelain", "code").startswith(("M ", "A "))
    if doing != "stash":  # nothing of the user's was written over
        assert not list((built.path / ".git/plait/trash").rglob("code"))
    if doing != "stash":
        built.git("-c", "core.editor=true", *done.next_step.split()[1:])
        assert built.git("show", "HEAD:code") + "\n" == (built.path / "code").read_text()
    with pytest.raises(WorkspaceError, match="there is no open conflict"):
        await opened(built)


async def test_decisions_outlive_the_process_and_belong_to_one_merge(built: RepositoryBuilder):
    begin(built, "merge")
    await (await opened(built)).resolve(c.ChooseHunk(path="code", hunk=0, choice="both"))
    view = await (await opened(built)).conflicts()
    assert [hunk.choice for hunk in view.files[0].hunks] == ["both", None]
    assert view.can_undo
    built.git("merge", "--abort")
    begin(built, "rebase")
    view = await (await opened(built)).conflicts()
    assert [hunk.choice for hunk in view.files[0].hunks] == [None, None]


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
async def test_what_the_user_has_mended_by_hand_stays(built: RepositoryBuilder, style: str):
    built.git("config", "merge.conflictStyle", style)
    begin(built, "merge")
    code = built.path / "code"
    text = code.read_text()
    start, end = text.index("<<<<<<<"), text.index("line 4")
    code.write_text("# seen\n" + text[:start] + "by hand\n" + text[end:])
    merge = await opened(built)
    view = await merge.conflicts("code")
    (file,) = view.files
    assert (file.open_hunks, file.is_resolved, view.to_look_at) == (1, False, ())
    await merge.resolve(c.ChooseRest(choice="target"))
    await merge.resolve(c.FinishResolving())
    assert code.read_text() == "# seen\n" + changed(3, "by hand", changed(9, "mine 9"))


async def test_an_edit_made_while_deciding_is_taken_over_and_never_written_over(
    built: RepositoryBuilder,
):
    begin(built, "merge")
    merge = await opened(built)
    await merge.resolve(c.ChooseRest(choice="target"))
    (built.path / "code").write_text("all by hand\n")
    with pytest.raises(WorkspaceError, match="have changed"):
        await merge.resolve(c.FinishResolving())
    view = await merge.conflicts()
    assert (view.files[0].is_edited, view.is_resolved, view.moved) == (True, True, True)
    view = await merge.resolve(c.UndoChoice())
    assert not view.files[0].is_edited
    await merge.resolve(c.FinishResolving())
    assert (built.path / "code").read_text() == MINE
    trash = built.path / ".git/plait/trash"
    (item,) = await anyio.to_thread.run_sync(trash_items, trash)
    assert item.origin == f"edits of code in {built.path}"
    back = await bring_back(merge.repo, trash, item.id)
    assert back == f"{built.path}/code.restored"
    assert (built.path / "code.restored").read_text() == "all by hand\n"
    assert await anyio.to_thread.run_sync(trash_items, trash) == []


def test_copies_are_kept_for_so_long_and_halves_of_a_purge_are_never_offered(
    built: RepositoryBuilder,
):
    trash = built.path / ".git/trash"
    (copy,) = keep_copies(str(built.path), [b"code", b"missing"], trash)
    assert Path(copy.copy).read_text() == MINE
    (trash / ".going-half").mkdir()
    (kept,) = trash_items(trash)
    for now, left in ((kept.at + KEPT_S - 9, [kept]), (kept.at + KEPT_S + 9, [])):
        purge(trash, now)
        assert trash_items(trash) == left
        assert len(list(trash.iterdir())) == len(left)


async def test_an_edit_that_cannot_be_told_apart_is_named_and_kept(built: RepositoryBuilder):
    begin(built, "merge")
    code = built.path / "code"
    code.write_text(code.read_text().replace("=======\n", "", 1))
    merge = await opened(built)
    view = await merge.conflicts()
    assert (view.to_look_at, view.files[0].open_hunks) == (("code",), 2)
    await merge.resolve(c.ChooseRest(choice="incoming"))
    await merge.resolve(c.FinishResolving())
    assert "<<<<<<<" in next((built.path / ".git/plait/trash").rglob("code")).read_text()


async def test_what_was_added_outside_is_no_conflict_any_more(built: RepositoryBuilder):
    built.commit({"other": changed(2, "mine too")}, "a second conflict")
    begin(built, "merge")
    merge = await opened(built)
    await merge.resolve(c.ChooseRest(choice="both", paths=("code",)))
    (built.path / "other").write_text("by the user\n")
    built.git("add", "other")
    view = await merge.conflicts()
    assert ([file.path for file in view.files], view.is_resolved) == (["code"], True)
    await merge.resolve(c.FinishResolving())
    assert built.git("show", ":other") == "by the user"


async def test_whole_files_are_decided_and_deleted_as_git_would(built: RepositoryBuilder):
    built.git("rm", "-q", "gone")
    built.git("commit", "-q", "-m", "gone")
    built.try_git("merge", "side")
    merge = await opened(built)
    view = await merge.conflicts()
    assert view.file("gone").kind == "modify/delete"
    await merge.resolve(c.ChooseRest(choice="target", paths=("code",)))
    await merge.resolve(c.ChooseWhole(path="gone", choice="target"))
    await merge.resolve(c.FinishResolving())
    assert not (built.path / "gone").exists()
    assert built.git("diff", "--name-only", "--diff-filter=U") == ""


async def test_line_ends_of_the_checkout_are_no_edits(built: RepositoryBuilder):
    built.git("config", "core.autocrlf", "true")
    begin(built, "merge")
    merge = await opened(built)
    view = await merge.conflicts()
    assert (view.files[0].open_hunks, view.decisions) == (2, 0)
    await merge.resolve(c.ChooseRest(choice="target"))
    await merge.resolve(c.FinishResolving())
    assert (built.path / "code").read_bytes() == MINE.replace("\n", "\r\n").encode()
    assert built.git("show", ":code") + "\n" == MINE


async def test_any_two_branches_are_decided_in_memory(built: RepositoryBuilder):
    merge = await BranchMerge.begin(
        built.path, target="main", incoming="side", environment=built.environment
    )
    view = await merge.resolve(c.ChooseRest(choice="incoming"))
    assert (view.doing, view.is_resolved) == ("preview", True)
    done = await merge.resolve(c.FinishResolving())
    assert done.tree
    assert built.git("show", f"{done.tree}:code") + "\n" == THEIRS
    assert built.status() == ""


async def test_the_files_of_a_mergetool_are_decided_and_written(
    built: RepositoryBuilder, tmp_path: Path
):
    names = ("base", "local", "remote")
    for name, text in zip(names, (SOURCE, MINE, THEIRS), strict=True):
        (tmp_path / name).write_text(text)
    begin(built, "merge")
    files = ToolFiles(
        base=tmp_path / "base",
        local=tmp_path / "local",
        remote=tmp_path / "remote",
        merged=built.path / "code",
    )
    merge = await ToolMerge.begin(files, built.environment)
    assert (await merge.conflicts()).files[0].open_hunks == 2
    with pytest.raises(WorkspaceError, match="still to resolve"):
        await merge.resolve(c.FinishResolving())
    await merge.resolve(c.ChooseHunk(path="code", hunk=0, choice="both"))
    merge = await ToolMerge.begin(files, built.environment)
    await merge.resolve(c.ChooseRest(choice="target"))
    assert (await merge.resolve(c.FinishResolving())).is_finished
    assert (built.path / "code").read_text() == changed(3, "mine\ntheirs", changed(9, "mine 9"))


_DIES = """
import os, signal, sys
import anyio
import anyio.to_thread
from engine.messages import commands as c
from engine.git.runner import Repo
from engine.review.alone import own

async def main(folder, last):
    merge = await own.OwnMerge.begin(folder)
    await merge.resolve(c.ChooseRest(choice="both"))
    run, put, left = Repo._run_once, own.put, int(last)

    async def dying(*words):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return await run(*words)

    async def putting(*words, **more):
        Repo._run_once = dying
        return await put(*words, **more)

    own.put = putting
    await merge.resolve(c.FinishResolving())

anyio.run(main, *sys.argv[1:])
"""


async def test_a_kill_at_any_moment_of_putting_results_in_place_loses_nothing(
    built: RepositoryBuilder,
):
    """Killed before every third of its commands in turn, and at last not at all."""
    built.commit({"other": changed(2, "mine too")}, "a second conflict")
    done = changed(3, "mine\ntheirs", changed(9, "mine 9\ntheirs 9"))
    env = {**built.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    for last in range(0, 21, 3):
        built.git("reset", "-q", "--hard")
        begin(built, "merge")
        wrote = (built.path / "code").read_text()
        words = [sys.executable, "-c", _DIES, str(built.path), str(last)]
        ended = await anyio.run_process(words, env=env, check=False)
        assert (built.path / "code").read_text() in {wrote, done}
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        merge = await opened(built)
        assert (await merge.conflicts()).is_resolved
        await merge.resolve(c.FinishResolving())
        assert (built.path / "code").read_text() == done
        assert built.git("diff", "--name-only", "--diff-filter=U") == ""
        assert not (built.path / ".git/index.lock").exists()
    else:
        pytest.fail("it never came to its end")
    assert last > 3
    built.fsck()


async def test_a_lock_of_one_that_lives_is_never_taken_away(built: RepositoryBuilder):
    begin(built, "merge")
    merge = await opened(built)
    await merge.resolve(c.ChooseRest(choice="target"))
    lock, me = built.path / ".git/index.lock", psutil.Process()
    for living in (f"plait landing own merge {me.pid} {me.create_time() + 1}\n", "of some git\n"):
        lock.write_text(living)
        with pytest.raises(WorktreeBusy):
            await merge.resolve(c.FinishResolving())
        assert lock.read_text() == living
    lock.write_text(f"plait landing own merge {me.pid} {me.create_time() - 60}\n")
    await remove_dead_locks(merge.repo)
    assert not lock.exists()


@pytest.fixture
def moved_along(tmp_path: Path) -> RepositoryBuilder:
    """A merge under way: `c/new` was added to a moved folder, `b/f` moved twice and conflicts."""
    made = RepositoryBuilder(tmp_path / "project")
    made.commit({"b/f": SOURCE, "b/g": SOURCE + "g\n", "b/h": SOURCE + "h\n"}, "start")
    made.git("checkout", "-q", "-b", "side")
    made.git("mv", "b", "c")
    made.commit({"c/f": changed(3, "theirs")}, "move the folder")
    made.git("checkout", "-q", "main")
    made.git("mv", "b/f", "mine")
    made.commit({"mine": changed(3, "mine"), "b/new": "new\n"}, "move a file, add another")
    assert made.try_git("merge", "side").returncode
    return made


async def test_a_file_for_a_moved_folder_is_told_beside_a_text_with_markers(
    moved_along: RepositoryBuilder,
):
    view = await (await opened(moved_along)).conflicts()
    told = {file.path: str(file.kind) for file in view.files}
    assert told == {"b/f": "rename/rename", "c/new": "directory rename"}


async def test_a_file_for_a_moved_folder_stays_told_when_others_are_resolved(
    moved_along: RepositoryBuilder,
):
    moved_along.git("rm", "-q", "--cached", "b/f", "mine")
    moved_along.git("add", "c/f")
    merge = await opened(moved_along)
    view = await merge.conflicts()
    assert [(file.path, str(file.kind)) for file in view.files] == [("c/new", "directory rename")]
    await merge.resolve(c.ChooseWhole(path="c/new", choice="target"))
    await merge.resolve(c.FinishResolving())
    staged = moved_along.git("ls-files").split("\n")
    assert "b/new" in staged
    assert "c/new" not in staged


async def test_a_result_whose_answers_cannot_be_remembered_stays_out_of_the_files(
    built: RepositoryBuilder,
):
    begin(built, "merge")
    merge = await opened(built)
    for hunk in range(2):
        await merge.resolve(c.ChooseHunk(path="code", hunk=hunk, choice="incoming"))
    before = (built.path / "code").read_bytes(), built.git("ls-files", "-s")
    memory = built.path / ".git/plait/resolutions.json"
    memory.mkdir(parents=True)
    with pytest.raises(StoreError):
        await merge.resolve(c.FinishResolving())
    assert ((built.path / "code").read_bytes(), built.git("ls-files", "-s")) == before

    memory.rmdir()  # the control
    assert (await merge.resolve(c.FinishResolving())).is_finished
    assert (built.path / "code").read_text() == THEIRS


async def test_a_question_that_could_not_be_written_down_is_not_counted(built: RepositoryBuilder):
    begin(built, "merge")
    review = await (await opened(built))._load()
    action = c.AskAgent(path="code", hunk=0)
    before = review.assisted

    def fail() -> None:
        with review.asking_about(action, by="helper", is_ahead=True):
            with (
                pytest.raises(WorkspaceError, match="asked already"),
                review.asking_about(action, by="helper"),
            ):
                pass
            raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        fail()
    assert (review.assisted, review.asking) == (before, {})
    with review.asking_about(action, by="helper", is_ahead=True):
        assert review.assisted != before

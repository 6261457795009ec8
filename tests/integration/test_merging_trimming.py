"""Hunks left out of a change before it lands: what lands, what stays on refs, and when not."""

from pathlib import Path

import pytest

from engine.api import Engine, reach
from engine.errors import EngineError, WorkspaceError
from engine.messages import commands as c
from engine.messages.commands import Seen
from engine.messages.diffs import ChangeDiff, file_key
from engine.messages.merging import (
    CheckWorker,
    DecideConflict,
    EditChange,
    FileText,
    LeaveOutHunks,
    ReadText,
)
from engine.messages.questions import (
    CleanUp,
    ListTrash,
    ReadDiff,
    ReadReport,
    ReadSides,
    RestoreTrash,
    WaitIdle,
)
from engine.messages.results import Verdict, WorkerView
from engine.phases import Phase
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import (
    SOURCE,
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    writes,
)

pytestmark = pytest.mark.anyio
WHO = "s1/worker_1"
TWO = changed(1, "one", changed(12, "twelve"))
EDITABLE = {"code": TWO, "new": "new\n", "win.txt": "a\r\n"}
WINDOWS = "a\r\nb\udcff\r\n"
"""Line ends of Windows, and a byte that is no UTF-8."""


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, {"run.sh": "true\n", "pic": "a\0b"})


def key_of(diff: ChangeDiff, path: str, text: str) -> str:
    """The hunk of a file that adds or removes this line."""
    for file, keys in zip(diff.files, diff.keys, strict=True):
        for key, hunk in zip(keys, file.hunks, strict=True):
            if file.path == path and any(line.text == text for line in hunk.lines):
                return key
    raise AssertionError((path, text))


async def seen(engine: Engine, run: str, worker: str = WHO) -> WorkerView:
    return (await engine.view(run)).worker(worker)


async def test_a_hunk_left_out_does_not_land_and_stays_on_the_attempts_ref(place: MergingPlace):
    plan = place.workers({"code": TWO, "new": "new\n"}, check="grep -q one code")
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        before = await seen(engine, run.id)
        diff = await engine.port.ask(ReadDiff(run.id, WHO))
        keys = [key_of(diff, "code", "twelve"), key_of(diff, "new", "new")]
        async with reach(place.project, environment=place.environment) as (port, _):
            left = await port.ask(LeaveOutHunks(run.id, WHO, keys))
        now = await seen(engine, run.id)
        assert (now.left_out, now.change) == (tuple(keys), left)
        assert (left.files, left.insertions, left.deletions) == (1, 1, 1)
        assert now.is_check_stale
        assert await engine.port.ask(ReadDiff(run.id, WHO)) == diff
        target = await engine.port.ask(ReadDiff(run.id, WHO, against="target"))
        assert [(file.path, file.added) for file in target.files] == [("code", 1)]
        assert await land(engine, run, WHO) is Phase.LANDED
        with pytest.raises(WorkspaceError, match="undo the landing first"):
            await engine.port.ask(LeaveOutHunks(run.id, WHO, []))
    assert place.text() == changed(1, "one")
    assert place.built.git("ls-tree", "--name-only", "main", "new") == ""
    head = f"refs/plait/{run.id}/{WHO}/attempt_1/head"
    assert before.change is not None
    assert place.built.git("rev-parse", head).strip() == before.change.head
    assert place.text(revision=head) == TWO
    history = place.built.git("log", "-p", "--format=%B", "main")
    assert "Plait-Left-Out: 2" in history
    assert "+twelve" not in history
    place.built.fsck()


async def test_a_file_edited_by_hand_is_checked_landed_and_put_back(place: MergingPlace):
    """A hunk that was left out stays behind, also if another file is edited."""
    plan = place.workers(EDITABLE, check="grep -q a win.txt")
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        before = await seen(engine, run.id)
        key = key_of(await engine.port.ask(ReadDiff(run.id, WHO)), "code", "twelve")
        await engine.port.ask(LeaveOutHunks(run.id, WHO, [key]))
        await engine.port.ask(EditChange(run.id, WHO, FileText(path="win.txt", text=WINDOWS)))
        now = await seen(engine, run.id)
        assert (now.left_out, now.edited) == ((key,), ("win.txt",))
        diff = await engine.port.ask(ReadDiff(run.id, WHO))
        assert [(file.path, file.added) for file in diff.files] == [
            ("code", 2),
            ("new", 1),
            ("win.txt", 2),
        ]
        await engine.port.ask(LeaveOutHunks(run.id, WHO, []))
        assert (await seen(engine, run.id)).edited == ("win.txt",)
        await engine.port.ask(EditChange(run.id, WHO, FileText(path="win.txt", text="a\r\n")))
        back = await seen(engine, run.id)
        assert back.change is not None
        assert before.change is not None
        assert (back.edited, back.change.tree) == ((), before.change.tree)


async def test_what_a_check_leaves_is_no_part_of_a_change_whose_landing_is_undone(
    place: MergingPlace,
):
    """The worktree goes once the change has landed, with what stands in it by then."""
    plan = place.workers(EDITABLE, check="echo left > left; echo more >> new")
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        before = (await seen(engine, run.id)).change
        diff = await engine.port.ask(ReadDiff(run.id, WHO))
        assert await land(engine, run, WHO) is Phase.LANDED
        await engine.port.ask(WaitIdle())
        assert (await engine.port.ask(CleanUp(dry_run=True)))[0].branch
        (kept,) = await engine.port.ask(ListTrash())
        await engine.command(c.UndoLanding(worker=WHO, run=run.id))
        await wait_worker(engine, run, WHO, lambda w: w.phase is Phase.REVIEWING)
        assert await engine.port.ask(ReadDiff(run.id, WHO)) == diff
        await engine.port.ask(EditChange(run.id, WHO, FileText(path="win.txt", text=WINDOWS)))
        assert (await seen(engine, run.id)).edited == ("win.txt",)
        await engine.port.ask(RestoreTrash(kept.id))
    pinned = f"refs/plait/{run.id}/{WHO}/attempt_1"
    assert before is not None
    for ref in (f"{pinned}/head", f"refs/heads/plait/{run.id}/{WHO}"):
        assert place.built.rev(ref) == before.head
    assert place.text("left", f"{pinned}/left/head") == "left\n"
    assert (Path(kept.origin) / "new").read_text() == "new\nmore\n"


async def test_edits_keep_odd_bytes_and_land_with_the_change(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(EDITABLE, check="grep -q a win.txt"))
        before = await seen(engine, run.id)
        text = await engine.port.ask(ReadText(run.id, WHO, "win.txt"))
        assert text == FileText(path="win.txt", text="a\r\n")
        with pytest.raises(WorkspaceError, match="is not text"):
            await engine.port.ask(ReadText(run.id, WHO, "pic"))
        sides = await engine.port.ask(ReadSides(run.id, WHO, ("code", "new", "pic")))
        assert [(one.path, one.old, one.new) for one in sides] == [
            ("code", place.built.git_bytes("show", "main:code"), TWO.encode()),
            ("new", None, b"new\n"),
        ]
        await engine.port.ask(EditChange(run.id, WHO, FileText(path="win.txt", text=WINDOWS)))
        await engine.port.ask(EditChange(run.id, WHO, FileText(path="new")))
        assert before.change is not None
        stale = Seen(tree=before.change.tree or "", attempt=1)
        with pytest.raises(EngineError, match="changed since"):
            await engine.port.ask(EditChange(run.id, WHO, FileText(path="x", text="x"), seen=stale))
        assert await land(engine, run, WHO) is Phase.LANDED
    found = place.built.git_bytes("show", "main:win.txt")
    assert found == WINDOWS.encode(errors="surrogateescape")
    assert place.text() == TWO
    assert place.built.git("ls-tree", "--name-only", "main", "new") == ""
    assert "Plait-Edited: 2" in place.built.git("log", "--format=%B", "main")
    place.built.fsck()


async def test_what_is_decided_about_conflicts_is_what_the_diff_to_the_target_shows(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await conflicted(engine, place, changed(3, "mine"), changed(3, "theirs"))
        wanted = ReadDiff(run.id, "s2/worker_1", against="target")
        diff = await engine.port.ask(wanted)
        assert "1 file still in conflict" in diff.against
        assert diff.result == ""
        assert any(line.text.startswith("<<<<<<<") for line in diff.files[0].hunks[0].lines)
        both = c.ChooseRest(choice="both")
        view = await engine.port.ask(DecideConflict(run.id, "s2/worker_1", both))
        diff = await engine.port.ask(wanted)
        assert (diff.against, diff.result) == ("main as it is now", view.tree)
        (hunk,) = diff.files[0].hunks
        assert [line.text for line in hunk.lines if line.sign == "+"] == ["theirs"]
        text = await engine.port.ask(ReadText(run.id, "s2/worker_1", "code"))
        assert text.text == changed(3, "mine\ntheirs")
        finish = c.FinishResolving(seen=view.tree)
        await engine.port.ask(DecideConflict(run.id, "s2/worker_1", finish))
        await wait_worker(engine, run, "s2/worker_1", lambda w: w.phase is Phase.LANDED)
        landed = await engine.port.ask(wanted)
        assert (landed.against, landed.files) == ("main before it landed", diff.files)


async def test_the_check_runs_on_what_is_left_before_it_lands(place: MergingPlace):
    """The whole passes; without the second hunk it does not, and nothing is landed."""
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO, check="grep -q twelve code"))
        key = key_of(await engine.port.ask(ReadDiff(run.id, WHO)), "code", "twelve")
        await engine.port.ask(LeaveOutHunks(run.id, WHO, [key]))
        assert not (await engine.port.ask(CheckWorker(run.id, WHO, is_own=True))).passed
        assert await land(engine, run, WHO) is Phase.REVIEWING
        assert place.text() == SOURCE
        await engine.port.ask(LeaveOutHunks(run.id, WHO, []))
        assert (await seen(engine, run.id)).left_out == ()
        assert await land(engine, run, WHO) is Phase.LANDED
    assert place.text() == TWO


async def test_whole_files_of_every_kind_go_back_to_what_they_were(place: MergingPlace):
    """Deleted, moved, made executable, binary, and one that keeps another hunk."""
    steps = [
        {"shell": "rm other && git mv run.sh go.sh && printf 'x\\0y' > pic && chmod +x code"},
        {"write": {"path": "kept", "text": "kept\n"}},
    ]
    agent = scripted(*steps, {"result": "done"})
    async with place.engine() as engine:
        run = await reviewed(
            engine, place.manifest({"name": "s1", "agent": agent}, isolation_strategy="worktree")
        )
        diff = await engine.port.ask(ReadDiff(run.id, WHO))
        gone = [file for file in diff.files if file.path != "kept"]
        assert {file.path for file in gone} == {"other", "go.sh", "pic", "code"}
        left = await engine.port.ask(LeaveOutHunks(run.id, WHO, [file_key(file) for file in gone]))
    assert left.head is not None
    names = place.built.git("diff", "--name-only", "main", left.head).split()
    assert names == ["kept"]


async def test_what_cannot_be_left_out_is_refused_in_words(place: MergingPlace):
    plan = place.manifest(
        {"name": "s1", "agent": writes(TWO)},
        {"name": "s2", "agent": writes({"new": "new\n"}), "dependencies": ["s1"]},
        isolation_strategy="worktree",
    )
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        diff = await engine.port.ask(ReadDiff(run.id, WHO))
        with pytest.raises(WorkspaceError, match="s2/worker_1 builds on this change as it is"):
            await engine.port.ask(LeaveOutHunks(run.id, WHO, [diff.keys[0][0]]))
        two = (await engine.port.ask(ReadDiff(run.id, "s2/worker_1"))).keys[0]
        with pytest.raises(WorkspaceError, match="this would leave nothing"):
            await engine.port.ask(LeaveOutHunks(run.id, "s2/worker_1", two))
        with pytest.raises(EngineError, match="no hunk"):
            await engine.port.ask(LeaveOutHunks(run.id, "s2/worker_1", ["0" * 24]))
        reject = c.Reject(worker="s2/worker_1", run=run.id)
        assert isinstance(await engine.command(reject), c.Accepted)
        await engine.port.ask(LeaveOutHunks(run.id, WHO, [diff.keys[0][0]]))


async def test_what_was_left_out_is_known_to_the_next_engine_and_forgotten_by_a_retry(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        key = key_of(await engine.port.ask(ReadDiff(run.id, WHO)), "code", "one")
        left = await engine.port.ask(LeaveOutHunks(run.id, WHO, [key]))
    place.built.git("gc", "-q", "--prune=now")
    async with place.engine() as engine:
        run = await engine.resume(run.id)
        now = await seen(engine, run.id)
        assert (now.left_out, now.change) == ((key,), left)
        again = c.RetryWorker(worker=WHO, run=run.id)
        assert isinstance(await engine.command(again), c.Accepted)
        await run.wait()
        now = await seen(engine, run.id)
        assert (now.attempt, now.left_out) == (2, ())
        assert now.change is not None
        assert now.change.insertions == 2


async def test_a_check_that_was_not_run_on_what_is_left_cannot_be_overruled(place: MergingPlace):
    """It runs; only the red result of exactly this tree is overruled, and the commit says so."""
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO, check="grep -q twelve code"))
        key = key_of(await engine.port.ask(ReadDiff(run.id, WHO)), "code", "twelve")
        await engine.port.ask(LeaveOutHunks(run.id, WHO, [key]))
        assert await land(engine, run, WHO, is_despite_check=True) is Phase.REVIEWING
        now = await seen(engine, run.id)
        assert now.check is not None
        assert (now.check.passed, now.check.is_exact, now.verdict) == (False, True, None)
        assert "You had not seen this failure" in (now.error or "")
        assert place.text() == SOURCE
        assert await land(engine, run, WHO, is_despite_check=True) is Phase.LANDED
        report = await engine.port.ask(ReadReport(run.id))
    assert "Plait-Check: overruled" in place.built.git("log", "-1", "--format=%B", "main")
    assert report.steps["s1"].worker_results[0].is_despite_check


async def test_nothing_is_overruled_where_the_check_passes_on_what_is_left(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO, check="grep -q one code"))
        assert (await seen(engine, run.id)).verdict is Verdict.OWN_TREE
        key = key_of(await engine.port.ask(ReadDiff(run.id, WHO)), "code", "twelve")
        await engine.port.ask(LeaveOutHunks(run.id, WHO, [key]))
        assert (await seen(engine, run.id)).verdict is Verdict.CLAIMED
        assert await land(engine, run, WHO, is_despite_check=True) is Phase.LANDED
        result = (await engine.port.ask(ReadReport(run.id))).steps["s1"].worker_results[0]
    assert (result.verdict, result.is_despite_check) == (Verdict.PROVED, False)
    assert "Plait-Check: passed: grep" in place.built.git("log", "-1", "--format=%B", "main")

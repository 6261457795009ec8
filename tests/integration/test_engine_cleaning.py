"""`clean` over whole runs: branches that landed, worktrees whose run is gone, and getting back."""

import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from engine.messages import commands as c
from engine.messages.questions import CleanUp, ListTrash, RestoreTrash, WaitIdle
from engine.phases import Phase
from tests.support.engine_runs import scripted
from tests.support.merging_runs import SOURCE, MergingPlace, changed, land, reviewed, writes
from tests.support.repositories import snapshot_of

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, {".gitignore": "*.o\n"})


async def abandoned(place: MergingPlace) -> tuple[str, Path]:
    """A run of one worker that waits for review, and whose own folder somebody deletes."""
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(2, "work")))
        (worker,) = (await engine.view(run.id)).workers
    shutil.rmtree(place.built.path / ".git/plait/runs" / run.id)
    return f"{run.id}/{worker.worker}", Path(worker.workspace or "")


async def test_a_branch_goes_once_its_work_is_on_the_target_and_others_stay(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(2, "one"), changed(11, "two")))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        await engine.port.ask(WaitIdle())
        folders = list((place.built.path / ".git/plait/runs").glob("**/collect"))
        assert (len(folders), [entry for folder in folders for entry in folder.iterdir()]) == (
            2,
            [],
        )

        branch = f"plait/{run.id}/s1/worker_1"
        asked = await engine.port.ask(CleanUp(dry_run=True))
        assert [item.branch for item in asked if item.is_safe] == [branch]
        assert branch in place.built.branches()

        items = await engine.port.ask(CleanUp())

        assert [item.branch for item in items if item.was_removed] == [branch]
        kept = f"plait/{run.id}/s2/worker_1"
        assert [(item.branch, item.reasons) for item in items if not item.is_safe] == [
            ("", ("s2/worker_1 is REVIEWING",)),
            (kept, ("s2/worker_1 is REVIEWING",)),
        ]
    assert place.built.branches() == ["main", f"plait/{run.id}/s2/worker_1"]
    kept = f"refs/plait/{run.id}/s1/worker_1/attempt_1/head"
    assert place.text(revision=kept) == changed(2, "one")


async def test_every_branch_that_stays_says_why(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(*(changed(n, f"w{n}") for n in (2, 5, 11))))
        for worker in ("s1/worker_1", "s2/worker_1", "s3/worker_1"):
            await engine.command(c.Reject(worker=worker, run=run.id))
        await engine.port.ask(WaitIdle())
        first, second, third = (f"plait/{run.id}/s{n}/worker_1" for n in (1, 2, 3))
        place.built.git("branch", "-D", second)
        place.built.git("checkout", "-q", third)
        for question in (CleanUp(dry_run=True), CleanUp()):
            said = {one.branch: one.reasons for one in await engine.port.ask(question)}
            assert said.pop(first) == ("its work has not landed yet",)
            assert said.pop(third) == ("it is checked out",)
            assert second not in said
        assert place.built.branches() == ["main", first, third]


@pytest.mark.parametrize("later", [None, "written over by the user\n"])
async def test_a_branch_goes_though_its_history_says_something_else(
    place: MergingPlace, later: str | None
):
    """It landed as one commit, because it merges a branch of the user's without its files."""
    place.built.git("checkout", "-q", "-b", "feature")
    place.built.commit({"feature": "theirs\n"}, "feature")
    place.built.git("checkout", "-q", "main")
    joined = "git commit-tree HEAD^{tree} -p HEAD -p feature -m join"
    words = f"git add -A && git commit -qm work && git reset -q --soft $({joined})"
    agent = scripted(
        {"write": {"path": "code", "text": changed(2, "one")}},
        {"shell": {"command": words, "must": True}},
        {"result": "done"},
    )
    plan = place.manifest({"name": "s1", "agent": agent}, isolation_strategy="worktree")
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        if later is not None:
            place.built.commit({"code": later}, "meanwhile")
        await engine.port.ask(WaitIdle())
        items = await engine.port.ask(CleanUp())
    branches = [item.branch for item in items if item.branch]
    assert branches == [f"plait/{run.id}/s1/worker_1"]
    assert place.built.branches() == ["feature", "main"]
    kept = f"refs/plait/{run.id}/s1/worker_1/attempt_1/head"
    assert place.text(revision=kept) == changed(2, "one")


async def test_a_worktree_whose_run_is_gone_goes_to_the_trash_and_comes_back(place: MergingPlace):
    name, path = await abandoned(place)
    (path / "cache.o").write_text("ignored\n")
    before = snapshot_of(path)
    async with place.engine() as engine:
        asked, branch = await engine.port.ask(CleanUp(dry_run=True))
        assert (f"{asked.run}/{asked.worker}", asked.is_safe, path.exists()) == (name, True, True)
        assert (branch.branch, branch.is_safe) == (f"plait/{name}", False)
        assert "the records of its run are gone" in branch.reasons[0]
        gone, branch = await engine.port.ask(CleanUp())
        assert (gone.was_removed, path.exists()) == (True, False)
        assert branch.branch in place.built.branches()
        assert place.built.worktrees() == [str(place.built.path)]

        (kept,) = await engine.port.ask(ListTrash())
        await engine.port.ask(RestoreTrash(kept.id))
    assert snapshot_of(path) == before
    assert place.built.status(path) == ""
    assert (place.project / "code").read_text() == SOURCE


async def test_a_worktree_whose_run_is_gone_stays_with_what_is_in_no_commit(place: MergingPlace):
    _, path = await abandoned(place)
    (path / "notes").write_text("nobody else has this\n")
    async with place.engine() as engine:
        item, branch = await engine.port.ask(CleanUp())
    assert "in no commit" in item.reasons[0]
    assert branch.branch
    assert (path / "notes").exists()


async def test_a_worktree_that_somebody_deleted_is_forgotten(place: MergingPlace):
    _, path = await abandoned(place)
    shutil.rmtree(path)
    assert str(path) in place.built.worktrees()
    async with place.engine() as engine:
        assert [item.path for item in await engine.port.ask(CleanUp(dry_run=True))] == [""]
        assert str(path) in place.built.worktrees()
        assert [item.path for item in await engine.port.ask(CleanUp())] == [""]
    assert place.built.worktrees() == [str(place.built.path)]


async def test_steps_called_like_folders_of_ours_are_in_nobodys_way(place: MergingPlace):
    texts = {"check": changed(2, "one"), "radar": changed(11, "two")}
    steps = [{"name": name, "agent": writes(text), "check": "true"} for name, text in texts.items()]
    async with place.engine() as engine, AsyncExitStack() as working:
        run = await reviewed(engine, place.manifest(*steps, isolation_strategy="worktree"))
        worktrees = [Path(w.workspace or "") for w in (await engine.view(run.id)).workers]
        for worktree in worktrees:
            user = await working.enter_async_context(
                await anyio.open_process(["cat"], cwd=worktree)
            )
            working.callback(user.kill)
        for name in texts:
            assert await land(engine, run, f"{name}/worker_1") is Phase.LANDED
        await engine.port.ask(WaitIdle())
        cleaned = await engine.port.ask(CleanUp())
        trees = [item.reasons[0] for item in cleaned if not item.branch]
        assert ["it is in use by" in reason for reason in trees] == [True, True]
        branches = [item.reasons for item in cleaned if item.branch]
        assert branches == [("its workspace stays",)] * 2
        assert [worktree.is_dir() for worktree in worktrees] == [True, True]
    for name in texts:
        assert (place.built.path / ".git/plait/runs" / run.id / name / "worker_1/agent.db").exists()


async def test_nothing_is_left_of_the_workspaces_of_a_run_that_is_over(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(*(changed(n, f"w{n}") for n in range(1, 5))))
        workers = (await engine.view(run.id)).workers
        for worker in workers:
            await engine.command(c.Reject(worker=worker.worker, run=run.id))
        await engine.port.ask(WaitIdle())
        folder = Path(workers[0].workspace or "").parents[2]
        assert folder.name == run.id
        await engine.port.ask(CleanUp(dry_run=True))
        assert folder.is_dir()
        await engine.port.ask(CleanUp())
        assert not folder.exists()


async def test_what_a_child_kept_goes_with_its_run_and_the_mirror_with_the_last_one(
    place: MergingPlace,
):
    agent = scripted(
        {"write": {"path": "code", "text": changed(2, "work")}},
        {"shell": "echo session > $HOME/session"},
        {"result": "done"},
    )
    step = {"name": "s1", "agent": agent}
    plan = place.manifest(step, isolation_strategy="worktree", sites={"default": "child"})
    async with place.engine() as engine:
        run = await reviewed(engine, plan)
        (site,) = (place.tmp_path / "state" / "sites").iterdir()
        far = site / "mirror.git/plait/runs" / run.id
        files = sorted(
            path.name for path in far.rglob("*") if path.name in {"recording", "session"}
        )
        assert files == ["recording", "session"]
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        await engine.wait_idle()
        files = [path.name for path in far.rglob("*") if path.name in {"recording", "session"}]
        assert files == ["session"]  # the same recording is here, and HOME is kept as on this disk
        assert [one.path for one in (await engine.diff(run.id, "s1/worker_1")).files] == ["code"]
        assert [line.text for line in (await engine.log(run.id, "s1/worker_1")).lines]
    shutil.rmtree(place.built.path / ".git/plait/runs" / run.id)
    async with place.engine() as engine:
        asked, branch = await engine.port.ask(CleanUp(dry_run=True))
        assert (branch.run, branch.path, branch.is_safe) == (run.id, "", False)
        assert (asked.run, asked.path, asked.is_safe, far.exists()) == (
            run.id,
            str(far),
            True,
            True,
        )
        gone, _ = await engine.port.ask(CleanUp())
        assert (gone.run, gone.was_removed, far.exists()) == (run.id, True, False)
        (label,) = (site / "mirror.git/plait/trash").glob("*/removed.json")
        os.utime(label, (0, 0))  # as if it had been there for a month
        assert await engine.port.ask(CleanUp()) == (branch,)
        mirror, _ = await engine.port.ask(CleanUp())
        assert (mirror.path, mirror.was_removed, site.exists()) == (str(site), True, False)

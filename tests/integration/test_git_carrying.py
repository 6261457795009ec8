"""Edits in the way of a landing are kept, and lie on top of it again."""

import signal
from pathlib import Path

import pytest

from engine.errors import DirtyTarget
from engine.git.carrying import prepare_carrying
from engine.git.landing import LandingDone, LandPrepared, land, recover_landing
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording
from engine.git.recovery import recover_repository
from engine.git.runner import Repo
from tests.integration.test_git_landing_killed import start_victim
from tests.support.landing_target import Target

pytestmark = pytest.mark.anyio


class Edited(Target):
    """The user has edited what the landing changes, and other things."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.built.write("src/a.py", "a = 1\nb = 2\nc = 3\nd = 4\n")
        self.built.write("untracked", "mine\n")
        self.built.write("mine.txt", "edited\n")
        self.built.write("other.txt", "staged\n")
        self.built.git("add", "other.txt")

    async def carrying(self, repo: Repo) -> LandPrepared | MergedTrees:
        wording = Wording(message="edits\n", author=repo.settings.sign(0))
        made = await self.composed(repo)
        plan = await prepare_carrying(repo, Merger(repo), made, wording)
        assert isinstance(plan, (LandPrepared, MergedTrees)), plan
        return plan

    def assert_carried(self, plan: LandPrepared) -> None:
        root = self.built.path
        assert self.built.rev("main") == plan.new
        assert (root / "src/a.py").read_text() == "a = 1\nb = 9\nc = 3\nd = 4\n"
        assert (root / "turned/inner").read_text() == "was a file\n"
        assert not (root / "README.md").exists()
        assert self.built.status().split("\n") == [
            "M mine.txt", "M  other.txt", " M src/a.py", "?? untracked",
        ]  # fmt: skip
        assert self.built.show(str(plan.edits), "src/a.py").endswith(b"d = 4\n")
        assert str(plan.edits) in self.built.git("for-each-ref", "refs/plait/edits")
        self.built.fsck()


async def test_edits_lie_on_top_of_what_was_landed(tmp_path: Path):
    target = Edited(tmp_path)
    repo = await target.open()
    with pytest.raises(DirtyTarget):
        await target.prepared(repo)
    plan = await target.carrying(repo)
    assert isinstance(plan, LandPrepared)
    assert plan.paths == (
        b"README.md",
        b"new/deep/file.txt",
        b"src/a.py",
        b"turned",
        b"turned/inner",
    )

    assert isinstance(await land(repo, plan), LandingDone)

    target.assert_carried(plan)


async def test_an_edit_made_since_is_not_overwritten(tmp_path: Path):
    target = Edited(tmp_path)
    repo = await target.open()
    plan = await target.carrying(repo)
    assert isinstance(plan, LandPrepared)
    target.built.write("src/a.py", "later\n")

    for attempt in (land(repo, plan), recover_landing(repo, plan, target.trash)):
        with pytest.raises(DirtyTarget):
            await attempt

    assert (target.built.path / "src/a.py").read_text() == "later\n"
    assert target.built.rev("main") == target.old


async def test_edits_that_conflict_come_back(tmp_path: Path):
    target = Edited(tmp_path)
    target.built.write("src/a.py", "a = 1\nb = 7\nc = 3\n")
    repo = await target.open()

    clash = await target.carrying(repo)
    assert isinstance(clash, MergedTrees)
    assert [one.path for one in clash.conflicts] == [b"src/a.py"]
    assert (target.built.path / "src/a.py").read_text() == "a = 1\nb = 7\nc = 3\n"
    assert target.built.rev("main") == target.old


async def test_killed_on_the_way_the_edits_are_whole_after_recovery(tmp_path: Path):
    n, was_killed = 1, True
    while was_killed:
        folder = tmp_path / str(n)
        folder.mkdir()
        target = Edited(folder)
        repo = await target.open()
        plan = await target.carrying(repo)
        assert isinstance(plan, LandPrepared)
        victim = start_victim(target, plan, n)
        _, said = victim.communicate(timeout=60)
        was_killed = victim.returncode == -signal.SIGKILL
        assert was_killed or victim.returncode == 0, said

        await recover_repository(repo)
        assert isinstance(await recover_landing(repo, plan, target.trash), LandingDone)

        target.assert_carried(plan)
        n += 7
    assert n > 20

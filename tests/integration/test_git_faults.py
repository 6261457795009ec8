"""After a kill or a failure anywhere, making and collecting a workspace can be done again."""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine.git.landing import LandingDone, land, recover_landing
from engine.git.recovery import recover_repository
from tests.support.git_lab import Lab
from tests.support.landing_target import Target
from tests.support.repositories import snapshot_of

pytestmark = [pytest.mark.anyio, pytest.mark.long]
ROOT = Path(__file__).parents[2]
IS_LONG = bool(os.environ.get("PLAIT_THOROUGH"))


def run_victim(lab: Lab, what: str, n: int) -> bool:
    """Run it, killed at its n-th step; False once it has fewer steps than that."""
    words = [what, str(lab.built.path), str(lab.built.home), str(n), str(lab.root)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.git_victim", *words],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode != 0


async def assert_whole(lab: Lab, before: dict[str, bytes]) -> None:
    """One whole workspace, an untouched checkout, and nothing left over."""
    stale = await recover_repository(lab.repo)
    assert stale.kept == ()
    space = await lab.prepare()
    change = await lab.collect(space)
    place = Path(space.path)
    assert lab.built.worktrees() == [str(lab.built.path), str(place)]
    assert lab.built.status(place) == ""
    assert lab.built.rev(space.branch) == change.head
    assert snapshot_of(lab.built.path) == before
    assert lab.built.status() == ""
    git_dir = lab.built.path / ".git"
    left = [p.name for p in git_dir.rglob("*.lock") if p.name != "git.lock"]
    left += [p.name for p in (git_dir / "plait/git").iterdir() if p.name != "void"]
    assert left == []
    lab.built.fsck()


@pytest.mark.parametrize("what", ["prepare", "collect"])
async def test_killed_at_every_step_it_is_done_again(tmp_path: Path, what: str):
    stride = 1 if IS_LONG else 17
    n, was_killed = 1, True
    while was_killed:
        folder = tmp_path / str(n)
        folder.mkdir()
        lab = await Lab.open(folder)
        before = snapshot_of(lab.built.path)
        if what == "collect":
            lab.agent(await lab.prepare(), "echo w > w; git add w; git commit -qm w; echo l > l")
        was_killed = run_victim(lab, what, n)
        await assert_whole(lab, before)
        if what == "collect":
            assert {"w", "l"} <= set(lab.files("plait/r1/fix/worker_1"))
        n += stride
    assert n > 20, "the hook saw too little for this test to mean anything"


class Faulty:
    """Lets the n-th git call of a repository fail, before or after git has done it."""

    def __init__(self, lab_repo: object, n: int, *, is_after: bool) -> None:
        self.calls, self.n, self.is_after = 0, n, is_after
        self.run = lab_repo.run  # type: ignore[attr-defined]
        lab_repo.run = self  # type: ignore[attr-defined]

    async def __call__(self, *words: str, **more: object) -> object:
        self.calls += 1
        if self.calls != self.n:
            return await self.run(*words, **more)
        if self.is_after:
            await self.run(*words, **more)
        raise OSError(24, "Too many open files")


async def fault_loop(attempt: Callable[[int], Awaitable[bool]]) -> None:
    """Let fault 1, 2, … happen until there are fewer calls than that."""
    stride = 1 if IS_LONG else 7
    n = 1
    while await attempt(n):
        n += stride
    assert n > 4


@pytest.mark.parametrize("is_after", [False, True])
async def test_any_git_call_may_fail_once(tmp_path: Path, is_after: bool):  # noqa: FBT001 (a table)
    async def attempt(n: int) -> bool:
        folder = tmp_path / str(n)
        folder.mkdir()
        lab = await Lab.open(folder)
        before = snapshot_of(lab.built.path)
        other = await Lab.open(folder, lab.built)
        faulty = Faulty(other.repo, n, is_after=is_after)
        failed = False
        try:
            space = await other.prepare()
            other.agent(space, "echo w > w")
            await other.collect(space)
        except OSError:
            failed = True
        await assert_whole(lab, before)
        return failed and faulty.calls >= n

    await fault_loop(attempt)


@pytest.mark.parametrize("is_after", [False, True])
async def test_any_git_call_of_a_landing_may_fail_once(tmp_path: Path, is_after: bool):  # noqa: FBT001 (a table)
    async def attempt(n: int) -> bool:
        folder = tmp_path / str(n)
        folder.mkdir()
        target = Target(folder)
        plan = await target.prepared(await target.open())
        repo = await target.open()
        Faulty(repo, n, is_after=is_after)
        try:
            await land(repo, plan)
            failed = False
        except OSError:
            failed = True
        assert isinstance(
            await recover_landing(await target.open(), plan, target.trash), LandingDone
        )
        target.assert_landed(plan.new)
        return failed

    await fault_loop(attempt)

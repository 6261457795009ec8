"""A landing killed at any moment is old or new and whole once it has been recovered."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from engine.git.landing import LandingDone, LandPrepared, land, recover_landing
from engine.git.merge3 import Merger
from engine.git.objects import Wording
from engine.git.recovery import recover_repository
from engine.git.undo import undo_landing
from engine.review.landing import finish_undoing
from engine.store.codec import to_json
from engine.store.layout import Layout
from tests.support.landing_target import Target
from tests.support.repositories import snapshot_of

pytestmark = [pytest.mark.anyio, pytest.mark.long]
ROOT = Path(__file__).parents[2]
IS_LONG = bool(os.environ.get("PLAIT_THOROUGH"))


def start_victim(target: Target, plan: LandPrepared, n: int) -> subprocess.Popen[bytes]:
    said = asdict(plan)
    said["paths"] = [path.decode() for path in plan.paths]
    file = target.trash.with_name("plan.json")
    file.write_text(json.dumps(said))
    words = [str(target.built.path), str(target.built.home), str(n), str(file)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.git_victim", "land", *words],
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )


async def recover(target: Target, plan: LandPrepared) -> None:
    """Recover as a new engine does, and check the result; do so twice, because it may die too."""
    repo = await target.open()
    await recover_repository(repo)
    for _ in range(2):
        done = await recover_landing(repo, plan, target.trash)
        assert isinstance(done, LandingDone), done
    target.assert_landed(plan.new)
    left = [p.name for p in (target.built.path / ".git").rglob("*.lock") if p.name != "git.lock"]
    assert left == []


async def test_a_landing_killed_at_every_step_is_whole_after_recovery(tmp_path: Path):
    stride = 1 if IS_LONG else 5
    n, was_killed, hurt = 1, True, 0
    while was_killed:
        folder = tmp_path / str(n)
        folder.mkdir()
        target = Target(folder)
        plan = await target.prepared(await target.open())
        victim = start_victim(target, plan, n)
        _, said = victim.communicate(timeout=60)
        was_killed = victim.returncode == -signal.SIGKILL
        assert was_killed or victim.returncode == 0, said
        before = target.built.rev("main")
        assert before in {plan.old, plan.new}
        hurt += bool(target.built.status()) or (target.built.path / ".git/index.lock").exists()
        await recover(target, plan)
        n += stride
    assert n > 20, "the hook saw too little for this test to mean anything"
    assert hurt > 3, "no death hurt anything: there was nothing to recover from"


async def test_an_undo_killed_on_its_way_is_ended_by_the_next_engine(tmp_path: Path):
    n, was_killed, hurt = 1, True, 0
    while was_killed:
        folder = tmp_path / str(n)
        folder.mkdir()
        target = Target(folder)
        before = snapshot_of(target.built.path)
        repo = await target.open()
        plan = await target.prepared(repo)
        await land(repo, plan)
        wording = Wording(message="x", author=repo.settings.sign(0))
        back = await undo_landing(repo, Merger(repo), plan, wording)
        assert isinstance(back, LandPrepared)
        layout = await anyio.to_thread.run_sync(Layout, target.built.path / ".git")
        (layout.root / "undoing.json").write_text(to_json(back))
        victim = start_victim(target, back, n)
        _, said = victim.communicate(timeout=60)
        was_killed = victim.returncode == -signal.SIGKILL
        assert was_killed or victim.returncode == 0, said
        hurt += bool(target.built.status()) or (target.built.path / ".git/index.lock").exists()

        await recover_repository(repo)
        await finish_undoing(repo, layout)

        assert not (layout.root / "undoing.json").exists()
        assert target.built.rev("main") == target.old
        assert snapshot_of(target.built.path) == before
        assert target.built.status() == ""
        n += 1 if IS_LONG else 11
    assert n > 20
    assert hurt > 2


async def test_a_landing_killed_at_random_while_it_writes_many_files_is_whole(tmp_path: Path):
    dice = random.Random(7)
    target = Target(tmp_path)
    built = target.built
    for number in range(300):
        built.write(f"many/f{number}.txt", f"{number}\n" * 3)
    target.base = target.old = built.commit(say="many")
    built.git("checkout", "-q", "-b", "bulk")
    for file in sorted((built.path / "many").glob("*.txt")):
        file.write_text("changed by the agent\n" * 50)
    target.head = built.commit(say="all changed")
    built.git("checkout", "-q", "main")
    repo = await target.open()
    plan = await target.prepared(repo)
    mixed = 0
    for _ in range(40 if IS_LONG else 2):
        built.git("reset", "-q", "--hard", target.old)
        victim = start_victim(target, plan, 0)
        await _wait_locked(target, victim)
        await anyio.sleep(dice.random() * 0.15)
        victim.kill()
        victim.communicate()
        await recover_repository(repo)
        mixed += 0 < len(built.status().split("\n")) < len(plan.paths)
        assert isinstance(await recover_landing(repo, plan, target.trash), LandingDone)
        assert built.head == plan.new
        assert built.status() == ""
    built.fsck()
    assert mixed or not IS_LONG, "no kill met the middle: this proved nothing"


async def _wait_locked(target: Target, victim: subprocess.Popen[bytes]) -> None:
    with anyio.fail_after(30):
        while not (target.built.path / ".git/index.lock").exists() and victim.poll() is None:  # noqa: ASYNC110 (another process makes it)
            await anyio.sleep(0.001)


async def test_recovery_copies_what_is_neither_old_nor_new_before_it_writes(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    lock = target.built.path / ".git/index.lock"
    lock.write_bytes(f"plait landing {plan.name}\n".encode())
    target.built.write("src/a.py", "half writ")
    target.built.write("new/deep/file.txt", "new\n")

    done = await recover_landing(repo, plan, target.trash)

    assert isinstance(done, LandingDone)
    assert [one.path for one in done.trashed] == [b"src/a.py"]
    (copy,) = target.trash.glob("*/files/src/a.py")
    assert (str(copy), copy.read_text()) == (done.trashed[0].copy, "half writ")
    target.assert_landed(plan.new)


async def test_recovery_goes_back_when_others_moved_the_target_since(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    (target.built.path / ".git/index.lock").write_bytes(f"plait landing {plan.name}\n".encode())
    target.built.write("new/deep/file.txt", "new\n")
    moved = target.built.git("commit-tree", "main^{tree}", "-p", "main", "-m", "x")
    target.built.git("update-ref", "refs/heads/main", moved)

    refused = await recover_landing(repo, plan, target.trash)

    assert not isinstance(refused, LandingDone)
    assert target.built.rev("main") == moved
    assert target.built.status() == ""


async def test_recovery_moves_the_ref_of_a_checkout_that_is_gone(tmp_path: Path):
    target = Target(tmp_path)
    target.built.git("checkout", "-q", "--detach")
    place = tmp_path / "linked"
    target.built.git("worktree", "add", "-q", str(place), "main")
    repo = await target.open()
    plan = await target.prepared(repo)
    place.rename(tmp_path / "gone")

    assert isinstance(await recover_landing(repo, plan, target.trash), LandingDone)

    assert target.built.rev("main") == plan.new


async def test_a_failing_write_keeps_the_index_locked_until_it_is_recovered(tmp_path: Path):
    target = Target(tmp_path)
    repo = await target.open()
    plan = await target.prepared(repo)
    run = repo.run

    async def fail(*words: str, **more: object) -> object:
        if words[0] == "checkout-index":
            raise OSError(28, "No space left on device")
        return await run(*words, **more)  # type: ignore[arg-type]

    repo.run = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(OSError, match="No space"):
        await land(repo, plan)
    assert (target.built.path / ".git/index.lock").exists()
    assert target.built.try_git("commit", "-qam", "mixed").returncode != 0
    await recover(target, plan)

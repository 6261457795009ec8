"""A try that is killed at any moment, on its way there or back, is taken back byte for byte."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.review.trying import put_on, take_back, try_in
from tests.support.checkouts import Checkout, opened, picture, result_of, told
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
STRIDE = 2 if os.environ.get("PLAIT_THOROUGH") else 17


def killed(what: str, built: RepositoryBuilder, n: int, tree: str) -> bool:
    """Run a try in a process that kills itself at its n-th deed; say if it lived that long."""
    words = [what, str(built.path), str(built.home), str(n), tree]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.try_victim", *words],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode != 0


def edited(folder: Path) -> Checkout:
    """A checkout with edits of every kind, conflicts in the index among them."""
    place = Checkout(folder)
    place.built.write("other", "stashed\n")
    place.built.git("stash", "-q")
    place.built.commit({"other": "committed\n"}, "mine")
    assert place.built.try_git("stash", "pop").returncode == 1
    place.built.write("clash", "mine, unstaged\n", mode=0o600)
    place.built.write("changed", "staged\n")
    place.built.git("add", "changed")
    place.built.write("new/deep/file", "an untracked file of mine\n")
    place.built.write("some.log", "ignored\n")
    (place.path / "mine").chmod(0o755)
    (place.path / "deep/er").chmod(0o700)
    told(place.built)
    return place


def copied(place: Checkout, folder: Path) -> RepositoryBuilder:
    shutil.copytree(place.path, folder / "repo", symlinks=True)
    shutil.copytree(place.built.home, folder / "repo-home", symlinks=True)
    return RepositoryBuilder(folder / "repo", init=False)


async def assert_back(built: RepositoryBuilder, before: object, seen: object) -> None:
    repo = await opened(built)
    for _ in range(2):  # the second time nothing is on any more
        await take_back(repo)
    assert picture(built) == before
    assert told(built) == seen
    assert try_in(repo.plait_dir) is None
    assert not list((repo.plait_dir / "tries").glob("*"))
    assert not list(repo.plait_dir.glob(".try.json.*"))
    assert not [one for one in (built.path / ".git").glob("*.lock") if one.name != "git.lock"]


@pytest.mark.parametrize("what", ["on", "back"])
async def test_a_try_killed_at_every_step_is_taken_back(tmp_path: Path, what: str):
    place = edited(tmp_path)
    n, was_killed, hurt = 1, True, 0
    while was_killed:
        built = copied(place, tmp_path / str(n))
        seen, before = told(built), picture(built)
        if what == "back":
            await put_on(await opened(built), result_of(built, place.tree), now=1.0)
        began = picture(built)
        was_killed = killed(what, built, n, place.tree)
        now = picture(built)
        hurt += now not in (before, began) or (built.path / ".git/index.lock").exists()
        if not (built.path / ".git/plait/try.json").exists():
            assert now == before, "something changed before the note, or after it was gone"
        await assert_back(built, before, seen)
        n += STRIDE
    assert n > 50, "the hook saw too little for this test to mean anything"
    assert hurt > 1, "no death hurt anything: there was nothing to take back"


async def test_a_copy_that_is_not_what_it_was_is_noticed(tmp_path: Path):
    """With a wrong copy the proof at the end fails, and nothing is forgotten."""
    place = Checkout(tmp_path)
    place.edit()
    repo = await opened(place.built)
    trial, _ = await put_on(repo, result_of(place.built, place.tree), now=1.0)
    (kept,) = [one.kept for one in trial.shifts if one.path == b"clash"]
    copy = repo.plait_dir / "tries" / trial.id / "kept" / kept
    right = copy.read_bytes()
    copy.write_bytes(b"wrong\n")
    with pytest.raises(WorkspaceError, match="clash is not as it was"):
        await take_back(repo)
    assert (repo.plait_dir / "try.json").exists()
    copy.write_bytes(right)
    assert await take_back(repo) is not None
    assert (place.path / "clash").read_text() == "mine, unstaged\n"

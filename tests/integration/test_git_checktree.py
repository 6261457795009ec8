"""A check runs on exactly the tree that would land, and finds nothing else there."""

import os
from pathlib import Path

import pytest

from engine.git.checktree import CheckTree, fill_check_tree, holds
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio


async def test_a_check_tree_is_exactly_the_commit_whatever_a_check_left(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({".gitignore": "node_modules/\n", "dir/x": "1\n"}, "one")
    first = built.head
    built.git("rm", "-rq", "dir")
    built.commit({"dir": "now a file\n", "README.md": "# two\n"}, "two")
    lab = await Lab.open(tmp_path, built)
    place = CheckTree(path=tmp_path / "check", folder=tmp_path / "ours")
    user = snapshot_of(built.path)

    await fill_check_tree(lab.repo, place, first)
    assert (place.path / "dir/x").read_text() == "1\n"
    assert built.git("rev-parse", "HEAD", cwd=place.path) == first
    assert built.status(place.path) == ""
    assert await holds(lab.repo, place, first)

    built.shell(
        "mkdir node_modules; echo d > node_modules/d; echo x > junk; echo evil > README.md;"
        "rm -r src; git init -q sub; echo s > sub/s; ln -s /etc link; rm -rf .git; ln -s /etc .git",
        cwd=place.path,
    )
    assert not await holds(lab.repo, place, first)

    await fill_check_tree(lab.repo, place, built.head)
    assert await holds(lab.repo, place, built.head)
    assert snapshot_of(place.path) == snapshot_of(built.path)
    assert built.status(place.path) == ""
    assert snapshot_of(built.path) == user
    assert built.worktrees() == [str(built.path)]


async def test_a_change_hidden_behind_equal_size_and_time_is_undone(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    place = CheckTree(path=tmp_path / "check", folder=tmp_path / "ours")
    await fill_check_tree(lab.repo, place, "HEAD")
    file = place.path / "README.md"
    seen = file.stat()
    file.write_text("# SAMPLE\n"[: seen.st_size])
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    await fill_check_tree(lab.repo, place, "HEAD")

    assert file.read_text() == "# sample\n"


async def test_only_what_is_kept_stays_and_only_where_the_commit_has_nothing(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    lab.built.commit({".gitignore": "x*\n"}, "one")
    one = lab.built.head
    lab.built.commit({"src/held/file": "held\n"}, "two")
    place = CheckTree(path=tmp_path / "check", folder=tmp_path / "ours")
    await fill_check_tree(lab.repo, place, one)
    for name in ("x1/d", "x 2[*]/d", "x3/d", "src/x4/d", "src/held/d"):
        (place.path / name).parent.mkdir(parents=True, exist_ok=True)
        (place.path / name).write_text("left\n")
    keep = ("x 2[*]", "x3", "src/x4", "src/held", "gone")

    filled = await fill_check_tree(lab.repo, place, lab.built.head, keep=keep)

    assert filled.kept == ("x 2[*]", "x3", "src/x4", "gone")
    left = {str(path.relative_to(place.path)) for path in place.path.rglob("d")}
    assert left == {"x 2[*]/d", "x3/d", "src/x4/d"}
    assert (place.path / "src/held/file").read_text() == "held\n"

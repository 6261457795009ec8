"""A look names every path that is not as it was, whoever set the times back."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.sandbox.tamper import (
    PathChange,
    changed_since,
    executed_by_git,
    fingerprint,
    violations,
)


def edit(top: Path) -> Path:
    path = top / "hooks/pre-commit"
    before = path.stat()
    path.write_text("evil")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return path


def make_executable(top: Path) -> Path:
    (top / "hooks/pre-commit").chmod(0o755)
    return top / "hooks/pre-commit"


def add(top: Path) -> Path:
    (top / "config.worktree").write_text("x")
    return top / "config.worktree"


def remove(top: Path) -> Path:
    (top / "config").unlink()
    return top / "config"


def point_elsewhere(top: Path) -> Path:
    (top / "info/attributes").unlink()
    (top / "info/attributes").symlink_to("/elsewhere")
    return top / "info/attributes"


def lead_a_worktree_elsewhere(top: Path) -> Path:
    (top / "worktrees/a/gitdir").write_text("/elsewhere/.git")
    return top / "worktrees/a/gitdir"


def end_a_branch_with_a_key_that_executes(top: Path) -> Path:
    text = '[core]\n[branch "x"]\n\tmerge = refs/heads/x\n\tfsmonitor = evil\n'
    (top / "config").write_text(text)
    return top / "config"


def replace_by_folder(top: Path) -> Path:
    (top / "config").unlink()
    (top / "config").mkdir()
    return top / "config"


@pytest.fixture
def git_dir(tmp_path: Path) -> Path:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/pre-commit").write_text("good")
    (tmp_path / "config").write_text("[core]")
    (tmp_path / "info").mkdir()
    (tmp_path / "info/attributes").symlink_to("/somewhere")
    (tmp_path / "worktrees/a").mkdir(parents=True)
    (tmp_path / "worktrees/a/gitdir").write_text("/work/.git")
    return tmp_path


@pytest.mark.parametrize(
    ("attack", "change"),
    [
        (edit, PathChange.CHANGED),
        (make_executable, PathChange.CHANGED),
        (add, PathChange.ADDED),
        (remove, PathChange.REMOVED),
        (point_elsewhere, PathChange.CHANGED),
        (replace_by_folder, PathChange.CHANGED),
        (lead_a_worktree_elsewhere, PathChange.CHANGED),
        (end_a_branch_with_a_key_that_executes, PathChange.CHANGED),
    ],
)
def test_every_change_is_named(git_dir: Path, attack: Callable[[Path], Path], change: PathChange):
    before = fingerprint(executed_by_git(git_dir))
    path = attack(git_dir)
    (found,) = violations(before, fingerprint(executed_by_git(git_dir)))
    assert (found.path, found.change) == (os.fsencode(path), change)
    assert str(found) == f"{path} was {change}"


def test_nothing_is_found_where_nothing_was_done(git_dir: Path):
    before = fingerprint(executed_by_git(git_dir))
    (git_dir / "index").write_text("not watched")
    with (git_dir / "config").open("a") as config:
        config.write('\n[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n')
    looked = fingerprint(executed_by_git(git_dir))
    (git_dir / "config").write_text("[core]\n")
    assert violations(looked, fingerprint(executed_by_git(git_dir))) == ()
    assert violations(before, looked) != ()  # a line end more is a change like any other


def test_names_that_are_no_text_are_kept_as_bytes(tmp_path: Path):
    before = fingerprint([tmp_path])
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    (found,) = violations(before, fingerprint([tmp_path]))
    assert found.path.endswith(b"/\xff")


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, int]:
    """A tree, and a moment after it was made."""
    for name in ("kept", "gone", "inner/kept", "left/out"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    newest = max(path.lstat().st_ctime_ns for path in (tmp_path, *tmp_path.rglob("*")))
    while time.time_ns() < newest + 20_000_000:
        os.sched_yield()
    return tmp_path, newest + 10_000_000


def write(top: Path) -> Path:
    path = top / "inner/kept"
    path.write_text("x")
    os.utime(path, ns=(0, 0))
    return path


def make(top: Path) -> Path:
    (top / "inner/new").symlink_to("/elsewhere")
    return top / "inner/new"


def take_away(top: Path) -> Path:
    (top / "gone").unlink()
    return top


@pytest.mark.parametrize("deed", [write, make, take_away])
def test_what_changed_since_a_moment_is_named(tree: tuple[Path, int], deed: Callable[[Path], Path]):
    top, since = tree
    found = changed_since([top], since, leave_out={top / "left"}, at_most=100)
    assert (found.paths, found.is_whole) == ((), True)
    path = deed(top)
    (top / "left/out").write_text("x")
    found = changed_since([top], since, leave_out={top / "left"}, at_most=100)
    assert found.paths == (path,)


def test_too_much_to_look_at_is_told(tree: tuple[Path, int]):
    top, since = tree
    assert not changed_since([top], since, at_most=3).is_whole

"""A fingerprint names every path that is not as it was, whoever set the times back."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.sandbox.tamper import Change, fingerprint, git_paths, outline, violations


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
    (top / "info").unlink()
    (top / "info").symlink_to("/elsewhere")
    return top / "info"


def replace_by_folder(top: Path) -> Path:
    (top / "config").unlink()
    (top / "config").mkdir()
    return top / "config"


@pytest.fixture
def git_dir(tmp_path: Path) -> Path:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/pre-commit").write_text("good")
    (tmp_path / "config").write_text("[core]")
    (tmp_path / "info").symlink_to("/somewhere")
    return tmp_path


@pytest.mark.parametrize(
    ("attack", "change"),
    [
        (edit, Change.CHANGED),
        (make_executable, Change.CHANGED),
        (add, Change.ADDED),
        (remove, Change.REMOVED),
        (point_elsewhere, Change.CHANGED),
        (replace_by_folder, Change.CHANGED),
    ],
)
@pytest.mark.parametrize("take", [fingerprint, outline])
def test_every_change_is_named(
    git_dir: Path,
    attack: Callable[[Path], Path],
    change: Change,
    take: Callable[..., dict[bytes, bytes]],
):
    before = take(git_paths(git_dir))
    path = attack(git_dir)
    (found,) = violations(before, take(git_paths(git_dir)))
    assert (found.path, found.change) == (os.fsencode(path), change)


def test_nothing_is_found_where_nothing_was_done(git_dir: Path):
    before = fingerprint(git_paths(git_dir))
    (git_dir / "index").write_text("not watched")
    assert violations(before, fingerprint(git_paths(git_dir))) == ()


def test_own_folders_may_change_but_not_those_beside_them(tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own-not").mkdir()
    before = outline([tmp_path])
    (tmp_path / "own/x").touch()
    (tmp_path / "own-not/x").touch()
    (found,) = violations(before, outline([tmp_path]), allowed=[tmp_path / "own"])
    assert str(found) == f"{tmp_path}/own-not/x was added"


def test_names_that_are_no_text_are_kept_as_bytes(tmp_path: Path):
    before = fingerprint([tmp_path])
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    (found,) = violations(before, fingerprint([tmp_path]))
    assert found.path.endswith(b"/\xff")

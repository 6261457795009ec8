"""What setup made is given to the next workspace with the same lock files, and to no other."""

import os
from pathlib import Path

import pytest

from engine.supervisor.seeds import KEPT_S, Seeds

SETUP = "npm ci"


@pytest.fixture(autouse=True)
def never_block_the_loop():
    """There is no loop here, and shutil does not know `os.stat` again once it is guarded."""


def workspace(folder: Path, lock: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "package-lock.json").write_text(lock)
    (folder / "src").mkdir()
    return folder


def set_up(seeds: Seeds, folder: Path) -> bool:
    """Set a workspace up as a command would; whether it found the work done."""
    seedling = seeds.begin(folder, SETUP)
    assert seedling is not None
    modules = folder / "node_modules" / "left-pad"
    found = modules.is_dir()
    modules.mkdir(parents=True, exist_ok=True)
    (modules / "index.js").write_text("pad")
    link = folder / "node_modules" / "link"
    if not link.is_symlink():
        link.symlink_to("left-pad/index.js")
    seeds.keep(seedling)
    return found


def test_a_seed_is_given_to_the_same_lock_files_only(tmp_path: Path):
    seeds = Seeds(tmp_path / "seeds")
    assert set_up(seeds, workspace(tmp_path / "a", "1")) is False
    assert set_up(seeds, workspace(tmp_path / "b", "1")) is True
    assert (tmp_path / "b/node_modules/link").readlink() == Path("left-pad/index.js")
    assert set_up(seeds, workspace(tmp_path / "c", "2")) is False


def test_a_workspace_changes_its_own_copy_and_never_the_seed(tmp_path: Path):
    seeds = Seeds(tmp_path / "seeds")
    set_up(seeds, workspace(tmp_path / "a", "1"))
    seeds.begin(workspace(tmp_path / "b", "1"), SETUP)
    (tmp_path / "b/node_modules/left-pad/index.js").write_text("mine")
    seeds.begin(workspace(tmp_path / "c", "1"), SETUP)
    assert (tmp_path / "c/node_modules/left-pad/index.js").read_text() == "pad"


def test_what_the_commit_holds_is_not_replaced_by_a_seed(tmp_path: Path):
    seeds = Seeds(tmp_path / "seeds")
    set_up(seeds, workspace(tmp_path / "a", "1"))
    other = workspace(tmp_path / "b", "1")
    (other / "node_modules").mkdir()
    seeds.begin(other, SETUP)
    assert list((other / "node_modules").iterdir()) == []


def test_without_a_lock_file_nothing_is_kept(tmp_path: Path):
    bare = tmp_path / "bare"
    bare.mkdir()
    assert Seeds(tmp_path / "seeds").begin(bare, SETUP) is None


def test_a_seed_that_nobody_took_for_long_goes(tmp_path: Path):
    seeds = Seeds(tmp_path / "seeds")
    set_up(seeds, workspace(tmp_path / "a", "1"))
    (seed,) = (tmp_path / "seeds").iterdir()
    long_ago = seed.stat().st_mtime - KEPT_S - 60
    os.utime(seed, (long_ago, long_ago))
    set_up(seeds, workspace(tmp_path / "b", "2"))
    assert not seed.exists()

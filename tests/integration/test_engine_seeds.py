"""Test what setup made of the user's files is given to the next tree like it, and to no other."""

import os
import socket
import stat
from pathlib import Path

import pytest

from engine.site.seeds import KEPT_S, MOST_KEPT, Planted, Seeds

SETUP = "npm ci"
BASE = "1" * 40


@pytest.fixture(autouse=True)
def never_block_the_loop():
    """There is no loop here, and shutil does not know `os.stat` again once it is guarded."""


@pytest.fixture
def seeds(tmp_path: Path) -> Seeds:
    return Seeds(tmp_path / "seeds", os.environ)


def workspace(folder: Path, lock: str | None) -> Path:
    folder.mkdir(parents=True)
    if lock is not None:
        (folder / "package-lock.json").write_text(lock)
    (folder / "src").mkdir()
    return folder


def set_up(seeds: Seeds, folder: Path, *, base: str = BASE, is_users: bool = True) -> bool:
    """Set a workspace up as a command would; whether it found the work done."""
    seedling = seeds.sow(folder, SETUP, base=base, is_users=is_users)
    modules = folder / "node_modules" / "left-pad"
    found = modules.is_dir()
    modules.mkdir(parents=True, exist_ok=True)
    (modules / "index.js").write_text("pad")
    (folder / "src/node_modules").mkdir(exist_ok=True)
    (folder / "src/node_modules/run").write_text(f"#!{folder}/node_modules/bin\n")
    (folder / "src/__pycache__").mkdir(exist_ok=True)
    link = folder / "node_modules" / "link"
    if not link.is_symlink():
        link.symlink_to("left-pad/index.js")
    if seedling is not None:
        seeds.keep(seedling, is_well=True)
    return found


def test_a_seed_is_given_to_the_same_lock_files_only(seeds: Seeds, tmp_path: Path):
    assert set_up(seeds, workspace(tmp_path / "a", "1")) is False
    assert set_up(seeds, workspace(tmp_path / "b", "1"), base="2" * 40) is True
    assert (tmp_path / "b/node_modules/link").readlink() == Path("left-pad/index.js")
    assert set_up(seeds, workspace(tmp_path / "c", "2")) is False


def test_without_a_lock_file_a_seed_is_given_to_the_same_commit_only(seeds: Seeds, tmp_path: Path):
    assert set_up(seeds, workspace(tmp_path / "a", None)) is False
    assert set_up(seeds, workspace(tmp_path / "b", None)) is True
    assert set_up(seeds, workspace(tmp_path / "c", None), base="2" * 40) is False


def test_what_setup_made_among_agents_files_is_never_kept(seeds: Seeds, tmp_path: Path):
    assert set_up(seeds, workspace(tmp_path / "a", "1"), is_users=False) is False
    assert set_up(seeds, workspace(tmp_path / "b", "1")) is False
    assert set_up(seeds, workspace(tmp_path / "c", "1"), is_users=False) is True


def test_a_seed_names_the_tree_that_it_is_given_to(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    seeds.sow(workspace(tmp_path / "b", "1"), SETUP, base=BASE, is_users=False)
    given = (tmp_path / "b/src/node_modules/run").read_text()
    assert given == f"#!{tmp_path}/b/node_modules/bin\n"
    assert not (tmp_path / "b/src/__pycache__").exists()


def test_a_workspace_changes_its_own_copy_and_never_the_seed(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    seeds.sow(workspace(tmp_path / "b", "1"), SETUP, base=BASE, is_users=True)
    (tmp_path / "b/node_modules/left-pad/index.js").write_text("mine")
    seeds.sow(workspace(tmp_path / "c", "1"), SETUP, base=BASE, is_users=True)
    assert (tmp_path / "c/node_modules/left-pad/index.js").read_text() == "pad"


def test_what_the_commit_holds_is_not_replaced_by_a_seed(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    other = workspace(tmp_path / "b", "1")
    (other / "node_modules").mkdir()
    seeds.sow(other, SETUP, base=BASE, is_users=True)
    assert list((other / "node_modules").iterdir()) == []


def test_what_is_no_file_is_left_out_and_blocks_nobody(seeds: Seeds, tmp_path: Path):
    """A FIFO that nobody writes to once stopped an engine for good."""
    folder = workspace(tmp_path / "a", "1")
    seedling = seeds.sow(folder, SETUP, base=BASE, is_users=True)
    assert seedling is not None
    (folder / "node_modules").mkdir()
    (folder / "node_modules/file").write_text("file")
    os.mkfifo(folder / "node_modules/fifo")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "node_modules/sock"))
    seeds.keep(seedling, is_well=True)
    other = workspace(tmp_path / "b", "1")
    os.mkfifo(other / "requirements.txt")  # a lock file that is none
    seeds.sow(other, SETUP, base=BASE, is_users=True)
    assert os.listdir(other / "node_modules") == ["file"]  # noqa: PTH208


def test_a_seed_that_nobody_took_for_long_goes(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    (seed,) = (tmp_path / "seeds").iterdir()
    long_ago = seed.stat().st_mtime - KEPT_S - 60
    os.utime(seed, (long_ago, long_ago))
    set_up(seeds, workspace(tmp_path / "b", "2"))
    assert not seed.exists()


def test_no_more_seeds_are_kept_than_a_few_and_none_of_earlier_versions(
    seeds: Seeds, tmp_path: Path
):
    poisoned = tmp_path / ".seeds" / "key" / "node_modules"
    poisoned.mkdir(parents=True)
    for number in range(MOST_KEPT + 2):
        set_up(seeds, workspace(tmp_path / f"w{number}", str(number)))
    assert len(os.listdir(tmp_path / "seeds")) == MOST_KEPT  # noqa: PTH208
    assert not poisoned.exists()


SET_ATTRIBUTE = """import os; os.setxattr("node_modules/left-pad/index.js", "user.a", b"b")"""
KEEP = {
    "changed behind its size and time": "",
    "removed": "rm node_modules/left-pad/index.js",
    "added": "echo > node_modules/new; mkdir node_modules/dir; mkfifo node_modules/dir/fifo",
    "another kind": "cd node_modules; rm -r left-pad; ln -s /etc left-pad",
    "the top a link": "rm -r node_modules; ln -s /etc node_modules",
    "the top gone": "rm -r node_modules src/node_modules",
    "closed": "chmod 000 node_modules",
    "a second name": "ln node_modules/left-pad/index.js kept-by-the-check",
    "attributes": f"python3 -c '{SET_ATTRIBUTE}' || true",
    "read-only": "chmod 444 node_modules/left-pad/index.js",
}


@pytest.mark.parametrize("deed", KEEP)
def test_a_tree_is_restored_whatever_ran_in_it(seeds: Seeds, tmp_path: Path, deed: str):
    """Only what differs is copied anew."""
    set_up(seeds, workspace(tmp_path / "a", "1"))
    tree = workspace(tmp_path / "tree", "1")
    key = seeds.key(tree, SETUP, base=BASE)
    planted = seeds.restore(key, tree, Planted(), kept=())
    assert sorted(planted.tops) == ["node_modules", "src/node_modules"]
    assert seeds.restore(key, tree, planted, kept=planted.tops) is planted
    file = tree / "node_modules/left-pad/index.js"
    before = file.stat()
    file.write_text("dap")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.system(f"cd {tree}; {KEEP[deed] or 'true'}") == 0  # noqa: S605
    again = seeds.restore(key, tree, planted, kept=planted.tops)
    assert file.read_text() == "pad"
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(before.st_mode)
    assert not hasattr(os, "listxattr") or not os.listxattr(file)
    if (other := tree / "kept-by-the-check").exists():
        assert other.read_text() == "dap", "a file with a second name is never written over"
    assert (tree / "src/node_modules/run").read_text() == f"#!{tree}/node_modules/bin\n"
    assert sorted(os.listdir(tree / "node_modules")) == ["left-pad", "link"]  # noqa: PTH208
    assert again.entries.keys() == planted.entries.keys()
    assert seeds.restore(key, tree, again, kept=again.tops) is again


def test_a_tree_of_another_seed_keeps_nothing_of_this_one(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    tree = workspace(tmp_path / "tree", "1")
    planted = seeds.restore(seeds.key(tree, SETUP, base=BASE), tree, Planted(), kept=())
    now = seeds.restore("0" * 32, tree, planted, kept=planted.tops)
    assert now == Planted()
    assert not (tree / "node_modules").exists()


def test_a_link_on_the_way_leads_nobody_out(seeds: Seeds, tmp_path: Path):
    set_up(seeds, workspace(tmp_path / "a", "1"))
    outside = tmp_path / "outside"
    (outside / "node_modules").mkdir(parents=True)
    (outside / "node_modules/mine").write_text("mine")
    tree = workspace(tmp_path / "tree", "1")
    (tree / "src").rmdir()
    (tree / "src").symlink_to(outside)
    key = seeds.key(tree, SETUP, base=BASE)
    planted = seeds.restore(key, tree, Planted(), kept=("src/node_modules",))
    assert planted.tops == ("node_modules",)
    assert os.listdir(outside / "node_modules") == ["mine"]  # noqa: PTH208

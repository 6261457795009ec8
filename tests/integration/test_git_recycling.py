"""Test that a workspace made from a released tree is as new, and that the trash loses nothing."""

import os
import random
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from anyio import create_task_group, to_thread

from engine.beneath import Known
from engine.git import disk_moment, recycling
from engine.git.collection import CollectRequest
from engine.git.disk_moment import DiskMoment
from engine.git.removal import examine
from engine.git.runner import Repo
from engine.git.workspace import Spare, Strategy, Workspace
from engine.messages.questions import TrashItem
from engine.site import trash
from engine.site.trash import bring_back, discard, lend, trash_items
from engine.store.layout import Layout
from tests.integration.test_git_generated import SEEDS, live
from tests.integration.test_git_removal import CASES
from tests.support.git_lab import Lab, shell
from tests.support.repositories import snapshot_of
from tests.support.sites import WANTED, scene

pytestmark = [pytest.mark.anyio, pytest.mark.needs("disk")]

SECOND_NS = 1_000_000_000
SAME_SIZE = "cp -p README.md ../old; tr a-z b-za < ../old > README.md; touch -r ../old README.md"
TRICKS = {
    "same size and time": SAME_SIZE,
    "second name": "ln README.md ../name",
    "folder behind a link": 'mv src ../src; ln -s "$PWD/../src" src',
    "open folder": "chmod 777 src; touch src/a.py",
    "closed folder": "chmod 555 src",
    "folder for a file": "rm README.md; mkdir README.md; echo x > README.md/x",
    "file for a folder": "rm -r src; echo x > src",
    "pipe": "mkfifo pipe",
    "executable": "chmod +x README.md",
    "moved and back": "mv src elsewhere; mv elsewhere src",
    "no longer in git": "git rm -q --cached README.md; echo README.md > .gitignore; git add .; "
    "git commit -qm x",
    "empty folders": "mkdir -p e/m/p/t/y",
    "folders swapped": "mv twin/a t; mv twin/b twin/a; mv t twin/b",
    "folder over another": "git rm -rq twin/a; git mv twin/b twin/a; git commit -qm over",
    "folder to another's place": "git rm -rq twin/a; git mv many/0 twin/a; git commit -qm place",
    "folder into its like": "mv twin/b twin/a/b",
    "files swapped": "mv twin/a/same t; mv twin/b/same twin/a/same; mv t twin/b/same",
    "file over another": "mv twin/a/same twin/b/same",
    "deep": "d=$(printf 'd/%.0s' $(seq 300)); mkdir -p $d; echo x > $d/x",
}
SCRIPTS = {name: script for name, (script, reason) in CASES.items() if not reason} | TRICKS


class Pool(NamedTuple):
    """A lab with a trash."""

    lab: Lab
    layout: Layout

    async def release(self, space: Workspace) -> None:
        """Remove a workspace as the engine does; it must be safe."""
        request = CollectRequest(author=self.lab.me)
        verdict = await examine(self.lab.repo, space, request)
        assert verdict.is_safe, verdict.reasons
        await discard(self.lab.repo, self.layout, verdict)

    async def items(self) -> list[TrashItem]:
        """List the trash."""
        return await to_thread.run_sync(trash_items, self.layout.trash)

    async def restore(self, space: Workspace) -> None:
        """Bring a workspace back from the trash."""
        item = next(item for item in await self.items() if item.origin == space.path)
        await bring_back(self.lab.repo, self.layout.trash, item.id)

    async def lent(self, base: str = "HEAD") -> Spare | None:
        """Take a tree for a revision."""
        commit = self.lab.built.git("rev-parse", base)
        return await lend(self.lab.repo, self.layout, commit, self.lab.root / ".spare")


async def opened(tmp_path: Path) -> Pool:
    lab = await Lab.open(tmp_path)
    lab.built.commit({f"many/{n // 5}/{n}": f"{n}\n" for n in range(20)}, "many")
    twins = {"twin/a/same": "one\n", "twin/b/same": "two\n", "twin/b/other": "x\n"}
    lab.built.commit(twins, "twins")
    lab.built.commit({"src/b.py": "b\n", "README.md": "another\n", "new/deep/x": "x\n"}, "second")
    layout = await to_thread.run_sync(Layout, lab.repo.plait_dir)
    await to_thread.run_sync(layout.make)
    return Pool(lab, layout)


def shape(root: str | Path) -> dict[str, object]:
    """Every file with its bytes and mode, and every folder with its mode."""
    folders = {
        str(Path(at).relative_to(root)): stat.S_IMODE(Path(at).lstat().st_mode)
        for at, _, _ in os.walk(root)
    }
    return {**snapshot_of(Path(root)), "folders": folders}


def inodes(root: str | Path) -> set[int]:
    return {Path(at, name).lstat().st_ino for at, _, names in os.walk(root) for name in names}


def whole(root: str | Path) -> dict[str, bytes]:
    """Every byte in a workspace, repositories inside it included, and the kind of what has none."""
    found: dict[str, bytes] = {}
    for at, _, names in os.walk(root):
        for path in (Path(at, name) for name in names):
            mode = path.lstat().st_mode
            is_read = stat.S_ISREG(mode)
            content = path.read_bytes() if is_read else b""
            content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else content
            found[str(path.relative_to(root))] = b"%o " % mode + content
    found.pop(".git", None)
    return found


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_tree_that_is_used_again_is_as_a_new_one_and_the_trash_loses_nothing(
    tmp_path: Path, script: str
):
    base = "HEAD~1" if script in TRICKS.values() else "HEAD"
    pool = await opened(tmp_path)
    space = await pool.lab.prepare()
    old = inodes(space.path)
    pool.lab.agent(space, script)
    before = whole(space.path)
    is_there = bool(before)
    await pool.release(space)

    spare = await pool.lent(base)
    again = await pool.lab.prepare("r1/fix/worker_2@1", base=base, spare=spare)
    new = await pool.lab.prepare("r1/fix/worker_3@1", base=base)

    assert (spare is not None) is is_there
    assert shape(again.path) == shape(new.path)
    assert not is_there or old & inodes(again.path)
    assert pool.lab.built.status(Path(again.path)) == ""
    if is_there:
        await pool.restore(space)
        assert whole(space.path) == before
        pool.lab.built.fsck()
        assert await pool.items() == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_agents_that_do_anything_leave_nothing_for_the_next(tmp_path: Path, seed: int):
    pool = await opened(tmp_path)
    dice = random.Random(seed)
    spare = None
    for n in range(1, 4):
        space = await pool.lab.prepare(f"r1/fix/worker_{n}@1", spare=spare)
        new = await pool.lab.prepare(f"r1/fix/worker_{n + 10}@1")
        assert shape(space.path) == shape(new.path)
        live(pool.lab, space, dice)
        before = whole(space.path)
        with suppress(AssertionError):  # some of what it did has no other copy
            await pool.release(space)
            spare = await pool.lent()
            if n == 3:
                await pool.restore(space)
                assert whole(space.path) == before


async def test_without_the_times_of_the_kernel_a_trick_would_reach_the_next_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Git alone, which compares whole seconds, takes such a file for unchanged."""
    pool = await opened(tmp_path)
    space = await pool.lab.prepare()
    pool.lab.agent(space, TRICKS["same size and time"])
    now = await to_thread.run_sync(Path(space.path, "README.md").stat)
    await pool.release(space)
    real = recycling.known_files

    def without_times(index: Path, object_format: str) -> Known | None:
        known = real(index, object_format)
        assert known is not None
        return {**known, b"": {b"README.md": (now.st_ino, now.st_ctime_ns)}}

    async def all_of_them(_: Repo, known: Known, __: tuple[str, str]) -> Known:
        return known

    monkeypatch.setattr(recycling, "known_files", without_times)
    monkeypatch.setattr(recycling, "_without", all_of_them)

    spare = await pool.lent()

    assert spare is not None
    assert (spare.tree / "README.md").read_bytes() != b"another\n"


async def test_a_tree_of_other_line_ends_than_now_is_not_used_by_an_engine_that_goes_on(
    tmp_path: Path,
):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare())
    pool.lab.built.configure("core.autocrlf", "true")
    assert await pool.lent() is None

    await pool.release(await pool.lab.prepare("r1/fix/worker_2@1"))
    spare = await pool.lent()
    assert spare is not None
    assert b"\r\n" in await to_thread.run_sync((spare.tree / "README.md").read_bytes)


UNFIT = {
    "other line ends": "git config core.autocrlf true",
    "attributes": "echo '* text' > .git/info/attributes",
    "sparse": "echo src > .git/info/sparse-checkout",
}


@pytest.mark.parametrize("script", UNFIT.values(), ids=UNFIT)
async def test_a_tree_that_git_would_write_otherwise_now_is_not_used(tmp_path: Path, script: str):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare())
    await to_thread.run_sync(shell, ["sh", "-c", script], pool.lab.built.path)
    repo = await Repo.open(pool.lab.built.path, pool.lab.built.environment)
    other = Pool(Lab(pool.lab.built, repo, pool.lab.root), pool.layout)

    assert await other.lent() is None


@pytest.mark.parametrize(
    "written", [{".gitattributes": "*.py eol=crlf\n"}, {"src/.gitattributes": ""}]
)
async def test_a_tree_of_other_attributes_is_not_used(tmp_path: Path, written: dict[str, str]):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare())
    pool.lab.built.commit(written, "attributes")

    assert await pool.lent() is None
    assert await pool.lent("HEAD~1") is not None


async def test_a_tree_with_little_in_common_is_not_used(tmp_path: Path):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare())
    pool.lab.built.commit({f"f{n}": "x" for n in range(50)}, "many")

    assert await pool.lent() is None


@pytest.mark.parametrize("step", [-SECOND_NS, SECOND_NS])
async def test_a_clock_that_was_set_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare())
    real = DiskMoment.now

    def shifted(of: str) -> DiskMoment | None:
        now = real(of)
        return now and now._replace(disk_ns=now.disk_ns + step)

    with monkeypatch.context() as patch:
        patch.setattr(DiskMoment, "now", shifted)
        assert await pool.lent() is None
    assert await pool.lent() is not None


async def test_a_file_system_whose_clock_does_not_tick_soon_lends_nothing_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pool = await opened(tmp_path)
    assert await to_thread.run_sync(DiskMoment.next, str(pool.lab.built.path)) is not None
    with monkeypatch.context() as patch:
        patch.setattr(disk_moment, "_clock_of", lambda _: 0)
        assert await to_thread.run_sync(DiskMoment.next, str(pool.lab.built.path)) is None
        space = await pool.lab.prepare()
    await pool.release(space)
    assert await pool.lent() is None


async def test_each_tree_is_lent_to_one(tmp_path: Path):
    pool = await opened(tmp_path)
    spaces = [await pool.lab.prepare(f"r1/fix/worker_{n}@1") for n in range(1, 8)]
    for space in spaces:
        await pool.release(space)
    commit = pool.lab.built.git("rev-parse", "HEAD")
    spares: list[Spare | None] = []

    async def ask(n: int) -> None:
        place = pool.lab.root / f".spare{n}"
        spares.append(await lend(pool.lab.repo, pool.layout, commit, place))

    async with create_task_group() as tasks:
        for n in range(10):
            tasks.start_soon(ask, n)

    trees = [spare.tree for spare in spares if spare is not None]
    assert len(trees) == len(set(trees)) == 7
    assert all((tree / "README.md").is_file() for tree in trees)


@pytest.mark.parametrize("moment", ["claimed", "noted", "taken"])
async def test_an_engine_that_dies_while_it_takes_a_tree_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
):
    pool = await opened(tmp_path)
    space = await pool.lab.prepare()
    pool.lab.agent(space, "echo '*.o' > .gitignore; echo i > i.o; echo n > n; rm src/a.py")
    before = whole(space.path)
    await pool.release(space)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        match moment:
            case "claimed":
                patch.setattr(trash, "reuse_of", die)
            case "noted":
                patch.setattr(trash, "take_out", die)
            case _:
                patch.setattr(recycling, "Spare", die)
        with pytest.raises(KeyboardInterrupt):
            await pool.lent()

    if moment == "claimed":  # nothing has gone yet
        assert await pool.lent() is not None
    await pool.restore(space)
    assert whole(space.path) == before


async def test_a_clone_is_never_lent(tmp_path: Path):
    pool = await opened(tmp_path)
    await pool.release(await pool.lab.prepare(strategy=Strategy.CLONE))

    assert await pool.lent() is None


RUNGS = [
    pytest.param("bwrap", marks=pytest.mark.needs("bubblewrap")),
    pytest.param("landlock", marks=pytest.mark.needs("landlock")),
    "none",
]


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("kind", ["local", "child"])
async def test_only_agents_behind_mounts_get_a_tree_of_another(
    tmp_path: Path, kind: str, rung: str
):
    """Elsewhere a process that outlived its agent could still write to it."""
    async with scene(kind, tmp_path, rung=rung) as stage:
        at = await stage.worked("echo x > fresh; echo two > old")
        await stage.spaces.collect(at, WANTED)
        old = inodes(at.address.path)
        assert await stage.spaces.release(at, WANTED)

        again = await stage.prepared(stage.at(2))

        assert bool(old & inodes(again.address.path)) is (rung == "bwrap")
        assert await stage.said("cat old code; ls; git status --short", again) == (
            "x\none\ntwo\ncode\nold\n"
        )

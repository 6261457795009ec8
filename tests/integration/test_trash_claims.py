"""Test that two who want the same item of the trash never both get it, and that none is torn up."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from anyio import to_thread

from engine.beneath import is_mounted
from engine.errors import WorkspaceError
from engine.git import recycling, removal
from engine.git.removal import TREE
from engine.git.workspace import Workspace
from engine.site import spaces, trash
from engine.site.trash import KEPT_S, LABEL, purge
from tests.integration.test_git_recycling import Pool, opened, whole
from tests.support.sites import WANTED, scene
from tests.support.users import ordinary_user

pytestmark = [pytest.mark.anyio, pytest.mark.needs("disk")]
T = TypeVar("T")
WORK = "echo ign > .gitignore; echo secret > ign; echo new > n"


class Stop:
    """A place where a thread or a task stops until the test goes on."""

    def __init__(self) -> None:
        self._here, self._go = threading.Event(), threading.Event()

    def at(self, work: Callable[..., T]) -> Callable[..., T]:
        """Return a function that stops before its work."""

        def stopping(*words: object) -> T:
            self._here.set()
            assert self._go.wait(30)
            return work(*words)

        return stopping

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Let it go on at the end."""
        try:
            yield
        finally:
            self._go.set()

    async def reached(self) -> None:
        """Wait until somebody stands here."""
        assert await to_thread.run_sync(self._here.wait, 30)


async def released(tmp_path: Path, work: str = WORK) -> tuple[Pool, Workspace, dict[str, bytes]]:
    pool = await opened(tmp_path)
    space = await pool.lab.prepare()
    pool.lab.agent(space, work)
    before = whole(space.path)
    await pool.release(space)
    return pool, space, before


def spares(root: Path) -> list[Path]:
    return list(root.rglob("*.spare"))


async def test_what_is_brought_back_while_its_tree_is_lent_comes_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pool, space, before = await released(tmp_path)
    stop = Stop()
    monkeypatch.setattr(recycling, "part", stop.at(recycling.part))
    async with anyio.create_task_group() as tasks:
        with stop.passed():
            tasks.start_soon(pool.lent)
            await stop.reached()
            tasks.start_soon(pool.restore, space)
            await anyio.wait_all_tasks_blocked()

    assert whole(space.path) == before
    assert await pool.items() == []


async def test_what_is_being_brought_back_is_not_lent_or_deleted_and_is_brought_back_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pool, space, before = await released(tmp_path)
    stop = Stop()
    refused = []
    monkeypatch.setattr(removal, "_move_back", stop.at(removal._move_back))

    async def again() -> None:
        try:
            await trash.bring_back(pool.lab.repo, pool.layout.trash, name)
        except WorkspaceError as error:
            refused.append(str(error))

    (item,) = await pool.items()
    name = item.id
    async with anyio.create_task_group() as tasks:
        with stop.passed():
            tasks.start_soon(pool.restore, space)
            await stop.reached()
            assert await pool.lent() is None
            late = time.time() + 2 * KEPT_S
            await to_thread.run_sync(purge, pool.layout.trash, late)
            tasks.start_soon(again)

    assert whole(space.path) == before
    assert refused == [f"the trash has nothing called {name!r}"]


async def test_a_tree_that_goes_while_it_is_looked_at_fails_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pool, _, _ = await released(tmp_path)
    (item,) = await pool.items()
    folder = pool.layout.trash / item.id
    monkeypatch.setattr(trash, "take_out", lambda *_: (folder / TREE / "gone").stat())

    assert await pool.lent() is None
    await to_thread.run_sync((folder / LABEL).write_text, "{")
    assert await pool.lent() is None


async def test_lending_leaves_the_date_of_an_item_and_takes_nothing_that_is_being_deleted(
    tmp_path: Path,
):
    pool, _, _ = await released(tmp_path)
    (item,) = await pool.items()
    folder, going = pool.layout.trash / item.id, pool.layout.trash / f".going-{item.id}"
    os.utime(folder / LABEL, (1e9, 1e9))
    folder.rename(going)
    assert await pool.lent() is None
    going.rename(folder)

    assert await pool.lent() is not None
    assert [item.at for item in await pool.items()] == [1e9]


async def test_a_restore_that_cannot_write_the_files_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pool, space, before = await released(tmp_path)
    assert await pool.lent() is not None

    async def full(*_: object) -> None:
        raise WorkspaceError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(removal, "fill", full)
        with pytest.raises(WorkspaceError, match="no space"):
            await pool.restore(space)

    await pool.restore(space)
    assert whole(space.path) == before


@pytest.mark.needs("bubblewrap")
async def test_a_tree_that_a_sandbox_still_has_is_not_lent(tmp_path: Path):
    pool = await opened(tmp_path)
    space = await pool.lab.prepare()
    path = space.path
    words = ["bwrap", "--unshare-pid", "--die-with-parent", "--bind", "/", "/", "--proc", "/proc"]
    words += ["--dev", "/dev", "--bind", path, path, "--chdir", "/", "sh", "-c", "echo up; cat"]
    async with await anyio.open_process(words) as shell:
        assert shell.stdout is not None
        assert shell.stdin is not None
        assert await shell.stdout.receive() == b"up\n"
        await pool.release(space)
        (item,) = await pool.items()
        tree = pool.layout.trash / item.id / TREE
        assert await pool.lent() is None
        assert await to_thread.run_sync(is_mounted, tree)
        await shell.stdin.aclose()
        await shell.wait()

    with anyio.fail_after(30):  # the kernel ends the last process in the sandbox after its parent
        while await to_thread.run_sync(is_mounted, tree):  # noqa: ASYNC110 - a mount sets no event
            await anyio.sleep(0.01)
    assert await pool.lent() is not None


@pytest.mark.needs("bubblewrap")
async def test_a_stop_between_lending_and_using_leaves_no_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with scene("local", tmp_path, rung="bwrap") as stage:
        at = await stage.worked("echo x > fresh")
        await stage.spaces.collect(at, WANTED)
        assert await stage.spaces.release(at, WANTED)
        begun = anyio.Event()

        async def waiting(*_: object) -> Workspace:
            begun.set()
            await anyio.sleep_forever()
            raise AssertionError

        monkeypatch.setattr(spaces, "prepare", waiting)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.prepared, stage.at(2))
            await begun.wait()
            assert await to_thread.run_sync(spares, tmp_path)
            tasks.cancel_scope.cancel()
        assert not await to_thread.run_sync(spares, tmp_path)


def test_a_spare_tree_of_a_vanished_run_is_removed(tmp_path: Path):
    for run in ("r1", "r2"):
        (tmp_path / f"{run}/fix/worker_1/.attempt_1.spare/src").mkdir(parents=True)

    spaces._remove_spares(tmp_path, ["r2"])

    assert [path.name for path in tmp_path.iterdir()] == ["r2"]
    assert spares(tmp_path)


CLOSED = """
import os, sys
from pathlib import Path
from engine.beneath import Parting, join, part
os.umask(0o022)
os.chdir(sys.argv[1])
root, rest = Path("tree"), Path("rest")
for name in ("src/a", "src/b", "cache/mod/x", "src/cache/y", "src/shut/z"):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(name)
rest.mkdir()
seen = (root / "src/a").lstat()
known = {b"": {}, b"src": {b"a": (seen.st_ino & 0xFFFFFFFF, seen.st_ctime_ns)}, b"src/shut": {}}
for name, mode in {"src/shut": 0, "src/cache": 0o500, "cache/mod": 0o555, "cache": 0o555}.items():
    (root / name).chmod(mode)
rule = Parting(known=known, before_ns=0, folder_mode=0o755)
kept = part(root, rest, rule)
left = sorted(str(one.relative_to(root)) for one in root.rglob("*"))
modes = [oct((rest / name).stat().st_mode)[-3:] for name in ("cache", "cache/mod", "src/cache")]
print(kept, left, modes, (rest / "src/shut/z").read_text(), join(rest, root))
print(sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()))
for one in (root / "cache", root / "cache/mod", root / "src/cache"):
    one.chmod(0o755)
"""


def test_closed_folders_are_parted_and_brought_back_by_an_ordinary_user():
    """A folder that changes its parent is written to; root may do that with any."""
    with ordinary_user() as user:
        done = user.run("-c", CLOSED, str(user.folder))

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "1 ['src', 'src/a'] ['555', '555', '500'] src/shut/z True",
        "['cache/mod/x', 'src/a', 'src/b', 'src/cache/y', 'src/shut/z']",
    ]

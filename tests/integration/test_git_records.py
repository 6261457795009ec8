"""Locks of our own dead are removed, a living one's and a stranger's never; children are ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from blockbuster import BlockBuster

from engine.git.plumbing.lock import RepositoryLock
from engine.git.plumbing.process import execute
from engine.git.recovery import recover_repository
from engine.git.runner import Call, Repo
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

DEAD = '{"pid": 1, "start": 0.5, "words": ["update-ref"]}'


async def opened(tmp_path: Path) -> tuple[RepositoryBuilder, Repo]:
    built = RepositoryBuilder.small(tmp_path / "repo")
    return built, await Repo.open(built.path, built.environment)


def record(repo: Repo, mark: str = "m1") -> Path:
    file = repo.records.folder / f"{mark}.child"
    file.write_text(DEAD)
    return file


async def test_a_lock_that_our_dead_left_is_removed(tmp_path: Path):
    built, repo = await opened(tmp_path)
    noted = record(repo)
    lock = built.write(".git/refs/heads/main.lock", "")

    found = await recover_repository(repo)

    assert found.removed == (str(lock),)
    assert not lock.exists()
    assert not noted.exists()


async def test_a_lock_older_than_anything_of_ours_stays(tmp_path: Path):
    built, repo = await opened(tmp_path)
    lock = built.write(".git/packed-refs.lock", "")
    os.utime(lock, ns=(1, 1))
    record(repo)

    found = await recover_repository(repo)

    assert lock.exists()
    assert found.kept == ((str(lock), "it is older than every git process of plait"),)


async def test_without_a_death_of_ours_no_lock_is_touched(tmp_path: Path):
    built, repo = await opened(tmp_path)
    lock = built.write(".git/packed-refs.lock", "")

    assert (await recover_repository(repo)).removed == ()
    assert lock.exists()


async def test_a_lock_that_a_process_holds_open_stays(tmp_path: Path):
    built, repo = await opened(tmp_path)
    record(repo)
    lock = built.write(".git/config.lock", "")
    holder = f"import time; f = open({str(lock)!r}); print(flush=True); time.sleep(60)"
    async with await anyio.open_process([sys.executable, "-c", holder]) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        found = await recover_repository(repo)
        process.kill()

    assert found.kept == ((str(lock), f"process {process.pid} holds it"),)
    assert lock.exists()


async def test_the_users_index_lock_is_never_touched(tmp_path: Path):
    built, repo = await opened(tmp_path)
    record(repo)
    lock = built.write(".git/index.lock", "")

    await recover_repository(repo)

    assert lock.exists()


async def test_a_lock_in_a_linked_worktree_of_the_users_is_never_touched(tmp_path: Path):
    built, repo = await opened(tmp_path)
    theirs = ("worktree", "add", "-q", "--detach")
    built.git(*theirs, str(tmp_path / "theirs"))
    built.git(*theirs, "--lock", "--reason", "plait x", str(tmp_path / "ours"))
    record(repo)
    locks = [built.write(f".git/worktrees/{name}/index.lock", "") for name in ("theirs", "ours")]

    await recover_repository(repo)

    assert [lock.exists() for lock in locks] == [True, False]


async def test_children_of_a_dead_engine_are_ended_and_others_not(tmp_path: Path):
    _, repo = await opened(tmp_path)
    record(repo, "dead")
    pids: list[int] = []
    for mark in ("dead", "alive"):
        # A grandchild, as an orphan is: a child would be reaped by the search itself.
        env = {**os.environ, repo.records.VARIABLE: mark}
        words = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
        pids.append(int((await anyio.run_process(words, env=env)).stdout))

    await recover_repository(repo)

    assert [is_alive(pid, repo.records.VARIABLE) for pid in pids] == [False, True]
    os.kill(pids[1], signal.SIGKILL)


def restless(folder: Path, variable: str, mark: str) -> subprocess.Popen[bytes]:
    """Start a process that becomes another program all the time, and wait until it has its mark."""
    script = folder / "restless"
    script.write_text('exec sh "$0"\n')
    child = subprocess.Popen(["sh", str(script)], env={**os.environ, variable: mark})
    while not is_alive(child.pid, f"{variable}={mark}"):
        continue
    return child


async def test_a_child_that_becomes_another_program_is_ended_too(tmp_path: Path):
    _, repo = await opened(tmp_path)
    for number in range(20):
        record(repo, f"r{number}")
        child = restless(tmp_path, repo.records.VARIABLE, f"r{number}")
        ended = await repo.records.end_orphans()
        child.kill()
        child.wait()
        assert ended == 1


async def test_a_child_is_recorded_while_it_runs_and_only_then(tmp_path: Path):
    _, repo = await opened(tmp_path)
    seen: list[int] = []
    begin = repo.records.begin

    async def watch(words: tuple[str, ...]) -> str:
        mark = await begin(words)
        seen.append(len(await to_thread.run_sync(os.listdir, repo.records.folder)))
        return mark

    repo.records.begin = watch  # type: ignore[method-assign, assignment]
    await repo.run("update-ref", "refs/heads/x", "HEAD", call=Call(writes=True))

    assert seen == [2]  # the empty working tree lies there too
    assert list(repo.records.folder.glob("*.child")) == []


async def test_cancelling_kills_the_whole_group(tmp_path: Path):
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as group:

            async def run() -> None:
                env = {**os.environ, "MARK": "cancelled"}
                await execute(["sh", "-c", script], env=env, cwd="/", timeout_s=60)

            group.start_soon(run)
            while not (pids.exists() and pids.read_text().count("\n") == 2):  # noqa: ASYNC110 (another process writes it)
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    assert not scope.cancelled_caught
    for pid in pids.read_text().split():
        with anyio.fail_after(30):
            while is_alive(int(pid), "MARK=cancelled"):  # noqa: ASYNC110 (init reaps it, not we)
                await anyio.sleep(0.01)


async def test_cancelled_while_a_child_is_being_started_its_helpers_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never_block_the_loop: BlockBuster
):
    never_block_the_loop.deactivate()  # the moment is held still
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    scope = anyio.CancelScope()

    class Popen(subprocess.Popen[bytes]):
        """Returns once the child has a helper, and the one who wants it has been cancelled."""

        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **options)  # type: ignore[call-overload]
            helpers.append(int(ready.read_text()))
            scope.cancel()

    helpers: list[int] = []
    monkeypatch.setattr(subprocess, "Popen", Popen)
    env = {**os.environ, "MARK": "starting"}
    with scope:
        script = f"sleep 60 & echo $! > {ready}; wait"
        await execute(["sh", "-c", script], env=env, cwd="/", timeout_s=60)

    assert scope.cancelled_caught
    with anyio.fail_after(30):
        while is_alive(helpers[0], "MARK=starting"):  # noqa: ASYNC110 (init reaps it, not we)
            await anyio.sleep(0.01)


def is_alive(pid: int, mark: str) -> bool:
    """It runs, and is the one that was marked: numbers come back, and zombies have no memory."""
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


async def test_a_time_out_ends_it_and_too_much_output_cuts_it(tmp_path: Path):
    with pytest.raises(TimeoutError):
        await execute(["sleep", "60"], env=os.environ, cwd="/", timeout_s=0.05)

    done = await execute(["yes"], env=os.environ, cwd="/", timeout_s=30, max_bytes=10)
    assert (done.stdout, done.is_cut) == (b"y\ny\ny\ny\ny\n", True)


async def test_a_process_that_reads_no_input_and_floods_stderr_ends(tmp_path: Path):
    script = "exec 0<&-; head -c 3000000 /dev/zero >&2; echo done"
    done = await execute(
        ["sh", "-c", script], env=os.environ, cwd="/", stdin=b"x" * (1 << 20), timeout_s=30
    )
    assert done.stdout == b"done\n"


async def test_the_lock_keeps_other_processes_out_and_ends_with_its_holder(tmp_path: Path):
    file = tmp_path / "lock"
    holder = (
        f"import fcntl, os, time; d = os.open({str(file)!r}, os.O_RDWR | os.O_CREAT);"
        "fcntl.flock(d, fcntl.LOCK_EX); print(flush=True); time.sleep(60)"
    )
    async with await anyio.open_process(
        [sys.executable, "-c", holder], stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        with anyio.move_on_after(0.1) as waited:
            async with RepositoryLock(file).held():
                pass
        assert waited.cancelled_caught
        process.kill()
        await process.wait()
        with anyio.fail_after(30):
            async with RepositoryLock(file).held():
                pass

"""Gits that stay answer as fresh ones do; killed, mute or away, they cost no landing anything."""

import os
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import psutil
import pytest
from anyio import to_thread

from engine.git.composition import Composed, compose
from engine.git.landing import LandingDone, LandPrepared, land, prepare_landing
from engine.git.merge3 import Merger
from engine.git.objects import read_blobs
from engine.git.plumbing import asking, standing
from engine.git.runner import Repo
from tests.support.git_lab import Lab
from tests.support.landing_target import Target
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
COUNT = 6


@asynccontextmanager
async def served(repo: Repo) -> AsyncIterator[None]:
    """Standing gits for as long as the scope is open; not one process of it is left."""
    async with anyio.create_task_group() as group:
        group.start_soon(repo.standing.serve)
        await anyio.wait_all_tasks_blocked()
        yield
        group.cancel_scope.cancel()
    assert gits() == []
    left = [file.name for file in (repo.plait_dir / "git").iterdir() if file.name != "void"]
    assert left == []


def gits(word: str = "git") -> list[psutil.Process]:
    """Children of this process that are gits, and have not just ended."""
    found: list[psutil.Process] = []
    for one in psutil.Process().children():
        with suppress(psutil.Error):
            if any(word in part for part in one.cmdline()):
                found.append(one)
    return found


def kill(process: psutil.Process) -> None:
    """Kill it, unless it was quicker."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


class Queue:
    """Some changes from one base, each in a file of its own, for `main` or a branch beside it."""

    def __init__(self, tmp_path: Path) -> None:
        self.built = RepositoryBuilder.small(tmp_path / "repo")
        self.base = self.built.head
        self.heads = [self._change(number) for number in range(COUNT)]
        self.built.git("reset", "-q", "--hard", self.base)
        self.built.git("branch", "aside")

    def _change(self, number: int) -> str:
        self.built.git("reset", "-q", "--hard", self.base)
        return self.built.commit({f"in/f{number}": f"{number}\n"}, f"change {number}")

    async def open(self) -> Repo:
        return await Repo.open(self.built.path, self.built.environment)

    async def land(
        self, repo: Repo, target: str, before: Callable[[int], None] = lambda _: None
    ) -> None:
        """Land them all, one after another."""
        merger, me = Merger(repo), repo.settings.sign(1_767_225_600)
        wanted = Target.request
        for number, head in enumerate(self.heads):
            before(number)
            request = wanted(self, repo, target=target, head=head, author=me)  # type: ignore[arg-type]
            made = await compose(repo, merger, request)
            assert isinstance(made, Composed), made
            plan = await prepare_landing(repo, made)
            assert isinstance(plan, LandPrepared), plan
            before(number)
            assert isinstance(await land(repo, plan), LandingDone)

    @property
    def head(self) -> str:
        return self.heads[0]

    def assert_landed(self, target: str) -> None:
        names = self.built.git("ls-tree", "-r", "--name-only", target).split("\n")
        assert {f"in/f{number}" for number in range(COUNT)} <= set(names)
        assert len(self.built.git("rev-list", "--merges", target).split()) == COUNT
        assert self.built.status() == ""
        assert self.built.git("for-each-ref", "refs/plait/@landing") == ""
        assert [p for p in (self.built.path / ".git").rglob("*.lock") if p.name != "git.lock"] == []
        self.built.fsck()


@pytest.mark.parametrize(("target", "most"), [("aside", 1), ("main", COUNT + 6)])
async def test_a_queue_of_landings_starts_hardly_any_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, most: int
):
    queue = Queue(tmp_path)
    alone, stood = await queue.open(), await queue.open()
    await queue.land(alone, target)
    expected = queue.built.rev(target)
    queue.built.git("update-ref", f"refs/heads/{target}", queue.base)
    queue.built.git("reset", "-q", "--hard")
    begun: list[str] = []
    run = stood.run

    async def counted(*words: str, **more: object) -> object:
        begun.append(words[0])
        return await run(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(stood, "run", counted)
    async with served(stood):
        await queue.land(stood, target)

    queue.assert_landed(target)
    assert queue.built.rev(target) == expected
    # The first one lists worktrees and attributes, and asks which commits the user has refs on.
    assert len(begun) <= most + 3, begun


@pytest.mark.parametrize("which", ["cat-file", "diff-tree", "merge-tree", "update-ref"])
async def test_a_standing_git_that_is_killed_costs_no_landing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
):
    monkeypatch.setattr(asking, "_REFS_LIFE_S", 600.0)  # it is there still when it is struck
    queue = Queue(tmp_path)
    repo, killed = await queue.open(), 0

    def strike(_: int) -> None:
        nonlocal killed
        for one in gits(which):
            kill(one)
            killed += 1

    async with served(repo):
        await queue.land(repo, "main", before=strike)

    queue.assert_landed("main")
    assert killed >= COUNT // 2


async def test_a_git_killed_with_refs_locked_leaves_no_lock_and_the_ref_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    queue = Queue(tmp_path)
    repo, locked = await queue.open(), 0
    ask = repo.standing.ask

    async def halt(kind, place, question, read, **more):  # noqa: ANN001, ANN003, ANN202 (as it is)
        nonlocal locked
        if not kind.writes or b"refs/heads/" not in question or locked == 2:
            return await ask(kind, place, question, read, **more)

        async def die(said: object) -> object:
            nonlocal locked
            await said.receive_until(b"prepare: ok\n", 1000)  # type: ignore[attr-defined]
            locked += await anyio.Path(queue.built.path, ".git/refs/heads/main.lock").exists()
            for one in await to_thread.run_sync(gits, "update-ref"):
                kill(one)
            raise anyio.EndOfStream

        return await ask(kind, place, question.removesuffix(b"commit\0"), die, **more)

    monkeypatch.setattr(repo.standing, "ask", halt)
    async with served(repo):
        await queue.land(repo, "main")

    assert locked == 2
    queue.assert_landed("main")


async def test_a_killed_git_of_ours_takes_its_locks_along_and_nobody_elses(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    git_dir = lab.built.path / ".git"
    old = git_dir / "refs/heads/theirs.lock"
    old.touch()
    mark = await lab.repo.records.begin(["update-ref"])
    ours = git_dir / "HEAD.lock"
    ours.touch()

    await lab.repo.records.end_killed(mark, lab.repo.common_dir)

    assert not ours.exists()
    assert old.exists()
    assert lab.repo.records.folder.joinpath(f"{mark}.child").exists()  # for the next engine to see


async def test_a_git_that_keeps_its_answers_to_itself_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    queue = Queue(tmp_path)
    mute = queue.built.path.with_name("bin") / "stdbuf"
    mute.parent.mkdir()
    mute.write_text(f"#!/bin/sh\necho asked >> {mute.parent}/asked\nexec sleep 60\n")
    mute.chmod(0o755)
    path = f"{mute.parent}:{os.environ['PATH']}"
    repo = await Repo.open(queue.built.path, {**queue.built.environment, "PATH": path})
    repo.version = (2, 39)
    monkeypatch.setattr(standing, "_PROBE_S", 0.5)

    async with served(repo):
        await queue.land(repo, "aside")

    queue.assert_landed("aside")
    assert (mute.parent / "asked").read_text() == "asked\n"


async def test_whenever_the_serving_ends_no_git_is_left_and_questions_are_answered_alone(
    tmp_path: Path,
):
    lab, dice, answers = await Lab.open(tmp_path), random.Random(3), 0
    blob = lab.built.rev("HEAD:README.md")

    async def ask() -> None:
        nonlocal answers
        for _ in range(8):
            assert (await read_blobs(lab.repo, [blob]))[0]
            answers += 1

    for _ in range(6):
        async with anyio.create_task_group() as asking, anyio.create_task_group() as serving:
            serving.start_soon(lab.repo.standing.serve)
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                asking.start_soon(ask)
            await anyio.sleep(dice.random() * 0.02)
            serving.cancel_scope.cancel()
        assert await to_thread.run_sync(gits) == []
    assert answers == 6 * 3 * 8

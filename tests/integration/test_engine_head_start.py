"""Test that who begins next finds its workspace ready, and that nothing of it outlives the plan."""

import errno
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine, Run
from engine.core.effects import PrepareWorkspace
from engine.core.state import RunState
from engine.errors import WorkspaceError
from engine.git.runner import Repo
from engine.git.workspace import Workspace, WorkspaceRequest, prepare
from engine.messages import commands as c
from engine.messages.events import Told, WorkerMoved
from engine.messages.results import Outcome
from engine.phases import Phase
from engine.site import spaces
from engine.work import head_start, workshops
from engine.work.workshops import GitWorkshop
from tests.integration.test_engine_recovery import Engines, kill_all, report_of, workers
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace
from tests.support.processes import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.needs("bubblewrap")]

FIRST, SECOND, THIRD = "a/worker_1", "a/worker_2", "a/worker_3"


class Queue(MergingPlace):
    """A repository, and runs in which one works and the others are queued."""

    def plan(self, count: int = 2, *more: dict[str, Any], **step: Any) -> dict[str, Any]:
        """A step whose workers begin one after the other, each when its gate is open."""
        began = f"echo {{index}} >> {self.outside}/began"
        waits = f"until test -e {self.outside}/go{{index}}; do sleep 0.01; done"
        agent = scripted(
            {"shell": f"{began}; {waits}"}, {"write": {"path": "new", "text": "{index}\n"}}
        )
        items = {"items": [f"i{n}" for n in range(count)], "max_concurrency": 1}
        strategy = {"matrix": items}
        named = {"name": "a", "agent": agent, "strategy": strategy, "merge": "each", **step}
        more_steps = ({"agent": agent, **one} for one in more)
        return self.manifest(
            named, *more_steps, isolation_strategy="worktree", max_concurrent_workers=1
        )

    def began(self) -> list[str]:
        """Return the numbers of those who have begun, in order."""
        file = self.outside / "began"
        return file.read_text().split() if file.exists() else []

    def notes(self) -> list[Path]:
        """Return the notes on what was made ahead."""
        return [*(self.project / ".git/plait/ahead").glob("*")]

    def tree(self, run: str, worker: str) -> Path:
        """Return the place of a worker's first workspace."""
        (root,) = (self.tmp_path / "state").glob("project-*")
        return root / run / worker / "attempt_1"

    def is_ready(self, run: str, worker: str) -> bool:
        """Return True if a workspace is whole."""
        note = self.project / f".git/plait/runs/{run}/{worker}/attempt_1/workspace.json"
        return note.exists() and (self.tree(run, worker) / "code").exists()

    def private(self, run: str, worker: str) -> Path:
        """A worker's private clone."""
        return self.project / f".git/plait/runs/{run}/{worker}/attempt_1/git"

    def left(self, run: str, worker: str) -> list[str]:
        """Everything in the repository and on the disk that a worker has."""
        refs = self.built.git("for-each-ref", "--format=%(refname)").split()
        found = [ref for ref in refs if f"{run}/{worker}" in ref]
        found += [path for path in self.built.worktrees() if f"{run}/{worker}/" in path]
        return found + [str(path) for path in self.tree(run, worker).parent.glob("*")]


@pytest.fixture
def place(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


async def ready(place: Queue, run: Run, *queued: str) -> None:
    """Wait until the workspaces of workers that are queued are ready."""
    await wait_until(lambda: all(place.is_ready(run.id, w) for w in queued), within_s=30)


async def waiting(place: Queue, engine: Engine, *queued: str, **step: Any) -> Run:
    """A run whose first worker works; these are ready, and queued."""
    run = await engine.start(place.plan(1 + len(queued), **step))
    await wait_until(lambda: place.began() == ["1"], within_s=30)
    await ready(place, run, *queued)
    return run


async def gone(place: Queue, run: Run, worker: str) -> None:
    """Wait until nothing of a worker is left."""
    await wait_until(lambda: not place.notes() and not place.left(run.id, worker), within_s=30)


def open_all(place: Queue, count: int = 3) -> None:
    for number in range(1, count + 1):
        place.open_gate(f"go{number}")


async def told_of(engine: Engine, run: Run, worker: str) -> list[Told]:
    """All events of a worker to the end of a run."""
    await run.wait()
    return [
        told
        async for told in engine.events(run=run.id)
        if getattr(told.event, "worker", "") == worker
    ]


async def test_a_queued_worker_finds_its_workspace_ready(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        tree = place.tree(run.id, SECOND).stat().st_ino
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        w = (await engine.view(run.id)).worker(SECOND)
        assert (w.phase, w.attempt) == (Phase.REVIEWING, 1)
        assert place.tree(run.id, SECOND).stat().st_ino == tree
        assert place.text("new", f"plait/{run.id}/{SECOND}") == "2\n"
        assert place.notes() == []


async def test_a_sparse_workspace_is_ready_with_its_folders(place: Queue):
    place.built.commit({"src/a": "a\n", "docs/guide": "guide\n"}, "folders")
    async with place.engine() as engine:
        plan = place.plan(2, sparse_checkout=["src"])
        run = await engine.start(plan)
        await ready(place, run, SECOND)
        tree = place.tree(run.id, SECOND)
        made = tree.stat().st_ino
        assert ((tree / "src/a").exists(), (tree / "docs").exists()) == (True, False)
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        w = (await engine.view(run.id)).worker(SECOND)
        assert w.holds is not None
        assert w.holds.folders == ("src",)
        assert place.tree(run.id, SECOND).stat().st_ino == made


async def test_without_a_head_start_nothing_is_there(place: Queue, monkeypatch: pytest.MonkeyPatch):
    """The negative control."""
    monkeypatch.setattr(head_start, "_MOST", 0)
    async with place.engine() as engine:
        run = await engine.start(place.plan())
        await wait_until(lambda: place.began() == ["1"], within_s=30)
        place.open_gate("go1")
        await wait_worker(engine, run, SECOND, lambda w: w.phase is not Phase.QUEUED)
        assert not place.is_ready(run.id, SECOND)
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("most", [4, 0], ids=["ahead", "control"])
async def test_a_ready_workspace_costs_no_git_and_no_fsync(
    place: Queue, monkeypatch: pytest.MonkeyPatch, most: int
):
    is_inside, seen = ContextVar("is_inside", default=False), list[str]()
    prepare, run, fsync = GitWorkshop.prepare, Repo.run, os.fsync

    async def noted(workshop: GitWorkshop, state: RunState, effect: PrepareWorkspace) -> Any:
        token = is_inside.set(str(effect.worker) == SECOND)
        try:
            return await prepare(workshop, state, effect)
        finally:
            is_inside.reset(token)

    async def ran(repo: Repo, *words: str, **named: Any) -> Any:
        seen.extend(words[:1] if is_inside.get() else ())
        return await run(repo, *words, **named)

    def synced(number: int) -> None:
        seen.extend(["fsync"] if is_inside.get() else ())
        fsync(number)

    monkeypatch.setattr(head_start, "_MOST", most)
    monkeypatch.setattr(GitWorkshop, "prepare", noted)
    monkeypatch.setattr(Repo, "run", ran)
    monkeypatch.setattr(os, "fsync", synced)
    async with place.engine() as engine:
        run_ = await engine.start(place.plan())
        await wait_until(lambda: place.began() == ["1"], within_s=30)
        if most:
            await ready(place, run_, SECOND)
        open_all(place)
        await run_.wait()
    if most:
        assert seen == []
    else:
        assert {"update-ref", "fsync"} <= set(seen)


async def test_nobody_sees_a_worker_whose_workspace_is_ready(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        w = (await engine.view(run.id)).worker(SECOND)
        assert (w.phase, w.attempt, w.workspace, w.branch) == (Phase.QUEUED, 0, None, None)
        seq = [t.seq for t in await shown(engine, run)][-1]
        place.open_gate("go1")
        await wait_worker(engine, run, SECOND, lambda w: w.phase is Phase.RUNNING)
        moves = [t for t in await shown(engine, run) if isinstance(t.event, WorkerMoved)]
        ours = [t for t in moves if t.event.worker == SECOND]
        assert [t.event.after for t in ours][:2] == [Phase.QUEUED, Phase.PREPARING]
        assert (ours[1].seq or 0) > (seq or 0)
        open_all(place)
        await run.wait()


async def shown(engine: Engine, run: Run) -> list[Told]:
    """The journaled events so far."""
    told: list[Told] = []
    with anyio.move_on_after(0.5):
        async for one in engine.events(run=run.id):
            if one.seq is not None:
                told.append(one)  # noqa: PERF401 - it is cut off
    return told


async def test_no_more_than_a_few_are_ready(place: Queue):
    async with place.engine() as engine:
        run = await engine.start({**place.plan(9)})
        await wait_until(lambda: place.began() == ["1"], within_s=30)
        await ready(place, run, SECOND)
        assert len(place.notes()) == 1  # no more than there are slots
        await engine.command(c.StopRun(run=run.id, is_kill=True))
        await run.wait()


async def test_a_cancelled_worker_gives_its_workspace_back(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        reply = await engine.command(c.StopWorker(worker=SECOND, run=run.id))
        assert isinstance(reply, c.Accepted)
        await gone(place, run, SECOND)
        open_all(place)
        await run.wait()
        assert (await engine.view(run.id)).worker(SECOND).phase is Phase.CANCELLED


async def test_a_paused_run_gives_all_back_and_resumes(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        await engine.command(c.Pause(run=run.id))
        await gone(place, run, SECOND)
        await engine.command(c.Resume(run=run.id))
        await ready(place, run, SECOND)
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        assert place.began() == ["1", "2"]


async def test_an_engine_that_closes_leaves_nothing(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
    await gone(place, run, SECOND)
    open_all(place)
    async with place.engine() as engine:
        await engine.resume_unfinished()
        assert (await (await engine.resume(run.id)).wait()).outcome is Outcome.SUCCESS
    assert place.left(run.id, SECOND)


async def test_what_was_given_back_is_used_again(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        tree = place.tree(run.id, SECOND) / "code"
        before = tree.stat().st_ino
        await engine.command(c.Pause(run=run.id))
        await gone(place, run, SECOND)
        (kept,) = (place.project / ".git/plait/trash").glob("*/tree/code")
        assert kept.stat().st_ino == before
        await engine.command(c.StopRun(run=run.id, is_kill=True))
        await run.wait()


async def test_a_base_that_moves_takes_its_workspace_with_it(place: Queue):
    """A human retries what a queued worker builds on: it begins from the new change."""
    base = {
        "name": "base",
        "agent": scripted(attempts={"1": [write("first")], "2": [write("second")]}),
    }
    plan = place.plan(2, dependencies=["base"])
    plan["agents"]["base"] = base.pop("agent")
    plan["pipelines"][0]["steps"].insert(0, {**base, "agent": "base", "prompt": "do it"})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await wait_until(lambda: place.began() == ["1"], within_s=30)
        await ready(place, run, SECOND)
        assert (place.tree(run.id, SECOND) / "code").read_text() == "first\n"
        reply = await engine.command(c.RetryWorker(worker="base/worker_1", run=run.id))
        assert isinstance(reply, c.Accepted), reply
        open_all(place)
        await wait_worker(engine, run, SECOND, lambda w: w.phase is Phase.REVIEWING)
        assert place.text("code", f"plait/{run.id}/{SECOND}") == "second\n"
        assert place.notes() == []


def write(text: str) -> dict[str, Any]:
    return {"write": {"path": "code", "text": f"{text}\n"}}


@pytest.mark.parametrize("at", ["before", "half-way"])
async def test_a_full_disk_means_only_that_nothing_is_ready(
    place: Queue, monkeypatch: pytest.MonkeyPatch, at: str
):
    real, asked, begun = prepare, list[object](), list[int]()

    async def fails(repo: Repo, wanted: WorkspaceRequest) -> Workspace:
        made = await real(repo, wanted)
        if wanted.is_ahead:
            asked.append(wanted)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return made

    async def refuses(*_: Any, **named: Any) -> None:
        begun.append(named["count"])
        if len(begun) > 1:  # the first one asks for the run as a whole
            asked.append(named)
            raise WorkspaceError("there is no room")

    if at == "before":
        monkeypatch.setattr(workshops, "check_space", refuses)
    else:
        monkeypatch.setattr(spaces, "prepare", fails)
    async with place.engine() as engine:
        run = await engine.start(place.plan())
        await wait_until(lambda: place.began() == ["1"] and bool(asked), within_s=30)
        await gone(place, run, SECOND)
        assert (await engine.view(run.id)).trouble is None
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        assert len(asked) == 1  # it is not tried again and again
        assert place.began() == ["1", "2"]


async def test_where_others_could_write_nothing_is_ready(place: Queue):
    place.environment["PLAIT_SANDBOX"] = "none"
    async with place.engine() as engine:
        run = await engine.start(place.plan())
        await wait_until(lambda: place.began() == ["1"], within_s=30)
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
    assert not (place.project / ".git/plait/ahead").exists()


async def test_it_begins_with_what_the_user_has_then(place: Queue):
    """Refs, and files that git does not know, are as new as without a head start."""
    is_same, env, is_newest = await begun_later(place)
    assert is_same
    assert env == "new\n"
    assert is_newest


async def test_what_is_not_brought_up_to_date_is_old(place: Queue, monkeypatch: pytest.MonkeyPatch):
    """The negative control."""

    async def complete(_repo: Repo, _wanted: WorkspaceRequest, made: Workspace, **_: bool) -> Any:
        return made

    monkeypatch.setattr(spaces, "complete", complete)
    is_same, env, is_newest = await begun_later(place)
    assert is_same
    assert env is None
    assert not is_newest


async def begun_later(place: Queue) -> tuple[bool, str | None, bool]:
    """Change the user's files and refs while a workspace is ready, and let its worker begin.

    Returns whether it got that one, its copy of a file that git does not know, and whether it sees
    the user's newest commit.
    """
    place.built.commit({".worktreeinclude": ".env\n", ".gitignore": ".env\n"}, "include")
    env = place.project / ".env"
    env.write_text("old\n")
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        tree = place.tree(run.id, SECOND)
        inode = tree.stat().st_ino
        env.write_text("new\n")
        newer = place.built.commit({"other": "newer\n"}, "newer")
        place.open_gate("go1")
        await wait_until(lambda: place.began() == ["1", "2"], within_s=30)
        copy = tree / ".env"
        said = copy.read_text() if copy.exists() else None
        private = str(place.private(run.id, SECOND))
        main = place.built.git("-C", private, "rev-parse", "main").strip()
        is_same = tree.stat().st_ino == inode
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
    return is_same, said, main == newer


async def test_other_rules_make_it_anew(place: Queue):
    async with place.engine() as engine:
        run = await waiting(place, engine, SECOND)
        (place.project / ".git/info/exclude").write_text("*.log\n")
        place.open_gate("go1")
        await wait_until(lambda: place.began() == ["1", "2"], within_s=30)
        assert "*.log" in (place.private(run.id, SECOND) / "info/exclude").read_text()
        open_all(place)
        assert (await run.wait()).outcome is Outcome.SUCCESS
        assert place.notes() == []


MOMENTS: dict[str, Callable[[Queue, str], bool]] = {
    "announced": lambda place, _run: bool(place.notes()),
    "begun": lambda place, run: bool(place.left(run, SECOND)),
    "registered": lambda place, run: (place.tree(run, SECOND) / ".git").exists(),
    "ready": lambda place, run: place.is_ready(run, SECOND),
}


@pytest.fixture
def stack(place: Queue) -> Iterator[ExitStack]:
    """Buries the engines of a test, and ends whoever is left."""
    with ExitStack() as stack:
        yield stack
        kill_all(place)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_killed_engine_leaves_nothing_and_loses_nothing(
    place: Queue, stack: ExitStack, moment: str
):
    run = await to_thread.run_sync(killed, place, stack, MOMENTS[moment])
    async with place.engine():  # it looks after what is there, and resumes nobody
        assert place.notes() == []
        assert place.left(run, SECOND) == []
    place.built.fsck()
    await to_thread.run_sync(finishes, place, stack)


@pytest.mark.parametrize("name", ["path", "directory"])
async def test_a_note_that_names_another_place_removes_nothing(
    place: Queue, stack: ExitStack, name: str
):
    run = await to_thread.run_sync(killed, place, stack, MOMENTS["ready"])
    (note,) = place.notes()
    users = place.outside / "users"
    users.mkdir()
    (users / "file").write_text("mine")
    note.write_text(json.dumps({**json.loads(note.read_text()), name: str(users)}))
    (note.parent / "damaged").write_bytes(b"\xff\x00")
    async with place.engine():
        assert (users / "file").read_text() == "mine"
        assert place.is_ready(run, SECOND)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
async def test_an_engine_killed_at_any_moment_does_each_once(
    place: Queue, stack: ExitStack, seed: int
):
    delay_s = random.Random(seed).uniform(0, 0.3)
    await to_thread.run_sync(killed, place, stack, MOMENTS["announced"], delay_s)
    await to_thread.run_sync(finishes, place, stack)


def killed(
    place: Queue, stack: ExitStack, is_time: Callable[[Queue, str], bool], delay_s: float = 0.0
) -> str:
    """Kill an engine at a moment while its first worker works; return the name of its run."""
    engine = Engines(place, stack).start("detached", place.plan(3))
    (run,) = (path.name for path in (place.project / ".git/plait/runs").iterdir())
    with suppress(subprocess.TimeoutExpired):
        while not is_time(place, run):
            assert engine.poll() is None
        engine.wait(delay_s)
    assert engine.poll() is None
    engine.kill()
    engine.wait()
    return run


def finishes(place: Queue, stack: ExitStack) -> None:
    """Let the next engine end the run: each worker did its work once, and nothing is left."""
    open_all(place)
    found = workers(report_of(Engines(place, stack).go_on("detached")))
    assert {w["phase"] for w in found.values()} == {"REVIEWING"}, found
    assert sorted(place.began()) == ["1", "2", "3"]
    assert place.notes() == []
    assert len(place.built.worktrees()) == 1 + len(found)
    place.built.fsck()

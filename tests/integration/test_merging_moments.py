"""A retry begins from a worker's files as they once were, which the radar kept."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine, Run
from engine.errors import StoreError, WorkspaceError
from engine.messages import commands as c
from engine.messages.merging import ListMoments, MakeCheckpoint
from engine.messages.questions import ReadDiff
from engine.messages.results import Moment
from engine.phases import Phase
from engine.plan.model import RetryMode
from engine.review import radar
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, land

pytestmark = pytest.mark.anyio
WHO = "s1/worker_1"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MergingPlace:
    monkeypatch.setattr(radar, "EVERY_S", 0.1)
    monkeypatch.setattr(radar, "_SHARE", 0.1)
    return MergingPlace(tmp_path)


async def worked_twice(place: MergingPlace, engine: Engine) -> tuple[Run, Moment]:
    """A run whose worker did one thing well and then spoiled it; how it was in between."""
    again = scripted(
        attempts={
            "1": [
                {"shell": "git checkout -q -b own; echo good > good; git add good"},
                {"shell": "git commit -q -m good"},
                {"say": "well done"},
                {"shell": place.waits_at("spoil")},
                {"shell": "rm good; echo bad > bad"},
                {"result": "spoiled"},
            ],
            "2": [{"shell": "echo more > more"}, {"result": "done"}],
        }
    )
    step = {"name": "s1", "agent": again}
    run = await engine.start(place.manifest(step, isolation_strategy="worktree"))
    await wait_worker(engine, run, WHO, lambda w: w.phase is Phase.RUNNING)
    seen: list[Moment] = []

    async def is_seen() -> bool:
        for moment in await engine.port.ask(ListMoments(run.id, WHO)):
            tree = place.project / ".git/plait/runs" / run.id / ".radar/objects"
            held = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tree)}
            if "good" in place.built.git("ls-tree", "--name-only", moment.commit, env=held):
                seen.append(moment)
        return bool(seen)

    with anyio.fail_after(30):
        while not await is_seen():  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(0.05)
    blob = place.built.git("hash-object", "--stdin", stdin=b"good\n")
    assert place.built.try_git("cat-file", "-e", blob).returncode, "it is not the user's yet"
    place.open_gate("spoil")
    await run.wait()
    return run, seen[0]


async def test_a_checkpoint_is_made_on_request_and_begun_again_from(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(radar, "EVERY_S", 3600.0)  # nobody looks by itself
    spoils = scripted(
        attempts={
            "1": [
                {"shell": "echo good > good"},
                {"say": "well done"},
                {"shell": place.waits_at("spoil")},
                {"shell": "rm good; echo bad > bad"},
                {"result": "spoiled"},
            ],
            "2": [{"shell": "echo more > more"}, {"result": "done"}],
        }
    )
    async with place.engine() as engine:
        step = {"name": "s1", "agent": spoils}
        run = await engine.start(place.manifest(step, isolation_strategy="worktree"))
        await wait_worker(engine, run, WHO, lambda w: "well done" in w.last_lines)
        assert await engine.port.ask(ListMoments(run.id, WHO)) == (), "the control"
        assert (await engine.view(run.id)).worker(WHO).checkpoint_at is None
        kept = await engine.port.ask(MakeCheckpoint(run.id, WHO))
        (listed,) = await engine.port.ask(ListMoments(run.id, WHO))
        assert listed.commit == kept.commit
        assert (await engine.view(run.id)).worker(WHO).checkpoint_at == kept.at
        again = await engine.port.ask(MakeCheckpoint(run.id, WHO))
        assert (again.commit, again.at > kept.at) == (kept.commit, True), "its files are the same"
        assert await engine.port.ask(ListMoments(run.id, WHO)) == (listed,)
        place.open_gate("spoil")
        await run.wait()
        with pytest.raises(WorkspaceError, match="saves files only while an agent runs"):
            await engine.port.ask(MakeCheckpoint(run.id, WHO))
        told = await engine.command(c.RetryWorker(worker=WHO, run=run.id, at=again.at))
        assert isinstance(told, c.Accepted)
        await run.wait()
        change = await engine.port.ask(ReadDiff(run.id, WHO))
        assert {file.path for file in change.files} == {"good", "more"}


async def test_a_checkpoint_that_cannot_be_written_down_is_none(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(radar, "EVERY_S", 3600.0)  # nobody looks by itself
    works = scripted({"say": "well done"}, {"shell": place.waits_at("go")}, {"result": "done"})
    async with place.engine() as engine:
        step = {"name": "s1", "agent": works}
        run = await engine.start(place.manifest(step, isolation_strategy="worktree"))
        await wait_worker(engine, run, WHO, lambda w: "well done" in w.last_lines)
        moments = place.project / ".git/plait/runs" / run.id / ".radar/moments"
        moments.mkdir(
            parents=True, mode=0o700
        )  # as on a full disk, nothing can be written there, whoever tries
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be written"):
                await engine.port.ask(MakeCheckpoint(run.id, WHO))
        assert (await engine.view(run.id)).worker(WHO).checkpoint_at is None
        moments.rmdir()
        kept = await engine.port.ask(MakeCheckpoint(run.id, WHO))
        (listed,) = await engine.port.ask(ListMoments(run.id, WHO))
        assert listed.commit == kept.commit
        place.open_gate("go")
        await run.wait()


async def test_of_a_plain_folder_no_checkpoint_can_be_made(place: MergingPlace):
    waits = scripted({"say": "there"}, {"shell": place.waits_at("go")})
    async with place.engine() as engine:
        step = {"name": "s1", "agent": waits}
        run = await engine.start(place.manifest(step, isolation_strategy="directory"))
        await wait_worker(engine, run, WHO, lambda w: w.phase is Phase.RUNNING)
        with pytest.raises(WorkspaceError, match="works in a plain folder"):
            await engine.port.ask(MakeCheckpoint(run.id, WHO))
        place.open_gate("go")
        await run.wait()


_RETRIES = """
import os, signal, sys, anyio
from engine.messages import commands as c
from engine.api import Engine

async def main(project, run, worker, at):
    async with Engine.open(project) as engine:
        await engine.resume(run)
        reply = await engine.command(c.RetryWorker(worker=worker, run=run, at=float(at)))
        print(type(reply).__name__, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main, *sys.argv[1:])
"""


async def test_an_attempt_begins_from_a_moment_also_after_a_kill_until_it_has_landed(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run, moment = await worked_twice(place, engine)
        early = await engine.command(c.RetryWorker(worker=WHO, run=run.id, at=moment.at - 3600))
        assert isinstance(early, c.Refused)
        assert early.hint.startswith("The first checkpoint was saved at ")
        wrong = c.RetryWorker(worker=WHO, run=run.id, at=moment.at, mode=RetryMode.CONTINUE)
        refused = await engine.command(wrong)
        assert isinstance(refused, c.Refused)
        assert "new session" in refused.reason
    radar_s = place.project / ".git/plait/runs" / run.id / ".radar"
    kept = radar_s / "moments"
    kept.write_text(kept.read_text() + "1.5 7 torn")  # by the death of who wrote it
    words = [sys.executable, "-c", _RETRIES, str(place.project), run.id, WHO, str(moment.at + 1e-3)]
    env = {**place.environment, "PYTHONPATH": str(Path.cwd())}
    done = await to_thread.run_sync(
        lambda: subprocess.run(words, env=env, capture_output=True, check=False)
    )
    assert (done.stdout, done.returncode) == (b"Accepted\n", -signal.SIGKILL), done.stderr
    async with place.engine() as engine:
        run = await engine.resume(run.id)
        await run.wait()
        view = (await engine.view(run.id)).worker(WHO)
        assert view.phase is Phase.REVIEWING
        change = await engine.port.ask(ReadDiff(run.id, WHO))
        assert {file.path for file in change.files} == {"good", "more"}
        assert {one.attempt for one in await engine.port.ask(ListMoments(run.id, WHO))} <= {
            1,
            view.attempt,
        }
        assert await land(engine, run, WHO) is Phase.LANDED
    assert place.text("good") == "good\n"
    assert not radar_s.exists()
    place.built.fsck()

"""A failure in the background of an engine is shown, and ends neither it nor its runs."""

import errno
import os
from pathlib import Path

import anyio
import pytest
from anyio import lowlevel, to_thread

from engine.api import Engine, Run
from engine.errors import HostLost, StoreError
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.merging import DecideConflict, HunkView, ReadConflicts
from engine.messages.questions import ReadEngine, ReadLog
from engine.messages.served import ServedState
from engine.phases import Phase
from engine.review.radar import Radar
from engine.run.live_run import LiveRun
from engine.work import ahead
from tests.integration.test_engine_recovery import KEEPER, strike
from tests.integration.test_merging_evidence import listening, told
from tests.support import served
from tests.support.engine_runs import scripted, wait_view
from tests.support.merging_runs import MergingPlace, changed, conflicted, land, reviewed

pytestmark = pytest.mark.anyio

WHO = "s2/worker_1"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")
ANSWER = "<<<ANSWER\nboth\nANSWER>>>"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@pytest.mark.parametrize("is_ahead", [False, True])
async def test_an_answer_that_cannot_be_saved_is_offered_and_said(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch, *, is_ahead: bool
):
    if not is_ahead:  # this human is quicker
        monkeypatch.setattr(ahead, "_FIRST_S", 600.0)
    manifest = place.workers(MINE, THEIRS)
    slow = scripted({"shell": place.waits_at("go")}, {"result": ANSWER})
    manifest["agents"]["helper"] = slow
    manifest["review"] = {"assist": {"agent": "helper"}}
    async with place.engine() as engine:
        run = await reviewed(engine, manifest)
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        async with listening(engine, run) as stream:
            assert await land(engine, run, WHO) is Phase.CONFLICTED
            if not is_ahead:
                ask = c.AskAgent(path="code", hunk=0, agent="helper")
                await engine.port.ask(DecideConflict(run.id, WHO, ask))
            while not (await first_hunk(engine, run)).asked:
                await told(stream, ev.ConflictsDecided, WHO)
            block(place)
            place.open_gate("go")
            while (hunk := await first_hunk(engine, run)).asked:
                await told(stream, ev.ConflictsDecided, WHO)
        assert "both\n" in [one.text for one in hunk.proposals]
        with anyio.fail_after(60):
            while "resolution.json cannot be written" not in await said(engine, run):
                await lowlevel.checkpoint()  # a log has no event for each line
        assert (await engine.port.ask(ReadEngine())).runs


async def first_hunk(engine: Engine, run: Run) -> HunkView:
    return (await engine.port.ask(ReadConflicts(run.id, WHO))).file("code").hunks[0]


async def said(engine: Engine, run: Run) -> str:
    log = await engine.port.ask(ReadLog(run.id, WHO))
    return "\n".join(line.text for line in log.lines)


def block(place: MergingPlace) -> None:
    """Keep decisions from being written, as a full disk does, but for whoever is root, too."""
    (saved,) = place.tmp_path.rglob("resolution.json")
    saved.unlink()
    saved.mkdir()
    (saved / "in the way").touch()


@pytest.mark.parametrize("error", [FULL, StoreError("x cannot be read"), HostLost("a", 0)])
async def test_a_look_of_the_clock_that_fails_is_shown_until_it_succeeds(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    real, is_mended = LiveRun.know_logins, anyio.Event()

    async def failing(live: LiveRun) -> None:
        if not is_mended.is_set():
            raise error
        await real(live)

    monkeypatch.setattr(LiveRun, "know_logins", failing)
    agent = scripted({"shell": place.waits_at("go")}, {"result": "done"})
    async with place.engine() as engine:
        run = await engine.start(place.manifest({"name": "s1", "agent": agent}))
        await wait_view(engine, run, lambda view: view.trouble is not None)
        is_mended.set()  # not before: a look that succeeds takes the trouble away at once
        await wait_view(engine, run, lambda view: view.trouble is None)
        place.open_gate("go")
        await run.wait()


async def test_a_radar_that_cannot_clean_up_ends_no_engine(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    async def broken(radar: Radar, is_over: object) -> None:
        del radar, is_over
        raise FULL

    monkeypatch.setattr(Radar, "watch", broken)
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        view = await wait_view(engine, run, lambda view: view.trouble is not None)
        assert view.trouble is not None
        assert "No space left" in view.trouble.what


async def test_a_served_program_whose_keeper_is_killed_ends_alone(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, served.plan(place, served.PYTHON))
        await served.begin(engine, run)
        await served.wait_served(engine, run, ServedState.READY)
        await to_thread.run_sync(strike, place, KEEPER)
        found = await served.wait_served(engine, run, ServedState.ENDED)
        assert "KEEPER_LOST" in found.note
        assert await land(engine, run, "site/worker_1") is Phase.LANDED

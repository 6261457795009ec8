"""A landing that meets uncommitted edits of the user's: refused with names, or as was asked."""

from pathlib import Path

import pytest

from engine.api import Engine, Run, reach
from engine.messages import commands as c
from engine.messages.commands import Edits
from engine.messages.events import LandingUndone, UndoRefused
from engine.phases import Phase
from tests.support.engine_runs import wait_worker
from tests.support.merging_runs import SOURCE, MergingPlace, changed, land, reviewed
from tui.ink import text_of
from tui.screens.review.blocked_page import blocked_page, ways_of

pytestmark = pytest.mark.anyio

WORKER = "s1/worker_1"
THEIRS = changed(11, "of the agent")
MINE = changed(2, "of the user")
BOTH = changed(11, "of the agent", MINE)


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def edited(engine: Engine, place: MergingPlace, mine: str = MINE) -> Run:
    """A change that waits for review while the user edits the same file, and another."""
    run = await reviewed(engine, place.workers(THEIRS, check="grep -q 'of the agent' code"))
    place.built.write("code", mine)
    place.built.write("notes", "mine\n")
    return run


async def undone(engine: Engine, run: Run) -> str:
    """Take the landing back; why it stays, or nothing."""
    before = await engine.view(run.id)
    reply = await engine.command(c.UndoLanding(worker=WORKER, run=run.id))
    assert isinstance(reply, c.Accepted), reply
    async for told in engine.events(before.seq, run=run.id):
        if isinstance(told.event, LandingUndone | UndoRefused):
            return getattr(told.event, "reason", "")
    raise AssertionError


async def test_a_refusal_names_the_files_and_changes_nothing(place: MergingPlace):
    async with place.engine() as engine:
        run = await edited(engine, place)
        assert await land(engine, run, WORKER) is Phase.REVIEWING
        view = (await engine.view(run.id)).worker(WORKER)
        assert view.in_the_way == ("code",)
        assert all(f"--edits {way}" in (view.error or "") for way in ("carry", "commit", "wait"))
        assert place.text() == SOURCE
        assert (place.project / "code").read_text() == MINE


async def test_carried_edits_lie_uncommitted_on_top(place: MergingPlace):
    async with place.engine() as engine:
        run = await edited(engine, place)
        assert await land(engine, run, WORKER, edits=Edits.CARRY) is Phase.LANDED
        assert (await engine.view(run.id)).worker(WORKER).in_the_way == ()
        assert place.text() == THEIRS
        assert (place.project / "code").read_text() == BOTH
        assert place.built.status().split("\n") == ["M code", "?? notes"]

        assert await undone(engine, run) == ""
        assert (place.text(), (place.project / "code").read_text()) == (SOURCE, MINE)
        assert place.built.status().split("\n") == ["M code", "?? notes"]


async def test_carried_edits_that_grew_into_the_change_keep_it_and_name_the_ways_out(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await edited(engine, place)
        assert await land(engine, run, WORKER, edits=Edits.CARRY) is Phase.LANDED
        mine = BOTH.replace("of the agent", "of both")
        place.built.write("code", mine)

        said = await undone(engine, run)

        assert all(way in said for way in ("code", "Commit", "stash", "revert them"))
        assert (place.text(), (place.project / "code").read_text()) == (THEIRS, mine)
        place.built.git("commit", "-qam", "mine")
        assert await undone(engine, run)  # it conflicts with what was committed: nothing is lost
    assert place.text() == mine


async def test_committed_edits_are_a_commit_of_the_user_below_the_change(place: MergingPlace):
    async with place.engine() as engine:
        run = await edited(engine, place)
        assert await land(engine, run, WORKER, edits=Edits.COMMIT) is Phase.LANDED
        assert place.text() == (place.project / "code").read_text() == BOTH
        assert place.text(revision="main^1") == MINE
        assert place.built.status() == "?? notes"
        said = place.built.git("log", "-1", "--format=%an %s", "main^1")
        assert said == f"Ada User Edits under way when {WORKER} landed"

        reply = await engine.command(c.UndoLanding(worker=WORKER, run=run.id))
        assert isinstance(reply, c.Accepted), reply
        await wait_worker(engine, run, WORKER, lambda w: w.phase is Phase.REVIEWING)
    assert place.text() == (place.project / "code").read_text() == MINE


async def test_edits_that_conflict_stay_as_they_are_unless_they_are_committed(place: MergingPlace):
    mine = changed(11, "of the user")
    async with place.engine() as engine:
        run = await edited(engine, place, mine)
        assert await land(engine, run, WORKER, edits=Edits.CARRY) is Phase.REVIEWING
        met = (await engine.view(run.id)).worker(WORKER)
        assert (met.in_the_way, met.is_carry_refused) == (("code",), True)
        assert Edits.CARRY not in {way.edits for way in ways_of(met)}
        assert "carry" not in (met.error or "")
        page = text_of(blocked_page(met, {}, 100))
        assert "They cannot be kept on top: they conflict with the change" in page
        assert (place.text(), (place.project / "code").read_text()) == (SOURCE, mine)

        assert await land(engine, run, WORKER, edits=Edits.COMMIT) is Phase.CONFLICTED
    assert place.text() == (place.project / "code").read_text() == mine
    assert place.built.status() == "?? notes"


async def test_a_landing_waits_for_edits_and_can_be_stopped_until_then(place: MergingPlace):
    async with place.engine() as engine:
        run = await edited(engine, place)
        for end in (Phase.REVIEWING, Phase.LANDED):
            wish = c.Land(worker=WORKER, run=run.id, edits=Edits.WAIT)
            async with reach(place.project, environment=place.environment) as (port, _):
                assert isinstance(await port.command(wish), c.Accepted)
            waits = await wait_worker(engine, run, WORKER, lambda w: bool(w.in_the_way))
            assert (waits.phase, waits.in_the_way) == (Phase.LANDING, ("code",))
            if end is Phase.REVIEWING:
                await engine.command(c.StopWorker(worker=WORKER, run=run.id))
            else:
                place.built.git("commit", "-qam", "mine")
            await wait_worker(engine, run, WORKER, lambda w, end=end: w.phase is end)
    assert place.text() == (place.project / "code").read_text() == BOTH


async def test_what_no_commit_of_the_users_can_hold_is_left_in_its_way(place: MergingPlace):
    """An ignored folder where the change has a file: each commit would leave it in the way."""
    place.built.commit({".gitignore": "secret/\n"}, "ignore")
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers({"secret": "of the agent\n"}))
        place.built.write("secret/key", "mine\n")
        place.built.write("code", MINE)
        before = place.built.rev("main")
        assert await land(engine, run, WORKER, edits=Edits.COMMIT) is Phase.REVIEWING
        assert (await engine.view(run.id)).worker(WORKER).in_the_way == ("secret",)
    assert place.built.rev("main") == before
    assert (place.project / "secret/key").read_text() == "mine\n"
    assert (place.project / "code").read_text() == MINE

"""Acts name what was on screen: on anything else they are refused, and two consoles never clash."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from engine.api import Engine, Run, reach
from engine.errors import ChangeMoved
from engine.messages import commands as c
from engine.messages.merging import CheckWorker, DecideConflict, LeaveOutHunks, ReadConflicts
from engine.messages.questions import ReadDiff
from engine.messages.results import Badge, WorkerView
from engine.phases import Phase
from tests.support.merging_runs import MergingPlace, changed, conflicted, land, reviewed, settled

pytestmark = pytest.mark.anyio
WHO = "s1/worker_1"
TWO = changed(1, "one", changed(12, "twelve"))
ACTS: dict[str, Callable[[str, c.Seen | None], c.Command]] = {
    "approve": lambda run, seen: c.Approve(worker=WHO, run=run, seen=seen),
    "reject": lambda run, seen: c.Reject(worker=WHO, run=run, seen=seen),
    "choose": lambda run, seen: c.Choose(worker=WHO, run=run, seen=seen),
    "land": lambda run, seen: c.Land(worker=WHO, run=run, seen=seen),
    "retry": lambda run, seen: c.RetryWorker(worker=WHO, run=run, seen=seen),
}


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def view_of(engine: Engine, run: Run, worker: str = WHO) -> WorkerView:
    return (await engine.view(run.id)).worker(worker)


def seen(view: WorkerView, **more: str) -> c.Seen:
    """The identity of what a console shows of a worker."""
    tree = (view.change.tree or "") if view.change else ""
    return c.Seen(tree=tree, attempt=view.attempt, **more)


async def drop_first_hunk(engine: Engine, run: Run) -> None:
    """Another console leaves a hunk out."""
    diff = await engine.port.ask(ReadDiff(run.id, WHO))
    await engine.port.ask(LeaveOutHunks(run.id, WHO, [diff.keys[0][0]]))


@pytest.mark.parametrize("act", ACTS)
async def test_an_act_is_refused_where_the_change_is_not_the_one_that_was_seen(
    place: MergingPlace, act: str
):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        old = seen(await view_of(engine, run))
        await drop_first_hunk(engine, run)
        before = await view_of(engine, run)
        for shown in (old, c.Seen(tree=old.tree), c.Seen(tree=""), c.Seen(tree="f" * 40)):
            reply = await engine.command(ACTS[act](run.id, shown))
            assert isinstance(reply, c.Refused), reply
            assert "changed since you looked" in reply.reason
            assert reply.kind is c.RefusalKind.CHANGED
        assert await view_of(engine, run) == before
        # The same act on what is there now is not refused for that reason: the guard is what held.
        reply = await engine.command(ACTS[act](run.id, seen(before)))
        assert not (isinstance(reply, c.Refused) and reply.kind is c.RefusalKind.CHANGED)


async def test_the_beginning_of_a_tree_names_it_and_another_attempt_does_not(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        shown = seen(await view_of(engine, run))
        wrong = c.Seen(tree=shown.tree, attempt=2)
        reply = await engine.command(c.Approve(worker=WHO, run=run.id, seen=wrong))
        assert isinstance(reply, c.Refused)
        short = c.Seen(tree=shown.tree[:8])
        reply = await engine.command(c.Approve(worker=WHO, run=run.id, seen=short))
        assert isinstance(reply, c.Accepted)


async def test_hunks_are_left_out_and_checks_run_only_on_what_was_seen(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO, check="true"))
        old = seen(await view_of(engine, run))
        await drop_first_hunk(engine, run)
        now = await view_of(engine, run)
        async with reach(place.project, environment=place.environment) as (port, _):
            with pytest.raises(ChangeMoved, match="changed since you looked"):
                await port.ask(LeaveOutHunks(run.id, WHO, [], seen=old))
            with pytest.raises(ChangeMoved, match="changed since you looked"):
                await port.ask(CheckWorker(run.id, WHO, seen=old))
            assert await view_of(engine, run) == now
            assert (await port.ask(CheckWorker(run.id, WHO, seen=seen(now)))).passed
            await port.ask(LeaveOutHunks(run.id, WHO, [], seen=seen(now)))
        assert (await view_of(engine, run)).left_out == ()
        await anyio.wait_all_tasks_blocked()


async def test_a_landing_goes_on_where_the_target_moved_unless_the_result_was_on_screen(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(1, "one"), changed(6, "six")))
        diff = await engine.port.ask(ReadDiff(run.id, WHO, against="target"))
        shown = seen(await view_of(engine, run), result=diff.result)
        assert diff.result == place.built.git("rev-parse", f"{diff.head}^{{tree}}").strip()
        assert await land(engine, run, "s2/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO, seen=shown) is Phase.REVIEWING
        back = await view_of(engine, run)
        assert back.error == "the target has moved since you looked"
        assert Badge.LAND_REFUSED in back.badges
        assert place.text() == changed(6, "six")
        # Nobody looked at the result: an ordinary clean merge asks nothing again.
        assert await land(engine, run, WHO, seen=seen(back)) is Phase.LANDED
        assert (await view_of(engine, run)).landed == place.built.rev("main")
    assert place.text() == changed(1, "one", changed(6, "six"))


async def test_a_result_that_was_seen_lands_where_the_target_stands_still(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(1, "one"), changed(6, "six")))
        assert await land(engine, run, "s2/worker_1") is Phase.LANDED
        diff = await engine.port.ask(ReadDiff(run.id, WHO, against="target"))
        shown = seen(await view_of(engine, run), result=diff.result)
        assert await land(engine, run, WHO, seen=shown) is Phase.LANDED
        assert place.built.git("rev-parse", "main^{tree}").strip() == diff.result


async def test_decisions_do_not_go_on_where_the_target_moved_since_they_were_shown(
    place: MergingPlace,
):
    """The screen says that all is decided; the merge made again has one more conflict."""
    async with place.engine() as engine:
        run = await conflicted(engine, place, changed(1, "one"), changed(1, "eins"))
        port, who = engine.port, "s2/worker_1"
        view = await port.ask(DecideConflict(run.id, who, c.ChooseRest(choice="incoming")))
        assert view.is_resolved
        place.built.commit({"code": changed(1, "uno")}, "meanwhile")
        again = await port.ask(DecideConflict(run.id, who, c.FinishResolving(seen=view.tree)))
        assert not again.is_finished
        assert again.moved
        assert again.open_count == 1
        assert (await view_of(engine, run, who)).phase is Phase.CONFLICTED
        view = await port.ask(DecideConflict(run.id, who, c.ChooseRest(choice="incoming")))
        done = await port.ask(DecideConflict(run.id, who, c.FinishResolving(seen=view.tree)))
        assert done.is_finished
        assert await settled(engine, run, who) is Phase.LANDED
    assert place.text() == changed(1, "eins")


async def test_decided_trees_land_only_as_they_were_seen_though_the_target_moves_on_the_way(
    place: MergingPlace,
):
    """The landing waits behind another one that moves the target: what was seen does not land."""
    async with place.engine() as engine:
        run = await conflicted(
            engine, place, changed(1, "one"), changed(1, "eins"), changed(6, "six")
        )
        port, who = engine.port, "s2/worker_1"
        view = await port.ask(DecideConflict(run.id, who, c.ChooseRest(choice="incoming")))
        async with engine._coordinator.runs.tools.landing:
            assert (
                await port.ask(DecideConflict(run.id, who, c.FinishResolving(seen=view.tree)))
            ).is_finished
            place.built.commit({"other": "moved\n"}, "meanwhile")
        assert await settled(engine, run, who) is Phase.CONFLICTED
        assert (await view_of(engine, run, who)).error == "the target has moved since you looked"
        again = await port.ask(ReadConflicts(run.id, who))
        assert again.is_resolved
        assert again.moved
        assert again.tree != view.tree
        done = await port.ask(DecideConflict(run.id, who, c.FinishResolving(seen=again.tree)))
        assert done.is_finished
        assert await settled(engine, run, who) is Phase.LANDED
    assert place.text() == changed(1, "eins")
    assert place.text("other") == "moved\n"


async def test_of_two_consoles_that_act_at_once_the_second_is_told(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        shown = seen(await view_of(engine, run))
        land_it = c.Land(worker=WHO, run=run.id, seen=shown)
        replies: list[c.Reply] = []

        async def press() -> None:
            async with reach(place.project, environment=place.environment) as (port, _):
                replies.append(await port.command(land_it))

        async with anyio.create_task_group() as both:
            both.start_soon(press)
            both.start_soon(press)
        assert await settled(engine, run, WHO) is Phase.LANDED
        refused = [reply for reply in replies if isinstance(reply, c.Refused)]
        assert len(refused) == 1, replies
        assert "landing already" in refused[0].reason or "LANDED" in refused[0].reason
        assert place.built.git("rev-list", "--count", "--merges", "main").strip() == "1"


async def test_approving_what_another_console_has_approved_says_so(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        shown = seen(await view_of(engine, run))
        one = await engine.command(c.Approve(worker=WHO, run=run.id, seen=shown))
        other = await engine.command(c.Approve(worker=WHO, run=run.id, seen=shown))
        assert isinstance(one, c.Accepted)
        assert other == c.Accepted("it is approved already")


async def test_one_console_drops_a_hunk_and_the_landing_of_the_other_is_refused(
    place: MergingPlace,
):
    """Only the change that was shown may land, not the one without the hunk: nobody saw it."""
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(TWO))
        shown = seen(await view_of(engine, run))
        async with (
            reach(place.project, environment=place.environment) as (first, _),
            reach(place.project, environment=place.environment) as (second, _),
        ):
            diff = await first.ask(ReadDiff(run.id, WHO))
            await first.ask(LeaveOutHunks(run.id, WHO, [diff.keys[0][0]], seen=shown))
            reply = await second.command(c.Land(worker=WHO, run=run.id, seen=shown))
            assert isinstance(reply, c.Refused)
            assert reply.kind is c.RefusalKind.CHANGED
        assert (await view_of(engine, run)).phase is Phase.REVIEWING
        await anyio.wait_all_tasks_blocked()

"""A result lands with its check, or by a typed word; a target that moved is merged again."""

from dataclasses import replace

import pytest

from engine.api import PlannedLanding
from engine.messages import commands as c
from engine.messages.results import EngineView
from engine.phases import Phase
from tests.support.review_consoles import (
    WHO,
    ReviewPort,
    conflicted_view,
    imports,
    io_py,
)
from tests.support.reviewing import IO, Reviewing, port
from tests.support.world import changed

pytestmark = pytest.mark.anyio


def _with_check(view: EngineView) -> EngineView:
    """The view with a check on the step of the conflicted worker."""
    run = view.runs[0]
    steps = tuple(
        replace(step, check="pytest -q") if step.name == "port" else step for step in run.steps
    )
    return replace(view, runs=(replace(run, steps=steps),))


async def test_landing_runs_the_check_where_it_was_not_run_and_asks_for_no_word():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),))
    async with Reviewing(given) as console:
        await console.do("land")
        await console.shows("L refused: 1 conflict still open; n goes there")
        await console.do("mark")
        tree = given.tree
        await console.do("land")
        assert given.is_finished
    assert given.actions[-1] == c.FinishResolving(seen=tree)


async def test_a_check_that_passed_on_this_result_lands_at_once_and_goes_stale_with_it():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),))
    async with Reviewing(given) as console:
        await console.do("mark", "check")
        await console.shows("✓ proved on the exact tree")
        await console.do("undo", "take_target")
        await console.shows("· check stale")
        await console.do("undo", "redo", "undo", "mark", "check", "land")
        assert given.is_finished


async def test_a_check_that_failed_is_shown_and_asks_for_the_word():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),), will_pass=False)
    async with Reviewing(given) as console:
        await console.do("mark", "check")
        await console.shows("✗ check failed", "FAILED test_io")
        await console.do("land")
        await console.shows("failed on this result: type land")
        assert not given.is_finished


async def test_a_conflict_of_the_base_goes_on_without_a_check():
    given = port(imports(), is_of_base=True)
    async with Reviewing(given) as console:
        await console.do("mark")
        await console.do("down")
        await console.shows("lets the worker continue")
        await console.do("land")
        assert given.is_finished


async def test_a_red_check_is_overruled_by_the_typed_word_and_by_nothing_else():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),), will_pass=False)
    async with Reviewing(given) as console:
        await console.do("take_target", "check")
        await console.shows("check failed")
        await console.do("land")
        await console.type("yes\n")
        await console.shows("you did not type `land`")
        assert not given.is_finished
        await console.do("land")
        await console.shows("to land it despite that; the commit will say so")
        await console.type("land\n")
        await console.until(lambda: given.is_finished)
    overruled = c.FinishResolving(is_despite_check=True, seen=given.tree)
    assert given.actions[-1] == overruled


async def test_a_check_that_was_not_run_is_not_overruled():
    given = port(imports())
    async with Reviewing(given) as console:
        await console.do("take_target", "land")
        await console.until(lambda: given.is_finished)
    assert given.actions[-1] == c.FinishResolving(seen=given.tree)


async def test_a_target_that_moved_is_told_and_every_choice_kept():
    given = port(io_py(), more={"moved": True})
    async with Reviewing(given) as console:
        await console.shows("main moved, so plait merged again. All choices are kept.")


async def test_a_file_that_was_set_by_hand_before_the_target_moved_is_pointed_at():
    given = port(io_py(), more={"moved": True, "to_look_at": (IO,)})
    async with Reviewing(given) as console:
        await console.shows("before its sides changed: look at it again")


async def test_a_target_that_moved_is_said_and_the_merge_made_again_is_shown():
    given = port(imports(), is_overtaken=True)
    async with Reviewing(given) as console:
        await console.do("take_target", "land")
        await console.shows("the target moved, so plait merged again: 1 new conflict in")
        assert not given.is_finished
        assert "still to resolve" not in console.text


async def test_the_queue_of_landings_is_shown_in_its_order():
    view = changed(conflicted_view(), "implement/worker_3", phase=Phase.REVIEWING)
    given = ReviewPort(view, files=(imports(),))
    given.order = (
        PlannedLanding(worker=WHO, paths=("a",), hunks=1),
        PlannedLanding(worker="implement/worker_3", hunks=2),
    )
    async with Reviewing(given) as console:
        await console.shows("LAND QUEUE 2", "this", "2 conflicts")


async def test_giving_the_change_up_asks_first():
    given = port()
    async with Reviewing(given) as console:
        await console.do("no_wide")
        await console.shows("Reject the change of port/worker_1?")
        assert given.commands == []
        await console.do("no_wide")
        assert given.commands == [
            c.Reject(worker=WHO, run="2f1c", seen=c.Seen(tree="b1b1b1b1", attempt=1))
        ]

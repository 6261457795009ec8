"""A key that goes to the next of some things says why it goes no further: one rule everywhere."""

import pytest

from engine.messages.diffs import ChangeDiff
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.review_consoles import WHO, ReviewPort, choosing_view, imports
from tests.support.reviewing import port as conflicts_port
from tests.support.world import FakePort, csvlite, log_lines, many
from tui.words.ends import no_further

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"


def test_the_rule():
    assert no_further("hunk", 1, (), 0) == "there is no hunk"
    assert no_further("hunk", 1, (3,), 3) == "this is the only hunk"
    assert no_further("hunk", 1, (3,), 7) == "no more hunks down"
    assert no_further("step that", -1, (3, 7), 3, plural="steps that") == "no more steps that up"


async def _diff(console: Console, hunks: int) -> Console:
    console.app.session.worker = RUNNING
    await console.do("go_diff")
    return await console.shows(f"hunk 1 of {hunks}")


def _port(diff: ChangeDiff) -> FakePort:
    return FakePort(csvlite(), logs={RUNNING: log_lines(60)}, diffs={RUNNING: diff})


async def test_a_diff_of_one_hunk_says_that_it_is_the_only_one():
    only = diff_of_reader().files[1:2]
    async with opened(port=_port(diff_of_reader(files=only))) as console:
        await _diff(console, 1)
        for idea, what in (
            ("next", "unseen hunk"),
            ("previous", "unseen hunk"),
            ("right", "hunk"),
            ("next_hunk", "hunk"),
            ("unit_down", "file"),
            ("next_file", "file"),
        ):
            await console.do(idea)
            await console.shows(f"this is the only {what}")
        await console.do("mark")
        await console.do("next")
        await console.shows("there is no unseen hunk")


async def test_a_diff_of_several_says_that_there_are_no_more():
    async with opened(port=_port(diff_of_reader())) as console:
        await _diff(console, 3)
        await console.do("previous")
        await console.shows("no more unseen hunks up")
        await console.do("last", "unit_down")
        await console.shows("no more files down")
        await console.do("first", "mark", "previous")
        await console.shows("no more unseen hunks up")


async def test_one_conflict_is_the_only_one_and_a_decided_one_is_none():
    async with opened(port=conflicts_port(imports())) as console:
        console.app.session.worker = WHO
        await console.do("go_review")
        await console.shows("conflict 1 of 1")
        for idea, what in (
            ("next", "open conflict"),
            ("left", "conflict"),
            ("next_hunk", "conflict"),
            ("unit_up", "file"),
            ("next_file", "file"),
        ):
            await console.do(idea)
            await console.shows(f"this is the only {what}")
        await console.do("take_target", "next")
        await console.shows("there is no open conflict")


async def test_compare_goes_no_further_than_its_files_and_differences():
    async with opened(port=ReviewPort(choosing_view())) as console:
        await console.do("go_compare")
        await console.shows("candidates")
        for _ in range(6):
            await console.do("unit_down")
        await console.shows("no more files down")
        await console.do("first", "previous")
        await console.shows("no more differing hunks up")


async def test_a_log_and_a_list_say_it_too():
    async with opened(port=_port(diff_of_reader())) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("FOLLOW")
        await console.do("first", "unit_up")
        await console.shows("no more tool calls up")
        await console.do("last", "next")
        await console.shows("no more errors down")
        await console.do("go_inbox")
        await console.shows("snooze")
        await console.do("last", "next")
        await console.shows("no more unanswered items down")


async def test_a_run_of_one_worker_has_no_next_one():
    async with opened(port=FakePort(many(1))) as console:
        await console.do("next_worker")
        await console.shows("this is the only worker")

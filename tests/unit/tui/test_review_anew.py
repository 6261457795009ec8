"""A generated file in conflict is made anew by one key, and shown before anything lands."""

import pytest

from engine.messages import commands as c
from engine.plan.model import ReviewRules
from tests.support.review_consoles import ReviewPort, io_py, texts
from tests.unit.tui.test_review import Reviewing, port

pytestmark = pytest.mark.anyio
LOCK = "uv.lock"


def locked(made: bytes | None = b"base\nboth\n", command: str = "uv lock") -> ReviewPort:
    """A source and a lock file in conflict, the lock file first on screen."""
    lock = texts(LOCK, "base\n", "base\nours\n", "base\ntheirs\n")
    given = port(lock, io_py())
    given.rules, given.made = ReviewRules(regenerate={LOCK: command}), made
    return given


async def test_a_generated_file_is_one_decision_and_waits_for_the_others():
    given = locked()
    async with Reviewing(given) as console:
        await console.shows("conflict", LOCK, "regenerate it: uv lock", "is still open")
        await console.do("regenerate")
        await console.shows("gm refused", "io.py is still open", "n goes there")
        assert given.actions == []
        await console.do("take_target")  # each other choice is there as before
        assert [type(action) for action in given.actions] == [c.ChooseWhole]


async def test_the_key_makes_it_and_what_was_made_is_shown_against_the_target():
    given = locked()
    async with Reviewing(given) as console:
        await console.do("next", "take_target", "take_target")
        await console.shows("regenerate it: uv lock", "runs in the sandbox")
        await console.do("mark")  # nothing else is open, so it is under the cursor
        await console.shows("uv.lock was made by uv lock", "made by: uv lock", "both")
        assert given.actions[-1] == c.Regenerate(path=LOCK)
        assert given.view_of().is_resolved
        await console.do("undo")
        await console.shows("1 open")


async def test_what_was_made_for_another_result_is_marked_and_open_again():
    given = locked()
    async with Reviewing(given) as console:
        await console.do("next", "take_target", "take_target", "regenerate")
        await console.shows("0 open")
        await console.do("unit_down", "take_incoming")
        await console.shows("stale", "1 open")
        await console.do("unit_up")
        await console.shows("other files have changed since it was made")
        await console.do("regenerate")
        await console.shows("0 open")
        assert not given.view_of().file(LOCK).is_stale


async def test_a_command_that_fails_says_why():
    given = locked(made=None)
    async with Reviewing(given) as console:
        await console.do("next", "take_target", "take_target", "regenerate")
        await console.shows("gm refused", "`uv lock` ended with exit code 3: no solution")
        assert given.view_of().decisions == 2


async def test_where_no_command_is_named_the_key_says_where_to_name_one():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("regenerate")
        await console.shows("gm refused", "review.regenerate in the manifest names one")

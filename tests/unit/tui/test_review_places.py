"""The first three proposals have a key each, whatever is under the cursor."""

import pytest

from engine.messages import commands as c
from tests.support.review_consoles import conflicts, io_py
from tests.unit.tui.test_review import Reviewing, port
from tui.keys import default_keymap
from tui.screens.review.offers import PLACES, Offer, key_ideas

pytestmark = pytest.mark.anyio


def proposed(given: object) -> list[str]:
    """Return the texts that are proposed for the first hunk, in order."""
    view = given.view_of()  # type: ignore[attr-defined]
    return [offer.text for offer in view.files[0].hunks[0].proposals]


@pytest.mark.parametrize("place", range(2))
async def test_a_digit_takes_the_proposal_of_that_place(place: int):
    given = port(io_py())
    texts = proposed(given)
    assert len(texts) > place
    async with Reviewing(given) as console:
        key = default_keymap().shown(f"review.{PLACES[place]}")
        await console.shows(f" {key}  ")
        await console.press(key)
        await console.until(lambda: bool(given.actions))
        (hunk, *_) = given.view_of().files[0].hunks
        assert hunk.result == texts[place]


async def test_a_place_that_nothing_is_offered_for_says_so():
    given = port(*conflicts())
    async with Reviewing(given) as console:
        count = len(proposed(given))
        assert count < len(PLACES)
        await console.do(PLACES[-1])
        await console.shows("9 refused", "does not have that choice")
        assert given.actions == []


def test_only_offers_without_a_key_of_their_own_are_counted():
    action = c.UndoChoice()
    offers = [Offer(idea, "", "", action) for idea in ("", "take_both", "", "no", "", "")]
    first, second, third = PLACES
    assert key_ideas(offers) == [first, "take_both", second, "no", third, ""]


def test_what_nobody_asked_for_takes_no_key_of_what_is_read():
    action = c.UndoChoice()
    read = [Offer("", "one", "", action), Offer("", "two", "", action)]
    late = Offer("", "late", "", action, is_ahead=True)
    first, second, third = PLACES
    assert key_ideas(read) == [first, second]
    assert key_ideas([late, *read]) == [third, first, second]
    assert key_ideas([read[0], late, *read, *read]) == [first, "", second, third, "", ""]

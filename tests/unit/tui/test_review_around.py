"""A reviewer reads the result: neighbors as chosen, choices named as they were offered."""

import pytest

from engine.messages import commands as c
from engine.messages.merging import DecideConflict
from tests.support.consoles import opened
from tests.support.review_consoles import WHO, ReviewPort, conflicted_view, imports, texts
from tui.ink import text_of
from tui.screens.review.card import Look, card
from tui.screens.review.columns import columns
from tui.screens.review.model import ReviewPane

pytestmark = pytest.mark.anyio
PATH = "shop.py"


def _near_each_other() -> ReviewPort:
    """Three conflicts, a line between each two of them."""
    sides = (f"{who}1\nx\n{who}2\ny\n{who}3\nz\n" for who in ("base", "ours", "theirs"))
    return ReviewPort(conflicted_view(), files=(texts(PATH, *sides),))


async def _pane(port: ReviewPort, *choices: str | None) -> ReviewPane:
    for place, choice in enumerate(choices):
        if choice is not None:
            await port.ask(
                DecideConflict("", WHO, c.ChooseHunk(path=PATH, hunk=place, choice=choice))
            )
    pane = ReviewPane()
    pane.show(port.view_of())
    return pane


def _result(pane: ReviewPane) -> list[str]:
    """The lines in the frame of the result."""
    rows = text_of(card(pane, Look({}), 78, 40)).splitlines()
    start = next(at for at, row in enumerate(rows) if "RESULT" in row)
    return [row.strip(" │") for row in rows[start + 1 :] if "│" in row]


async def test_a_result_has_its_neighbors_as_they_were_chosen():
    pane = await _pane(_near_each_other(), "both", "both", "incoming")
    pane.to(2)
    assert _result(pane) == [
        "4    ours2",
        "5    theirs2",
        "6    y",
        "7  i theirs3",
        "8    z",
    ]
    pane.to(1)
    assert _result(pane)[:3] == ["1    ours1", "2    theirs1", "3    x"]
    assert _result(pane)[-2:] == ["7    theirs3", "8    z"]


async def test_a_result_has_no_line_of_a_neighbor_that_is_open():
    pane = await _pane(_near_each_other(), None, "incoming", None)
    pane.to(1)
    assert _result(pane) == ["2    x", "3  i theirs2", "4    y"]


async def test_lines_of_the_result_are_counted_in_the_result():
    pane = await _pane(_near_each_other(), "both", "both", "incoming")
    rows = text_of(columns(pane, Look({}), 180, 40)).splitlines()
    shown = [row.split("│")[1].split() for row in rows if row.count("│") == 2]
    counted = [words[0] for words in shown if words and words[0].isdigit()]
    assert counted == [str(number) for number in range(1, 9)]


async def test_a_proposal_that_was_taken_is_named_as_it_was_offered():
    port = ReviewPort(conflicted_view(), files=(imports(),))
    async with opened(port=port) as console:
        console.app.session.worker = WHO
        await console.do("go_review", "mark")
        await console.shows("chosen: both, word by word")

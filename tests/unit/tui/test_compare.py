"""Candidates stand beside each other; one is chosen, or hunks of several are woven and checked."""

from dataclasses import replace

import pytest

from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.mouse import at, click, drag, wheel
from tests.support.review_consoles import ReviewPort, candidates, choosing_view
from tests.support.world import many
from tui.screens.compare.model import ComparePane
from tui.screens.compare.screen import CompareScreen

pytestmark = pytest.mark.anyio
_SEEN = c.Seen(tree="", attempt=1)
FIRST, SECOND, THIRD = (f"implement/worker_{number}" for number in (1, 2, 3))


class Comparing:
    """A console that looks at the candidates of a port."""

    def __init__(self, port: ReviewPort | None = None, **more: object) -> None:
        reader = diff_of_reader(is_live=False)
        self.port = port or ReviewPort(choosing_view(), diffs={FIRST: reader, THIRD: reader})
        self._opened = opened(port=self.port, **more)  # type: ignore[arg-type]

    async def __aenter__(self) -> Console:
        console = await self._opened.__aenter__()
        console.app.session.worker = FIRST
        await console.do("go_compare")
        return console

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)  # type: ignore[arg-type]


def pane_of(console: Console) -> ComparePane:
    assert isinstance(console.screen, CompareScreen)
    return console.screen.pane


async def test_candidates_stand_beside_each_other_with_figures_and_consensus():
    async with Comparing() as console:
        await console.shows("✓ passed in its own tree", "✗ failed")
        await console.shows("214 passed", "2 failed of 216", "8 files +88", "6:12", "44.0k")
        await console.shows("2 of 3 equal", "all equal", "differ", "only B", "same as A")
        await console.shows("tests/worker_1 waits for this choice")


async def test_a_hunk_is_taken_left_out_and_both_are_undone():
    async with Comparing() as console:
        await console.do("mark")
        await console.shows("■ take A", "■ 1 from A", "check not run on it")
        assert pane_of(console).at == 1
        await console.do("up", "no")
        assert pane_of(console).taken == {}
        await console.do("undo")
        assert pane_of(console).keys == ("k1",)
        await console.do("undo")
        await console.shows("no hunk is taken")


async def test_taking_goes_on_to_the_next_place_where_the_candidate_did_something():
    async with Comparing() as console:
        pane = pane_of(console)
        empty = [i for i, spot in enumerate(pane.spots) if pane.hunk_of(spot, 0) is None]
        assert empty
        pane.at = empty[0] - 1
        await console.do("mark")
        assert pane.hunk is not None or pane.at == len(pane.spots) - 1
        assert pane.at not in empty[:-1]


async def test_all_of_one_candidate_is_taken_and_undone_at_once():
    async with Comparing() as console:
        await console.do("mark", "right", "right", "merge_all")
        pane = pane_of(console)
        whole = {spot.number: pane.hunk_of(spot, 2) for spot in pane.spots}
        mine = {number: (hunk.key,) for number, hunk in whole.items() if hunk}
        assert mine.items() <= pane.taken.items()
        assert pane.taken[pane.spots[0].number] == ("k2",)
        await console.do("undo")
        assert pane.keys == ("k1",)


async def test_any_two_candidates_are_compared_one_pair_after_the_other():
    async with Comparing() as console:
        console.port.diffs[SECOND] = console.port.diffs[FIRST]
        await console.do("right", "diff")
        await console.shows("implement/worker_2 → implement/worker_3", "d goes to the next one")
        await console.do("diff")
        await console.shows("implement/worker_2 → implement/worker_1")
        await console.do("diff")
        await console.shows("implement/worker_2 → implement/worker_3")


async def test_one_of_the_alternatives_at_a_place_is_taken_and_no_more():
    async with Comparing() as console:
        await console.do("mark", "up", "right", "right", "mark")
        assert pane_of(console).keys == ("k2",)
        await console.do("up", "left")
        await console.shows("≡ same as A")


async def test_moving_goes_to_where_candidates_differ():
    async with Comparing() as console:
        await console.do("next")
        assert pane_of(console).at == 2
        await console.do("unit_down")
        assert pane_of(console).at == 3
        await console.do("previous", "previous")
        assert pane_of(console).at == 0
        await console.do("previous")
        await console.shows("no more differing hunks up")


async def test_taken_hunks_are_woven_checked_and_go_stale_with_another_choice():
    async with Comparing() as console:
        await console.do("check")
        await console.shows("! refused: no hunk is taken")
        await console.do("mark", "down", "right", "right", "mark", "check")
        assert console.port.wove == [("k1", "k5")]
        await console.shows("✓ this composite, implement/woven: passed in its own tree")
        await console.do("down", "mark")
        await console.shows("check stale, not run on it")
        await console.do("merge")
        await console.shows("m refused: the composite is not made yet")


async def test_a_candidate_is_chosen_only_after_its_diff_was_opened():
    async with Comparing() as console:
        await console.do("yes")
        await console.shows("a refused: you have not opened its diff yet; 3 opens it")
        assert console.port.commands == []
        await console.do("go_diff", "go_compare", "yes")
        assert console.port.commands == [c.Choose(worker=FIRST, run="2f1c", seen=_SEEN)]


async def test_a_candidate_that_failed_is_said_not_to_be_choosable():
    async with Comparing() as console:
        await console.do("right")
        await console.shows(f"{SECOND} cannot be chosen: ", "it has failed.")
        assert "chooses" not in console.text


async def test_rejecting_a_candidate_asks_first_and_is_about_the_one_under_the_cursor():
    async with Comparing() as console:
        await console.do("right", "right", "no_wide")
        await console.shows("Reject implement/worker_3?")
        await console.do("no_wide")
        assert console.port.commands == [c.Reject(worker=THIRD, run="2f1c", seen=_SEEN)]


async def test_two_candidates_are_compared_directly_and_escape_leads_back():
    async with Comparing() as console:
        await console.do("diff")
        await console.shows("implement/worker_1 → implement/worker_3", "_parse_quoted()")
        await console.do("down", "leave")
        await console.shows("HUNKS 5")


async def test_between_candidates_moved_code_is_shown_in_full_and_a_tab_is_no_blank():
    gone = tuple(DiffLine(Sign.REMOVED, f"    value_{n} = {n}", n) for n in range(1, 5))
    come = tuple(DiffLine(Sign.ADDED, line.text, None, line.old) for line in gone)
    odd = (DiffLine(Sign.REMOVED, "\tx = 1", 9), DiffLine(Sign.ADDED, "    x = 1", None, 9))
    files = [
        FileDiff(path=f"{n}.py", hunks=(Hunk(lines=lines),))
        for n, lines in enumerate((gone, come, odd))
    ]
    change = ChangeDiff(against="main", files=tuple(files))
    port = ReviewPort(choosing_view(), diffs={FIRST: change, THIRD: change})
    async with Comparing(port, size=(120, 40)) as console:
        await console.do("diff")
        await console.shows("\u2212»    value_1 = 1", "+»    value_1 = 1", "→   x = 1", "····x = 1")


async def test_a_hunk_is_shown_in_full_for_every_candidate():
    async with Comparing() as console:
        await console.do("next", "open")
        await console.shows("reader.py:83", "self.line_no += n", 'line.count("\\n")', "before")
        await console.do("leave")
        await console.shows("HUNKS 5")


async def test_a_run_without_candidates_says_so():
    async with opened(many(2)) as console:
        await console.do("go_compare")
        await console.shows("No step has candidates.")
        await console.do("mark", "check", "diff", "yes")
        await console.shows("refused")


@pytest.mark.parametrize("size", [(40, 14), (80, 24), (120, 36), (200, 50)])
async def test_the_page_keeps_its_room_wherever_the_cursor_is(size: tuple[int, int]):
    async with Comparing(size=size) as console:
        await console.shows("RESULT")
        for _ in range(3):
            await console.do("first")
            for _ in range(5):
                rows = console.text.split("\n")
                here = [row for row in rows if row.startswith("▌")]
                assert len(here) == 1, console.text
                assert "◄" in here[0], console.text
                assert rows[-3].startswith(" RESULT") or rows[-4].startswith(" RESULT")
                await console.do("mark")
            await console.do("right")


async def test_a_click_on_a_column_or_a_cell_goes_to_that_candidate():
    async with Comparing() as console:
        await click(console, "✗ failed")
        await console.shows(f"{SECOND} cannot be chosen: ")
        await click(console, "8 files +88")
        await console.shows(f"{FIRST} cannot be chosen: you have not opened its diff yet; 3 opens")
        x, y = at(console, "differ")
        await console.pilot.click(offset=(x - 5, y))
        await console.do()
        assert (pane_of(console).column, pane_of(console).spot) != (0, pane_of(console).spots[0])
        assert console.text.split("\n")[y].startswith("▌")


async def test_a_click_on_the_box_of_a_hunk_takes_it_and_another_leaves_it():
    async with Comparing() as console:
        await click(console, "□ A")
        await console.shows("■ take A", "■ 1 from A")
        assert pane_of(console).at == 0
        await click(console, "■ take A")
        await console.shows("no hunk is taken")
        await console.do("undo")
        await console.shows("■ take A")


async def test_two_clicks_on_a_hunk_show_it_in_full():
    async with Comparing() as console:
        await click(console, "all equal", times=2)
        await console.shows("esc closes", "before")


async def test_hunks_scroll_by_the_wheel_and_a_key_comes_back_to_the_cursor():
    async with Comparing(size=(80, 14)) as console:
        here = next(row for row in console.text.split("\n") if row.startswith("▌"))
        _, y = at(console, here)
        await wheel(console, 4, y=y)
        assert "▌" not in console.text
        await console.do("right")
        await console.shows("▌", "◄")


async def test_the_code_of_a_candidate_is_selected_without_its_line_numbers():
    async with Comparing() as console:
        await console.do("down", "down")
        await console.shows("    84             self.line_no += n")
        code = "for line in self._blocks():"
        x, y = at(console, code)
        await drag(console, (x - 12, y), 12 + len(code))
        await console.do("copy")
        assert console.app.clipboard == f"        {code}"


def test_all_that_a_candidate_did_of_a_stretch_is_taken_together():
    """One rewrote lines 1 to 9 in one go, another changed two of them."""
    table = candidates("r", "implement")
    one, two = (row.worker for row in table.rows[:2])
    known = table.hunks[0]
    hunks = [
        replace(known, key="all", spot=0, line=1, candidates=(one,), alike=(one,)),
        replace(known, key="first", spot=0, line=1, candidates=(two,), alike=(two,)),
        replace(known, key="last", spot=0, line=9, candidates=(two,), alike=(two,)),
    ]
    pane = ComparePane()
    pane.show(replace(table, hunks=tuple(hunks)))
    pane.column = 1
    assert pane.take_all()
    assert pane.keys == ("first", "last")
    pane.column = 0
    assert pane.take()
    assert pane.keys == ("all",)
    pane.column = 2
    assert not pane.take_all()

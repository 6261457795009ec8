"""The diff of a composite is read before it is taken; what candidates have in common is a table."""

import pytest

from tests.unit.tui.test_compare import Comparing, pane_of

pytestmark = pytest.mark.anyio


async def test_the_composite_of_what_is_taken_is_shown_before_the_pairs():
    async with Comparing() as console:
        await console.do("diff")
        assert console.port.mixed == []
        await console.shows("implement/worker_1 → implement/worker_3")
        await console.do("leave", "mark", "mark", "diff")
        await console.shows("the composite of 2 hunks, compared with their base", "_parse_quoted()")
        assert console.port.mixed == [("k1", "k3")]
        assert console.port.wove == []
        await console.do("diff")
        await console.shows("implement/worker_1 → implement/worker_3")


async def test_an_empty_cell_takes_nothing_and_leaves_nothing_to_undo():
    async with Comparing() as console:
        pane = pane_of(console)
        pane.at = next(i for i, spot in enumerate(pane.spots) if pane.hunk_of(spot, 0) is None)
        await console.do("mark")
        assert pane.taken == {}
        await console.shows("changed nothing here")
        await console.do("first", "mark", "undo")
        assert pane.taken == {}
        await console.do("undo")
        await console.shows("u refused")


async def test_what_each_has_in_common_with_each_other_is_a_row_of_the_table():
    async with Comparing(size=(120, 36)) as console:
        await console.shows("alike", "with B 2  C 1", "with A 2  C 1", "with A 1  B 1")
        pane = pane_of(console)
        assert [pane.shared(0, other) for other in (1, 2)] == [2, 1]


async def test_lines_round_a_hunk_are_shown_with_it():
    async with Comparing(size=(120, 36)) as console:
        await console.shows("# above it", "# below it")
        await console.do("open")
        await console.shows("# above it", "def _closing_quote(self):", "# below it")

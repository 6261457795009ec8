"""Stats: figures as a table and as plots, of whom and by what one asks."""

from dataclasses import replace

import pytest

from engine.errors import StoreError
from engine.messages.events import HistoryDelayed
from engine.messages.results import HistoryDelay
from engine.messages.statistics import Axis, CountAttempts, Figures, Reach
from tests.support.consoles import Console, opened
from tests.support.mouse import click
from tests.support.world import NOW, FakePort, csvlite
from tui.ink import row_width, text_of
from tui.screens.stats.page import COLUMNS, columns_for, figures_row, table_head
from tui.screens.stats.plots import plots, week_of, weeks_until
from tui.words.figures import UNKNOWN
from tui.words.happened import event_text

pytestmark = pytest.mark.anyio

BARE = Figures(
    name="claude",
    runs=2,
    attempts=4,
    success=3,
    first_checks=3,
    first_passed=2,
    conflicts=1,
    proposed=10,
    kept=7,
    left_out=3,
    review_s=3700.0,
    landed=2,
    usd=1.5,
    tokens=31_200,
)
DELAY = HistoryDelay(what="connection refused", help="Look at the server.", since=NOW - 180)
AGENTS = tuple(
    replace(BARE, name=name, attempts=n) for name, n in (("claude", 9), ("codex", 4), ("", 2))
)
THIS_WEEK = week_of(NOW)
EARLIER = week_of(NOW - 3 * 7 * 86_400)


class Counting:
    """Attempts as a history would add them up; what was asked is written down."""

    def __init__(self) -> None:
        self.asked: list[CountAttempts] = []

    def __call__(self, question: CountAttempts) -> tuple[Figures, ...]:
        self.asked.append(question)
        if question.reach is Reach.TEAM:
            raise StoreError("the server is away", hint="Look at it.")
        if question.by is Axis.WEEK:
            return (replace(BARE, name=THIS_WEEK), replace(BARE, name=EARLIER, attempts=1))
        return AGENTS

    @property
    def last_table(self) -> CountAttempts:
        return next(one for one in reversed(self.asked) if one.of is None)


def counting_port() -> tuple[FakePort, Counting]:
    counting = Counting()
    return FakePort(csvlite(), counted=counting), counting


def test_a_narrow_table_leaves_out_what_is_least_needed_and_is_never_too_wide():
    for cells in range(200):
        columns = columns_for(cells, {})
        head, row = table_head(Axis.AGENT, columns), figures_row(BARE, columns, is_focused=True)
        assert row_width(head) == row_width(row) == cells
    assert [column.head for column in columns_for(40, {}).shown] == ["ATTEMPTS", "SUCCESS"]
    assert columns_for(200, {}).shown == list(COLUMNS)


def test_a_row_tells_every_figure():
    told = text_of([figures_row(BARE, columns_for(160, {}), is_focused=False)]).split()
    assert told == [
        *("claude", "2", "4", "75%", "66%", "1", "70%", "1:01:40"),
        *("2", "$1.50", "31.2k", "$0.75"),
    ]


def test_of_nothing_there_is_no_share():
    none = replace(BARE, attempts=0, first_checks=0, proposed=0, usd=None, tokens=None)
    told = text_of([figures_row(none, columns_for(160, {}), is_focused=False)]).split()
    assert told.count(UNKNOWN) == 6


def test_weeks_without_attempts_are_weeks_too_also_over_the_end_of_a_year():
    assert weeks_until("2025-W51", 1_767_963_600.0) == [
        *("2025-W51", "2025-W52", "2026-W01"),
        "2026-W02",
    ]
    assert weeks_until(THIS_WEEK, NOW) == [THIS_WEEK]


@pytest.mark.parametrize("cells", [20, 40, 78, 118, 198])
@pytest.mark.parametrize("height", [0, 3, 4, 9, 20, 40])
def test_plots_keep_to_their_room(cells: int, height: int):
    found = [replace(BARE, name=week_of(NOW - n * 7 * 86_400), attempts=n) for n in range(120)]
    rows = plots(found, NOW, cells, height)
    assert len(rows) <= height
    assert all(row_width(row) <= cells for row in rows)
    assert bool(rows) == (height >= 4)


def test_a_bar_is_as_high_as_its_share_and_the_smallest_is_seen():
    weeks = [THIS_WEEK, EARLIER]
    found = [replace(BARE, name=weeks[0], attempts=800), replace(BARE, name=weeks[1], attempts=1)]
    rows = text_of(plots(found, NOW, 36, 8)).split("\n")
    assert rows[0].split() == ["attempts", "latest", "800,", "most", "800"]
    bars = [row.ljust(24) for row in rows[1 : rows.index("")]][:-1]
    assert [row[18] for row in bars] == ["█"] * len(bars)
    assert [row[0] for row in bars] == [*" " * (len(bars) - 1), "▁"]
    assert {row[6] for row in bars} == {" "}  # a week in which nothing was done


def test_what_is_no_week_is_not_drawn():
    odd = [replace(BARE, name=name) for name in ("", "2026-W99", "x", "0000-W01", "2026-W1")]
    assert plots(odd, NOW, 80, 20) == []
    assert plots([*odd, replace(BARE, name=THIS_WEEK)], NOW, 80, 20)


async def shown_stats(console: Console) -> Console:
    await console.do("go_stats")
    return await console.shows("week by week")


async def test_a_key_leads_there_and_each_way_asks_for_other_figures():
    port, counting = counting_port()
    async with opened(port=port) as console:
        await shown_stats(console)
        assert counting.last_table == CountAttempts()
        await console.shows("▌claude")
        assert counting.asked[-1] == CountAttempts(by=Axis.WEEK, of=Axis.AGENT, name="claude")
        await console.do("down", "down")
        assert counting.asked[-1].name == ""
        assert counting.asked[-1].of is Axis.AGENT
        await console.shows(f"▌{UNKNOWN}")
        await console.do("right")
        assert counting.last_table.by is Axis.MODEL
        await console.do("left", "left")
        assert counting.last_table.by is Axis.WEEK
        await console.shows(f"▌{THIS_WEEK}")
        await console.do("unit_down")
        assert counting.last_table.reach is Reach.OWN
        await console.do("less")
        assert counting.last_table.since == NOW - 26 * 7 * 86_400
        await console.do("more")
        assert counting.last_table.since is None
        await console.do("more")
        assert "this is already all time" in console.message


async def test_all_of_it_can_be_clicked():
    port, counting = counting_port()
    async with opened(port=port) as console:
        await shown_stats(console)
        await click(console, " codex")
        await console.shows("▌codex")
        await click(console, "person")
        assert counting.last_table.by is Axis.PERSON
        await click(console, "all of yours")
        assert counting.last_table.reach is Reach.OWN
        await click(console, "8 weeks")
        assert counting.last_table.since == NOW - 8 * 7 * 86_400


async def test_a_history_that_cannot_be_asked_says_why_and_the_next_one_is_shown():
    port, _ = counting_port()
    async with opened(port=port) as console:
        await shown_stats(console)
        await console.do("unit_up")
        await console.shows("cannot count these attempts")
        await console.shows("the server is away. Look at it.")
        assert "week by week" not in console.text
        await console.do("unit_down")
        await console.shows("week by week")


async def test_without_attempts_it_says_how_to_make_some():
    async with opened() as console:
        await console.do("go_stats")
        await console.shows("There is no attempt yet.")
        await console.do("less")
        await console.shows("No attempt started in the last 26 weeks.")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50), (36, 8)])
async def test_it_has_room_everywhere(size: tuple[int, int]):
    port, _ = counting_port()
    async with opened(port=port, size=size) as console:
        await console.do("go_stats")
        await console.shows("▌claude")


async def test_a_history_that_is_behind_is_told_on_fleet_and_in_words_on_stats():
    view = csvlite()
    behind = replace(view, runs=(replace(view.runs[0], history=DELAY),))
    for size in ((80, 24), (120, 36)):
        async with opened(behind, size=size) as console:
            await console.shows("▲ history delayed")
            await click(console, "history delayed")
            await console.shows("The team's history has been delayed for 3 min.")
            await console.shows("connection refused. Look at the server.")


def test_what_is_told_of_a_delay_is_in_words():
    begun, over = (HistoryDelayed(delay=delay) for delay in (DELAY, None))
    assert "history is delayed: connection refused" in text_of([event_text(begun)])
    assert "is up to date again" in text_of([event_text(over)])


async def test_figures_are_counted_anew_while_runs_go_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tui.screens.stats.screen._FRESH_S", 0.0)
    port, counting = counting_port()
    async with opened(port=port) as console:
        await shown_stats(console)
        before = len(counting.asked)
        run = port.shown.runs[0]
        port.shown = replace(port.shown, runs=(replace(run, seq=run.seq + 1),))
        console.app.session.bridge.nudge()
        await console.until(lambda: len(counting.asked) > before)

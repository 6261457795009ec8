"""Inbox, Plan and Runs: panes that scroll, are clicked, and whose text can be copied."""

from dataclasses import replace

import pytest

from engine.limits import Dimension, Enforcement, Level
from engine.messages.asked import Question
from engine.messages.commands import Answer
from engine.messages.results import EngineView
from tests.support.consoles import opened, read
from tests.support.mouse import at, click, drag, wheel
from tests.support.world import NOW, changed, csvlite, many
from tui.ink import text_of
from tui.kit.scrolled import Rows

pytestmark = pytest.mark.anyio
ASKS, FAILED = "implement/worker_2", "port/worker_2"


def runs(count: int) -> EngineView:
    """Return a view of so many runs, the first one the newest."""
    view = csvlite()
    made = (replace(view.runs[0], run=f"r{n:02}", started_at=NOW - 60 * n) for n in range(count))
    return replace(view, runs=tuple(made))


def asking(text: str, question: str, at: float = NOW) -> EngineView:
    """Return a view in which a worker asks something."""
    asked = Question(id=question, text=text, asked_at=NOW - 1, is_permission=True)
    return changed(csvlite(at=at), ASKS, questions=(asked,))


def choosing(*choices: str) -> EngineView:
    """Return a view in which a worker lets a human choose."""
    asked = Question(id="q9", text="Which?", choices=choices, asked_at=NOW - 1)
    return changed(csvlite(), ASKS, questions=(asked,))


@pytest.mark.parametrize("screen", ["f", "i"])
async def test_a_numbered_choice_is_answered_by_its_number(screen: str):
    async with opened(choosing("keep both", "drop the old one", "ask me later")) as console:
        await console.press("g", screen)
        await console.until(lambda: bool(console.screen.digits))
        await console.do("yes")
        await console.shows("1", "keep both", "2", "drop the old one")
        await console.press("2")
        answers = [command for command in console.port.commands if isinstance(command, Answer)]
        assert [(one.worker, one.answer) for one in answers] == [(ASKS, "drop the old one")]


async def test_a_number_that_is_the_text_of_a_choice_only_narrows_the_list():
    async with opened(choosing("python 3", "python 2")) as console:
        await console.do("yes")
        await console.shows("python 3")
        await console.press("2")
        await console.shows(" of 2")
        assert console.port.commands == []


async def test_the_inbox_numbers_the_choices_and_has_the_answers_before_what_it_could_touch():
    async with opened(choosing("keep both", "drop the old one"), size=(80, 24)) as console:
        await console.do("go_inbox")
        await console.shows("1 keep both", "2 drop the old one", "ANSWER", "a ")
        whole = "\n".join(text_of([row]) for row in console.screen.shown.rows)  # type: ignore[attr-defined]
        assert whole.index("ANSWER") < whole.index("JUST BEFORE") < whole.index("WHAT IT COULD")


@pytest.mark.parametrize("screen", ["go_inbox", "go_worker"])
async def test_how_a_limit_holds_stands_apart_from_what_holds(screen: str):
    value = "shared objects read-only"
    held = Enforcement(
        dimension=Dimension.GIT, level=Level.ENFORCED, mechanism="private clone", value=value
    )
    async with opened(changed(csvlite(), ASKS, enforcement=(held,))) as console:
        await console.do(screen)
        if screen == "go_worker":
            await console.press("]", "t", "]", "t", "]", "t")
        await console.shows(f"{value}  ")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("choose", "allow its request"), ("approve", "allow its request"), ("kill", "stop it")],
)
async def test_the_palette_is_searched_by_every_word_for_a_key(wanted: str, found: str):
    async with opened() as console:
        await console.do("palette")
        await console.type(wanted)
        await console.shows(found)
        assert "nothing has that name" not in console.text


async def test_a_run_is_chosen_with_a_click_and_opened_with_a_second_one():
    async with opened(runs(4)) as console:
        await console.do("go_runs")
        await click(console, " r02 ")
        await console.shows("▌● r02")
        await click(console, " r03 ", times=2)
        await console.until(lambda: console.screen.kind == "fleet")
        assert console.app.session.run_id == "r03"


async def test_many_runs_scroll_and_a_key_comes_back_to_the_cursor():
    async with opened(runs(60), size=(100, 20)) as console:
        await console.do("go_runs")
        pane = console.screen.query_one(Rows)
        await console.until(lambda: pane.show_vertical_scrollbar)
        await wheel(console, 6)
        await console.until(lambda: pane.scroll_y > 0)
        assert "● r00" not in console.text
        assert "LASTED" in console.text  # its head stands still
        await console.do("down")
        await console.shows("▌● r01")
        await console.do("last")
        await console.shows("▌● r59")


async def test_only_the_runs_on_screen_are_drawn():
    async with opened(runs(60), size=(100, 20)) as console:
        await console.do("go_runs")
        pane = console.screen.query_one(Rows)
        assert len(pane.rows) == pane.size.height < 60


async def test_an_item_is_chosen_with_a_click_and_its_answer_too():
    async with opened(options=read()) as console:
        await console.do("go_inbox")
        await click(console, "port/cli.py")
        assert console.app.session.worker == FAILED
        await click(console, "implement/worker_2")
        await click(console, "allow once")
        assert [type(command).__name__ for command in console.port.commands] == ["Answer"]
        assert console.port.commands[0].worker == ASKS


async def test_a_click_allows_no_question_that_was_not_read_to_its_end():
    long = "\n".join(f"line {n}" for n in range(60))
    async with opened(asking(long, "1")) as console:
        await console.do("go_inbox")
        await console.shows("more rows")
        await click(console, "a allow")
        await console.shows("the question continues below")
        assert console.port.commands == []
        pane = console.screen.query_one("#detail", Rows)
        await wheel(console, 60, x=90)
        await console.until(lambda: pane.scroll_y == pane.max_scroll_y)
        await console.do("yes")
        await console.shows("This request just appeared")
        await console.do("yes")
        assert [type(command).__name__ for command in console.port.commands] == ["Answer"]


async def test_another_question_of_the_same_worker_is_read_anew():
    long = "\n".join(f"line {n}" for n in range(60))
    async with opened(asking(long, "1")) as console:
        await console.do("go_inbox")
        for _ in range(5):
            await console.do("page_down")
        await console.tell(asking(long.replace("line", "other"), "2", NOW + 5))
        await console.shows("other 3")
        await console.do("yes")
        assert console.port.commands == []


async def test_a_question_can_be_selected_and_copied():
    async with opened() as console:
        await console.do("go_inbox")
        x, y = at(console, "I want property tests")
        await drag(console, (x, y), len("I want property"))
        await console.press("y")
        assert console.app.clipboard == "I want property"


async def test_the_list_of_steps_and_the_bars_can_be_clicked():
    async with opened(size=(80, 24)) as console:
        await console.do("go_plan")
        await click(console, "port     ")
        await console.shows("STEP port")
        await click(console, "worker_3")
        await console.shows("STEP implement")
        assert console.app.session.worker == "implement/worker_3"


async def test_a_box_of_the_graph_can_be_clicked():
    async with opened() as console:
        await console.do("go_plan")
        await click(console, "─ tests ─")
        await console.shows("STEP tests")


async def test_a_wide_graph_scrolls_to_the_step_under_the_cursor():
    async with opened(size=(70, 40)) as console:
        await console.do("go_plan")
        await console.shows("─ design ─")
        assert "WAITING" not in console.text
        await console.do("last")
        await console.shows("━ tests ━━ WAITING ━┓")
        assert "─ design ─" not in console.text


async def test_bars_that_do_not_fit_are_counted_and_scroll():
    async with opened(many(40), size=(100, 36)) as console:
        await console.do("go_plan")
        await console.shows("more")
        pane = console.screen.query_one("#bars", Rows)
        assert len(pane.rows) == pane.size.height < 40
        pane_y = pane.region.y + 1
        await wheel(console, 40, x=50, y=pane_y)
        await console.shows("module_40.py")


async def test_a_list_that_has_become_short_is_seen_from_its_top():
    view = many(40)
    async with opened(view, size=(100, 36)) as console:
        await console.do("go_plan")
        pane = console.screen.query_one("#bars", Rows)
        await wheel(console, 40, x=50, y=pane.region.y + 1)
        await console.shows("module_40.py")
        await console.tell(replace(many(8), at=view.at + 1))
        await console.until(lambda: pane.scroll_y == 0 and len(pane.rows) == 8)
        assert all("module_" in row for row in pane.text.split("\n"))

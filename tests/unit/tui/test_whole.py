"""Nothing that decides is cut at 80 columns: phases, messages, questions, names at either end."""

from dataclasses import replace

import pytest

from engine.limits import Dimension, Enforcement, Level
from engine.messages.asked import Question
from engine.messages.results import EngineView, RunView
from tests.support.consoles import opened
from tests.support.world import NOW, FakePort, changed, csvlite, many
from tui.ink import TEXT, Span, cut_middle, row_width, text_of, words, wrapped
from tui.kit.bars import sentence_rows
from tui.kit.lists import table_columns, table_head, table_row
from tui.words.cutting import wrap
from tui.words.looks import look_of
from tui.words.scene import Banner, Scene
from tui.words.standing import step_of

pytestmark = pytest.mark.anyio
ASKS = "implement/worker_2"
_LONG = "the-whole-parser-and-its-error-messages-in-every-language"


def _named_long(view: EngineView) -> EngineView:
    """Return a view whose steps have names that leave no room for anything else."""
    run = view.runs[0]
    steps = []
    for step in run.steps:
        name = f"{step.name}-{_LONG}"
        workers = tuple(
            replace(w, worker=w.worker.replace(step.name, name), step=name) for w in step.workers
        )
        steps.append(replace(step, name=name, workers=workers))
    return replace(view, runs=(replace(run, steps=tuple(steps)),))


def _scene(run: RunView) -> Scene:
    return Scene(view=EngineView(repository=""), run=run, now=NOW)


@pytest.mark.parametrize("view", [csvlite(), many(20), _named_long(csvlite())])
@pytest.mark.parametrize("cells", [60, 80, 100, 120])
def test_every_row_of_the_table_has_its_phase_and_something_of_now(view: EngineView, cells: int):
    run = view.runs[0]
    columns = table_columns(_scene(run), cells)
    assert "PHASE" in text_of([table_head(columns)])
    assert columns.now >= 18
    for one in run.workers:
        row = table_row(one, step_of(run, one), _scene(run), columns, is_focused=False)
        assert row_width(row) == cells
        assert look_of(one).word in text_of([row])


def test_names_that_are_cut_in_a_table_stay_apart():
    run = _named_long(csvlite()).runs[0]
    columns = table_columns(_scene(run), 80)
    rows = [
        text_of([table_row(one, step_of(run, one), _scene(run), columns, is_focused=False)])
        for one in run.workers
    ]
    assert len({row[3 : columns.name + 3] for row in rows}) == len(rows)


@pytest.mark.parametrize("cells", range(50))
def test_a_row_loses_its_middle_or_its_start_and_takes_no_more_cells_than_it_may(cells: int):
    cut = cut_middle((Span("abcdef" * 4), Span("ghij" * 5)), cells)
    assert row_width(cut) == min(cells, 44)
    assert ("…" in text_of([cut])) == (0 < cells < 44)
    assert text_of([cut]).startswith("ab") == (cells >= 24)


@pytest.mark.parametrize("text", ["", "one two  three", "word " * 30, "x" * 90, f"a {'y' * 90} b"])
@pytest.mark.parametrize("cells", [10, 31, 78])
def test_a_wrapped_row_has_every_sign_of_its_text(text: str, cells: int):
    rows = wrapped((Span(text[: len(text) // 2]), Span(text[len(text) // 2 :])), cells, 50)
    assert all(row_width(row) <= cells for row in rows)
    told = "".join(text_of([row]) for row in rows).replace(" ", "")
    assert told == "".join(wrap(text, cells)).replace(" ", "")


def test_only_a_message_of_more_rows_than_it_may_have_is_cut():
    rows = wrapped((Span("word " * 30),), 20, 3)
    assert [text_of([row]).endswith("…") for row in rows] == [False, False, True]


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("It waits for your review. ", "d opens its diff.", "It waits for your review."),
        ("It cannot be chosen: ", "you have not opened it.", "It cannot be chosen: you have not"),
    ],
)
def test_a_sentence_leaves_out_the_second_one_but_never_its_own_end(
    first: str, second: str, shown: str
):
    row = words(Span(first, TEXT), second)
    assert " ".join(text_of(sentence_rows(row, 38)).split()).startswith(shown)
    assert (second.rsplit(maxsplit=1)[-1] in text_of(sentence_rows(row, 38))) == first.endswith(
        ": "
    )
    assert second in text_of(sentence_rows(row, 80))


async def test_a_refusal_and_what_is_asked_first_stand_whole_at_80_columns():
    view = _named_long(csvlite())
    async with opened(port=FakePort(view), size=(80, 24)) as console:
        await console.do("start")
        await console.shows("open one with `plait` in a", "repository.")
        running = f"implement-{_LONG}/worker_1"
        console.app.session.worker = running
        await console.do("no")
        whole = " ".join(console.text.split())
        assert f"Stop {running}?" in whole
        assert "its work stays on its branch." in whole


async def test_a_banner_stands_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch):
    said = "for 3 min: the disk is full. Free some space where plait keeps its state, or stop it."
    async with opened(size=(80, 24)) as console:
        banner = Banner("STALLED", said)
        monkeypatch.setattr(console.app.session, "_banner", lambda _: banner)
        console.screen.draw()
        await console.until(lambda: "or stop it." in " ".join(console.text.split()))


async def test_what_an_answer_could_not_take_back_stands_in_the_inbox_as_on_its_card():
    question = Question(
        id="q1", text="twine upload", asked_at=NOW, is_permission=True, danger="publishes a package"
    )
    async with opened(changed(csvlite(), ASKS, questions=(question,)), size=(80, 24)) as console:
        await console.shows("publishes a package")
        await console.do("go_inbox")
        await console.shows("publishes a package")


@pytest.mark.parametrize("tab", [3, 5])
async def test_a_level_has_the_same_word_on_every_screen(tab: int):
    held = Enforcement(
        dimension=Dimension.NETWORK, level=Level.NONE, mechanism="shared", value="open"
    )
    async with opened(changed(csvlite(), ASKS, enforcement=(held,)), size=(80, 40)) as console:
        await console.do("go_inbox")
        await console.shows("not enforced")
        await console.do("go_worker")
        await console.press(*["l"] * tab)
        await console.shows("not enforced")

"""A human answers agents where their questions are seen: by a digit, in words, for several."""

from dataclasses import replace

import pytest

from engine.messages.asked import Question
from engine.messages.commands import Answer
from engine.messages.results import EngineView
from engine.phases import Phase
from tests.support.consoles import Console, opened, read
from tests.support.mouse import click
from tests.support.world import NOW, changed, csvlite, worker
from tui.app import Options

pytestmark = pytest.mark.anyio
ASKS, RUNS = "implement/worker_2", "implement/worker_1"
WHICH = Question(id="q9", text="Which?", choices=("keep both", "drop it"), asked_at=NOW - 9)
PIP = Question(
    id="q1",
    text="Bash: pip install x",
    asked_at=NOW - 9,
    is_permission=True,
    choices=("allow", "deny"),
    command="pip install x",
    is_editable=True,
)


def asking(*questions: Question) -> EngineView:
    """Return a view in which one worker asks these things."""
    return changed(csvlite(), ASKS, questions=questions)


def three(question: Question, other: Question) -> EngineView:
    """Return a view in which two workers ask the same, and a third one something else."""
    view = csvlite()
    asked = {"port/worker_7": question, "port/worker_8": replace(question, id="q8")}
    asked["port/worker_9"] = replace(other, id="q7")
    more = tuple(worker(name, Phase.RUNNING, questions=(one,)) for name, one in asked.items())
    steps = view.runs[0].steps
    step = replace(steps[2], workers=(*steps[2].workers, *more))
    run = replace(view.runs[0], steps=(*steps[:2], step, *steps[3:]))
    return replace(view, runs=(run,))


def answers(console: Console) -> list[tuple[str, str, str | None]]:
    """Return whom what was answered, and to which question."""
    sent = [command for command in console.port.commands if isinstance(command, Answer)]
    return [(one.worker, one.answer, one.question) for one in sent]


@pytest.mark.parametrize("screen", ["fleet", "inbox", "worker"])
@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_a_digit_that_is_shown_answers(screen: str, size: tuple[int, int]):
    async with opened(asking(WHICH), size=size, options=read()) as console:
        await console.press("g", screen[0])
        await console.shows("1 keep both", "2 drop it")
        await console.press("2")
        assert answers(console) == [(ASKS, "drop it", "q9")]
        assert console.screen.kind == screen


async def test_a_digit_that_answers_leads_to_no_screen_and_the_bar_says_so():
    async with opened(asking(WHICH)) as console:
        await console.until(lambda: "1 Fleet" not in console.text.split("\n")[0])
        await console.shows(" Fleet ")
        await console.press("3")
        assert console.screen.kind == "diff"
        assert answers(console) == []
        await console.shows("1 Fleet", "2 Worker")


async def test_a_permission_has_no_digit():
    async with opened(asking(PIP)) as console:
        await console.do("go_inbox")
        assert "1 allow" not in console.text
        await console.press("1")
        assert console.screen.kind == "fleet"
        assert answers(console) == []


async def test_a_digit_that_was_meant_for_a_screen_answers_no_question_that_only_just_came():
    async with opened(asking(WHICH)) as console:
        await console.press("2", "2")
        assert answers(console) == []
        await console.shows("This question just appeared. Answer drop it?")
        await console.press("escape", "2", "a")
        assert answers(console) == [(ASKS, "drop it", "q9")]


async def test_the_next_question_is_not_answered_by_the_key_that_leads_away():
    view = three(WHICH, WHICH)
    async with opened(view) as console:
        console.screen.session.worker = "port/worker_7"
        await console.press("g", "i", "2", "a")
        assert answers(console) == [("port/worker_7", "drop it", "q9")]
        await console.tell(replace(changed(view, "port/worker_7", questions=()), at=NOW + 1))
        await console.shows("port/worker_8")
        await console.press("1")
        assert len(answers(console)) == 1


async def test_a_digit_answers_nothing_that_is_not_on_the_screen_in_full():
    long = replace(WHICH, text="\n".join(f"line {n}" for n in range(60)))
    async with opened(asking(long), options=read()) as console:
        await console.press("2")
        assert console.screen.kind == "worker"
        await console.press("1", "0", "2")
        assert answers(console) == []


async def test_an_answer_is_clicked():
    async with opened(asking(WHICH), options=read()) as console:
        await click(console, "drop it")
        assert answers(console) == [(ASKS, "drop it", "q9")]


@pytest.mark.parametrize("idea", ["yes", "yes_wide"])
@pytest.mark.parametrize("screen", ["go_fleet", "go_inbox", "go_worker"])
async def test_a_key_allows_no_request_that_only_just_came(screen: str, idea: str):
    async with opened(asking(PIP)) as console:
        await console.do(screen, idea)
        assert answers(console) == []
        await console.shows("This request just appeared. Allow it")
        await console.press("n")
        assert answers(console) == []
        await console.do(idea)
        await console.press("y")
        assert answers(console) == [(ASKS, "allow", "q1")]


async def test_a_click_allows_no_request_that_only_just_came():
    async with opened(asking(PIP)) as console:
        await click(console, "allow once")
        await console.shows("This request just appeared. Allow it once?")
        assert answers(console) == []


async def test_a_request_that_was_read_on_one_screen_is_allowed_on_another():
    now = [NOW]
    options = Options(clock=lambda: now[0], is_plain=False, has_truecolor=True)
    async with opened(asking(PIP), options=options) as console:
        await console.until(lambda: bool(console.app.session.asked_at))
        now[0] += 2.1
        await console.do("go_inbox", "yes")
        assert answers(console) == [(ASKS, "allow", "q1")]
        again = changed(console.port.shown, ASKS, questions=(replace(PIP, id="q2"),))
        await console.tell(replace(again, at=NOW + 9))
        await console.do("yes")
        assert answers(console) == [(ASKS, "allow", "q1")], "it asks something else now"


async def test_a_request_that_comes_under_the_cursor_by_itself_is_read_anew():
    now, view = [NOW], three(PIP, PIP)
    options = Options(clock=lambda: now[0], is_plain=False, has_truecolor=True)
    async with opened(view, options=options) as console:
        for name in ("port/worker_8", "port/worker_7"):
            console.screen.point_at(name)
            await console.do("go_inbox")
        now[0] += 2.1
        await console.do("yes")
        await console.tell(replace(changed(view, "port/worker_7", questions=()), at=NOW + 1))
        await console.until(lambda: console.app.session.worker != "port/worker_7")
        await console.do("yes")
        assert [one for one, *_ in answers(console)] == ["port/worker_7"]


@pytest.mark.parametrize("screen", ["go_fleet", "go_inbox", "go_worker"])
async def test_what_is_allowed_is_the_command_as_it_was_edited(screen: str):
    async with opened(asking(PIP)) as console:
        await console.do(screen, "edit")
        assert console.typed == "pip install x"
        await console.type(" --user\n")
        assert answers(console) == [(ASKS, "allow: pip install x --user", "q1")]


async def test_an_edited_command_that_is_closed_or_empty_allows_nothing():
    async with opened(asking(PIP)) as console:
        await console.do("edit")
        await console.press("escape")
        await console.do("edit")
        await console.press(*["backspace"] * len("pip install x"), "enter")
        await console.shows("the command is empty")
        assert answers(console) == []


async def test_an_agent_that_runs_only_its_own_command_is_named_with_the_key_that_helps():
    async with opened(asking(replace(PIP, is_editable=False))) as console:
        await console.do("edit")
        await console.shows("claude runs only what it asked for; x denies it")
        assert answers(console) == []


@pytest.mark.parametrize("question", [WHICH, PIP], ids=["choices", "permission"])
async def test_all_marked_who_ask_the_same_get_one_answer_after_one_question(question: Question):
    view = three(question, replace(question, text="Other?"))
    async with opened(view, options=read()) as console:
        console.screen.session.worker = "port/worker_7"
        console.screen.session.marks |= {"port/worker_7", "port/worker_8", "port/worker_9"}
        await console.press("2" if question.choices and not question.is_permission else "a")
        await console.shows("for 2 workers?", "not", "it asks something else")
        assert answers(console) == []
        await console.press("y")
        said = "allow" if question.is_permission else "drop it"
        assert answers(console) == [
            ("port/worker_7", said, question.id),
            ("port/worker_8", said, "q8"),
        ]
        assert not console.screen.session.marks


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_what_is_not_wanted_for_all_answers_nobody(key: str):
    async with opened(three(WHICH, PIP)) as console:
        console.screen.session.worker = "port/worker_7"
        await console.do("yes_wide")
        await console.press("1")
        await console.shows("for 2 workers?")
        await console.press(key)
        assert answers(console) == []


async def test_all_who_ask_the_same_are_answered_by_the_capital():
    async with opened(three(WHICH, PIP), size=(120, 50)) as console:
        console.screen.session.worker = "port/worker_8"
        await console.press("g", "w")
        await console.shows(", and another", "answer all 2")
        await console.do("yes_wide")
        await console.press("1", "y")
        assert answers(console) == [
            ("port/worker_7", "keep both", "q9"),
            ("port/worker_8", "keep both", "q8"),
        ]


async def test_words_are_said_to_all_who_ask_the_same():
    open_question = Question(id="q9", text="Which name?", asked_at=NOW - 9)
    async with opened(three(open_question, PIP)) as console:
        console.screen.session.worker = "port/worker_7"
        await console.press("g", "i")
        await console.do("yes_wide")
        await console.type("reader\n")
        await console.press("y")
        assert [(who, said) for who, said, _ in answers(console)] == [
            ("port/worker_7", "reader"),
            ("port/worker_8", "reader"),
        ]


async def test_nobody_else_who_asks_is_said_with_the_key_that_helps():
    async with opened(asking(WHICH)) as console:
        await console.do("yes_wide")
        await console.shows("nobody else asks the same", "a answers it")


async def test_what_is_not_asked_any_more_is_forgotten():
    async with opened(csvlite()) as console:
        await console.until(lambda: bool(console.app.session.asked_at))
        await console.tell(changed(csvlite(), "implement/worker_2", questions=()))
        assert not console.app.session.asked_at

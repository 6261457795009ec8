"""A human allows what was on screen as a whole: nothing that an agent hides is allowed with it."""

from dataclasses import replace

import pytest

from engine.messages.asked import Question
from engine.messages.commands import Answer
from engine.messages.results import EngineView
from tests.support.consoles import Console, opened, read
from tests.support.world import NOW, changed, csvlite
from tui.kit.scrolled import Rows
from tui.words import clean

pytestmark = pytest.mark.anyio
ASKS, OTHER = "implement/worker_2", "implement/worker_1"
HIDDEN = "ls \x1b]0;rm -rf ~;\x07"


def asked(command: str, name: str = "q1") -> Question:
    """Return a request to run a command."""
    return Question(
        id=name,
        text=f"Bash: {command}",
        asked_at=NOW - 9,
        is_permission=True,
        command=command,
        is_editable=True,
    )


def asking(command: str) -> EngineView:
    """Return a view in which a worker asks to run a command."""
    return changed(csvlite(), ASKS, questions=(asked(command),))


def allowed(console: Console) -> list[str | None]:
    """Return the whole texts that were allowed, as they were read."""
    sent = [one for one in console.port.commands if isinstance(one, Answer)]
    return [one.asked for one in sent if one.answer == "allow"]


@pytest.mark.parametrize("screen", ["go_fleet", "go_inbox", "go_worker"])
@pytest.mark.parametrize(
    ("command", "drawn"),
    [
        (HIDDEN, "ls ␛]0;rm -rf ~;␇"),
        ("ls\r\x1b[2Krm", "ls␍␛[2Krm"),
        ("ls \u202ex\u200b", "ls <202E>x<200B>"),
        (f"ls{' ' * 300}; rm", "ls<300 blanks>; rm"),
        ("ls \\ \n\trm", "ls \\·"),
    ],
)
async def test_what_is_hidden_is_drawn_before_it_is_allowed(screen: str, command: str, drawn: str):
    async with opened(asking(command), options=read()) as console:
        await console.do(screen)
        await console.shows(drawn)
        await console.do("yes")
        assert allowed(console) == [f"Bash: {command}"]


async def test_cleaned_as_other_texts_it_would_be_allowed_unseen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clean, "clean_asked", clean.clean_block)
    async with opened(asking(HIDDEN), options=read()) as console:
        assert "rm -rf" not in console.text
        await console.do("yes")
        assert allowed(console) == [f"Bash: {HIDDEN}"]


async def test_a_line_of_any_length_is_read_to_its_end_before_it_is_allowed():
    command = f"true {'x' * (clean.LONGEST + 100)}; rm -rf ~"
    async with opened(asking(command), options=read()) as console:
        await console.do("yes")
        assert allowed(console) == []
        await console.do("go_inbox", "yes")
        assert allowed(console) == []
        await console.shows("the question continues below")
        pane = console.screen.query_one("#detail", Rows)
        for _ in range(len(command) // 20):
            if pane.read_to >= console.screen.shown.question_rows:
                break
            await console.do("page_down", "yes")
        else:
            pytest.fail("the question has no end")
        assert "rm -rf ~" in console.text
        assert allowed(console) == [f"Bash: {command}"]


async def test_what_was_jumped_over_was_not_read():
    command = "\n".join(f"echo {n}" for n in range(300))
    async with opened(asking(command)) as console:
        await console.do("go_inbox")
        console.screen.query_one("#detail", Rows).go_to(290)
        await console.shows("echo 299")
        await console.do("yes")
        assert allowed(console) == []


@pytest.mark.parametrize("size", [(60, 24), (200, 50)])
async def test_what_was_read_in_other_rows_is_read_anew(size: tuple[int, int]):
    command = "echo " + "word " * 300
    async with opened(asking(command), size=(120, 30)) as console:
        await console.do("go_inbox")
        pane = console.screen.query_one("#detail", Rows)
        await console.do("page_down", "page_down", "page_down")
        before = pane.cells
        await console.pilot.resize_terminal(*size)
        await console.until(lambda: pane.cells != before)
        await console.until(lambda: pane.top == 0)
        assert pane.read_to <= pane.size.height


async def test_another_question_under_the_same_name_is_read_anew():
    async with opened(asking("\n".join(f"echo {n}" for n in range(60)))) as console:
        await console.do("go_inbox", "page_down", "page_down", "page_down", "page_down")
        evil = "\n".join(f"echo {n}" for n in range(59)) + "\nrm -rf ~"
        await console.tell(replace(asking(evil), at=NOW + 1))
        await console.until(lambda: console.screen.query_one("#detail", Rows).top == 0)
        await console.do("yes")
        assert allowed(console) == []


@pytest.mark.parametrize(
    ("idea", "says"),
    [("yes_wide", "it hides characters"), ("edit", "its command hides characters")],
)
@pytest.mark.parametrize("screen", ["go_fleet", "go_inbox", "go_worker"])
async def test_what_hides_something_is_allowed_once_and_as_it_is(screen: str, idea: str, says: str):
    async with opened(asking(HIDDEN)) as console:
        await console.do(screen, idea)
        await console.shows(says)
        assert allowed(console) == []


@pytest.mark.parametrize(
    ("command", "other", "count"),
    [
        ("ls", "ls", 2),
        ("ls", HIDDEN, 1),
        (HIDDEN, HIDDEN, 1),
        ("ls  x", "ls x", 1),
        ("ls\tx", "ls→  x", 1),
    ],
)
async def test_marked_workers_are_allowed_together_only_if_they_ask_the_same(
    command: str, other: str, count: int
):
    view = changed(asking(command), OTHER, questions=(asked(other, "q2"),))
    async with opened(view) as console:
        console.screen.session.worker = ASKS
        console.screen.session.marks = {ASKS, OTHER}
        await console.do("yes")
        await console.shows(f"Allow once for {count} worker")
        await console.press("y")
        assert allowed(console) == [f"Bash: {command}"] * count


@pytest.mark.parametrize("text", ["allow", "allow: ls", "Allow : ls"])
async def test_a_message_allows_nothing(text: str):
    async with opened(asking("ls")) as console:
        await console.do("steer")
        await console.type(f"{text}\n")
        await console.shows("a message cannot allow a request")
        assert not console.port.commands


async def test_a_request_with_tabs_is_edited_as_it_is():
    command = "cat <<-END\n\tx\n\tEND"
    async with opened(asking(command)) as console:
        await console.do("edit")
        assert console.typed == command

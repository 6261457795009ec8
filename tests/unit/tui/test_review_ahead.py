"""An answer that was fetched ahead is shown with its reason, and never comes under the cursor."""

import pytest

from engine.merge import OutsideAnswer, propose
from engine.messages.events import ConflictsDecided, Told
from engine.messages.merging import AssistView
from tests.support.review_consoles import WHO, ReviewPort, io_py
from tests.support.reviewing import IO, Reviewing, decided, port
from tests.support.world import NOW
from tui.words.asked_ahead import answers, stopped

pytestmark = pytest.mark.anyio
MOVED = ConflictsDecided(worker=WHO, attempt=1, open_files=1, open_hunks=2, is_resolved=False)


def answer(given: ReviewPort, *, is_ahead: bool) -> None:
    """Let an answer about the first hunk come while it is on screen."""
    hunk = given.session.open_hunks(IO.encode())[0]
    said = OutsideAnswer("helper", b"both words\n", "keeps the words of both", is_ahead)
    given.offers[hunk.key] = propose(hunk, asked=[said])
    given.tell(Told(run="2f1c", at=NOW, event=MOVED))


async def test_space_does_not_take_what_nobody_asked_for():
    given = port(io_py())
    async with Reviewing(given) as console:
        answer(given, is_ahead=True)
        await console.shows("as the assistant proposes", "keeps the words of both")
        await console.do("mark")
        await console.shows("space refused", "No confident proposal")
        assert given.actions == []
        await console.do("take_first")  # it has a key like any other
        assert decided(given)[0] == "own"


async def test_space_takes_what_the_reviewer_asked_for():
    given = port(io_py())
    async with Reviewing(given) as console:
        answer(given, is_ahead=False)
        await console.shows("as the agent proposes", "RESULT if you press space")
        await console.do("mark")
        assert decided(given)[0] == "own"


async def test_its_cost_and_its_end_are_told_beside_the_files():
    spent = AssistView(
        by="helper", requests=3, answers=2, usd=0.04, spent="all 3 requests are used"
    )
    given = port(io_py(), more={"assist": spent})
    async with Reviewing(given, size=(160, 50)) as console:
        await console.shows("ASKED AHEAD", "helper", "2 answers to 3 questions, $0.04")
        await console.shows("no longer asked: all 3")


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (AssistView(by="x"), "no question yet"),
        (AssistView(by="x", requests=1, answers=1, usd=0.5), "1 answer to 1 question, $0.50"),
        (
            AssistView(by="x", requests=2, answers=2, unpriced=2),
            "2 answers to 2 questions, cost not reported",
        ),
        (
            AssistView(by="x", requests=2, unpriced=1, usd=0.1),
            "0 answers to 2 questions, $0.10, 1 without a price",
        ),
    ],
)
def test_a_cost_that_nobody_reported_is_unknown_and_not_nothing(view: AssistView, said: str):
    assert answers(view) == said
    assert stopped(view) == ""


async def test_in_a_merge_of_ones_own_the_agent_of_the_manifest_is_asked():
    named = AssistView(by="helper")
    async with Reviewing(port(io_py(), more={"doing": "merge"}), size=(140, 36)) as console:
        await console.do("steer")
        await console.shows("s refused", "review: {assist: {agent: NAME}}")
    given = port(io_py(), more={"doing": "merge", "assist": named})
    async with Reviewing(given) as console:
        await console.do("steer")
        await console.shows("ask for a proposal")

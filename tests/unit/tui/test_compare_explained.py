"""A key asks an agent what candidates do differently: asked first, stopped, marked as its words."""

from dataclasses import replace

import pytest

from engine.messages.explaining import Explained, Explainer
from tests.support.consoles import Console
from tests.support.review_consoles import ReviewPort, choosing_view
from tests.support.world import NOW, changed
from tests.unit.tui.test_compare import FIRST, Comparing

pytestmark = pytest.mark.anyio
HELPER = Explainer(by="helper", requests=9, usd=0.48, seconds=580.0)
SAID = "A closes quotes by hand.\n\nA: a quote at the end of a file\nC: none that I see"
ANSWER = Explained(by="helper", text=SAID, usd=0.02, seconds=12.0, read=4, places=5)


def _port(explainer: Explainer | None = HELPER) -> ReviewPort:
    port = ReviewPort(choosing_view())
    port.explainer, port.explained = explainer, ANSWER
    return port


async def _asked(console: Console) -> None:
    await console.shows("214 passed")
    await console.do("explain")
    await console.shows("Ask helper how they differ? At most $0.48, 9:40; 9 questions left.")
    await console.do("explain")
    await console.shows("asking helper", "gy stops it")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_it_is_asked_first_and_its_words_are_marked(size: tuple[int, int]):
    port = _port()
    async with Comparing(port, size=size) as console:
        await console.shows("214 passed")
        await console.do("explain", "leave")
        assert port.explanations == []
        await _asked(console)
        await console.do("down")  # the keys go on meanwhile
        port.is_explained.set()
        await console.shows("AN AGENT'S WORDS", "helper, 0:12, $0.02", "decide nothing")
        await console.shows("A closes quotes by hand.", "C: none that I see", "A is worker_1")
        await console.shows("It could read 4 of 5 places")
        assert port.explanations == [False]
        await console.do("leave")
        await console.shows("214 passed")
        await console.do("explain")  # what was paid for is shown again, and not asked again
        await console.shows("A closes quotes by hand.")
        assert port.explanations == [False]
        await console.do("explain")
        await console.shows("Ask helper how they differ?")


async def test_it_is_stopped_by_the_same_key():
    port = _port()
    async with Comparing(port) as console:
        await _asked(console)
        await console.do("explain")
        await console.shows("the question was stopped; nothing was answered")
        assert port.explanations == [False, True]


async def test_words_about_an_earlier_change_say_so():
    port = _port()
    async with Comparing(port) as console:
        await _asked(console)
        port.is_explained.set()
        await console.shows("A closes quotes by hand.")
        port.tell(view=changed(replace(port.shown, at=NOW + 1), FIRST, attempt=2))
        await console.shows("A candidate has changed since.")


async def test_an_answer_that_comes_on_another_screen_is_said_there():
    port = _port()
    async with Comparing(port) as console:
        await _asked(console)
        await console.do("go_fleet")
        port.is_explained.set()
        await console.shows("helper explained the candidates", "gy in Compare shows it")
        await console.do("go_compare", "explain")
        await console.shows("A closes quotes by hand.")


@pytest.mark.parametrize(
    ("explainer", "reason"),
    [
        (None, "review: {assist: {agent: NAME}}"),
        (replace(HELPER, spent="all 10 requests are used"), "all 10 requests are used"),
    ],
)
async def test_the_key_says_why_nobody_can_be_asked(explainer: Explainer | None, reason: str):
    port = _port(explainer)
    async with Comparing(port, size=(160, 40)) as console:
        await console.shows("214 passed")
        await console.do("explain")
        await console.shows("gy refused", reason)
        assert port.explanations == []


async def test_what_went_wrong_is_said():
    port = _port()
    async with Comparing(port) as console:
        await _asked(console)
        port.problem = "helper: it ended with exit code 1"
        port.is_explained.set()
        await console.shows("gy refused", "helper: it ended with exit code 1")

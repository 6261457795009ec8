"""Keys are offered where they work: one that would refuse stands on no card and in no footer."""

from dataclasses import replace
from itertools import product

import pytest

from engine.messages.asked import Question
from engine.messages.results import Badge, Change, EngineView
from engine.phases import Phase
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.kit.cards import hints_of
from tui.words.doable import why_not
from tui.words.standing import step_of

pytestmark = pytest.mark.anyio
REVIEW, FAILED = "port/worker_1", "port/worker_2"
_APPROVED, _LOGIN = frozenset({Badge.APPROVED}), frozenset({Badge.NEEDS_LOGIN})
_ASKED = (Question(id="q1", text="May I?", asked_at=NOW, is_permission=True),)
_CHOICE = (Question(id="q2", text="Which?", asked_at=NOW, choices=("one", "two")),)


def _due(view: EngineView) -> EngineView:
    run = view.runs[0]
    steps = tuple(replace(step, is_choice_due=step.name == "port") for step in run.steps)
    return replace(view, runs=(replace(run, steps=steps),))


_STATES = [
    {"phase": phase, "badges": badges, "questions": asked, "change": change}
    for phase, badges, asked, change in product(
        Phase,
        (frozenset[Badge](), _APPROVED, _LOGIN),
        ((), _ASKED, _CHOICE),
        (Change(head="b1", tree="b1b1b1b1", files=3), None),
    )
]


def _offered(console: Console) -> list[str]:
    """Return the ideas that the card of the worker under the cursor offers."""
    here, step = console.app.session.worker_view, console.app.session.step_view
    assert here is not None
    assert step is not None
    return [hint.idea for hint in hints_of(here, step, console.app.session.scene())]


async def _refused(console: Console, view: EngineView) -> dict[str, str]:
    """Return the ideas on the card that the screen would refuse, and why."""
    port = console.port
    port.shown = replace(view, at=port.shown.at + 1)
    console.app.session.bridge.view = port.shown
    console.app.session.look()
    return {idea: why for idea in _offered(console) if (why := console.screen.refusal(idea))}


@pytest.mark.parametrize("is_opened", [True, False])
async def test_no_card_offers_a_key_that_refuses(*, is_opened: bool):
    async with opened(port=FakePort(csvlite())) as console:
        session = console.app.session
        session.worker = REVIEW
        if is_opened:
            session.opened_diffs.add(("2f1c", REVIEW, 1))
        wrong = {}
        for state in _STATES:
            view = changed(csvlite(), REVIEW, **state)
            for seen in (view, _due(view), changed(view, REVIEW, in_the_way=("a.py",))):
                if refused := await _refused(console, seen):
                    wrong[str(state)] = refused
        assert wrong == {}


async def test_a_card_offers_the_diff_first_then_to_approve_it_then_to_land_it():
    async with opened(port=FakePort(csvlite())) as console:
        console.app.session.worker = REVIEW
        assert _offered(console) == ["diff"]
        console.app.session.opened_diffs.add(("2f1c", REVIEW, 1))
        assert _offered(console) == ["diff", "yes"]
        console.port.shown = changed(csvlite(at=NOW + 1), REVIEW, badges=_APPROVED)
        await console.tell(console.port.shown)
        assert _offered(console) == ["land", "diff"]


@pytest.mark.parametrize("worker", [REVIEW, FAILED, "implement/worker_2"])
@pytest.mark.parametrize("screen", ["go_fleet", "go_inbox"])
async def test_a_console_that_only_watches_offers_nothing_that_acts(worker: str, screen: str):
    async with opened(port=FakePort(csvlite()), read_only=True) as console:
        await console.do(screen)
        console.app.session.worker = worker
        await console.press("escape")
        assert {idea for idea in _offered(console) if console.screen.refusal(idea)} == set()
        assert "a approve" not in console.text
        assert "allow once" not in console.text
        assert "it keeps waiting" not in console.text


@pytest.mark.parametrize("phase", list(Phase))
def test_a_refusal_says_in_english_where_a_worker_stands(phase: Phase):
    run = changed(csvlite(), REVIEW, phase=phase).runs[0]
    one = next(one for one in run.workers if one.worker == REVIEW)
    said = {why_not(idea, one, step_of(run, one), is_opened=True) for idea in ("retry", "steer")}
    assert not any("_" in why or "it is failed" in why or "it is landed" in why for why in said)

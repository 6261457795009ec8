"""An agent is asked ahead about conflicts: within its budget, as proposals, never as decisions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.api import Engine, Run
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.merging import AssistView, ConflictView, DecideConflict, ReadConflicts
from engine.messages.questions import ReadRun
from engine.phases import Phase
from engine.review import review
from tests.integration.test_merging_evidence import listening, told
from tests.support.engine_runs import scripted
from tests.support.merging_runs import MergingPlace, changed, land, reviewed

pytestmark = pytest.mark.anyio
WHO, HELPER = "s2/worker_1", "helper"
MINE, THEIRS = (changed(9, f"{who} 9", changed(3, who)) for who in ("mine", "theirs"))
"""Two hunks, for which nothing likely is known."""
ANSWER = "WHY: the words of both\n<<<ANSWER\nboth words\nANSWER>>>"
COST = {"usage": {"usd": 0.02, "input_tokens": 100, "output_tokens": 10}}


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def clashing(
    engine: Engine,
    place: MergingPlace,
    *steps: Mapping[str, Any],
    sides: tuple[str, str] = (MINE, THEIRS),
    helper: Mapping[str, Any] | None = None,
    **budget: float,
) -> Run:
    """A run whose second worker conflicts, and an agent of these steps that is asked ahead."""
    manifest = place.workers(*sides)
    manifest["agents"][HELPER] = helper or scripted(*steps)
    manifest["review"] = {"assist": {"agent": HELPER, "budget": budget}}
    run = await reviewed(engine, manifest)
    assert await land(engine, run, "s1/worker_1") is Phase.LANDED
    return run


async def seen(
    engine: Engine, run: Run, until: Callable[[ConflictView], object], *, lands: bool = True
) -> ConflictView:
    """The conflicts, once they are so."""
    async with listening(engine, run) as stream:
        if lands:
            assert await land(engine, run, WHO) is Phase.CONFLICTED
        while not until(view := await engine.port.ask(ReadConflicts(run.id, WHO))):
            await told(stream, ev.ConflictsDecided, WHO)
    return view


def assist(view: ConflictView) -> AssistView:
    assert view.assist is not None
    return view.assist


def is_quiet(view: ConflictView) -> bool:
    return not any(hunk.asked for hunk in view.file("code").hunks)


def offered(view: ConflictView) -> list[list[tuple[str, str, bool]]]:
    """Return the answers that were fetched ahead, hunk by hunk."""
    hunks = view.file("code").hunks
    return [
        [(one.text, one.reason, one.likely) for one in hunk.proposals if one.rule == "assisted"]
        for hunk in hunks
    ]


async def test_answers_are_proposals_with_a_reason_and_a_price_and_decide_nothing(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await clashing(engine, place, COST, {"result": ANSWER})
        view = await seen(engine, run, lambda view: assist(view).answers == 2)
        reason = "proposed by helper: the words of both"
        assert offered(view) == [[("both words\n", reason, False)]] * 2
        assert [hunk.choice for hunk in view.file("code").hunks] == [None, None]
        one = assist(view)
        assert (one.by, one.requests, round(one.usd, 6), one.unpriced) == (HELPER, 2, 0.04, 0)
        assert (view.decisions, one.spent) == (0, "")
    async with place.engine() as engine:  # kept with the merge, and not asked again
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert offered(view) == [[("both words\n", reason, False)]] * 2
        assert assist(view).requests == 2
    state = anyio.Path(place.environment["PLAIT_STATE_HOME"])
    assert [found async for found in state.rglob("ask-*")] == []
    assert place.text() == MINE


@pytest.mark.parametrize(
    ("budget", "spent"),
    [({"requests": 1}, "all 1 requests are used"), ({"usd": 0.01}, "$0.01 is spent")],
)
async def test_it_stops_where_its_budget_is_used_up(
    place: MergingPlace, budget: dict[str, float], spent: str
):
    async with place.engine() as engine:
        run = await clashing(engine, place, COST, {"result": ANSWER}, **budget)
        view = await seen(engine, run, lambda view: assist(view).spent)
        view = await seen(engine, run, is_quiet, lands=False)
        assert [bool(found) for found in offered(view)] == [True, False]
        assert (assist(view).requests, assist(view).spent) == (1, spent)
        assert view.file("code").hunks[1].asked == ""


async def test_what_no_agent_answers_says_why_and_costs_what_it_cost(place: MergingPlace):
    async with place.engine() as engine:
        run = await clashing(engine, place, COST, {"fail": "I cannot tell"})
        view = await seen(engine, run, lambda view: assist(view).usd > 0.03)
        assert offered(view) == [[], []]
        problems = [hunk.ask_problem for hunk in view.file("code").hunks]
        assert all("helper: I cannot tell" in problem for problem in problems)
        assert (assist(view).requests, assist(view).answers) == (2, 0)


async def test_a_question_ends_once_a_human_has_decided_all(place: MergingPlace):
    async with place.engine() as engine:
        run = await clashing(engine, place, {"shell": place.waits_at("go")}, {"result": ANSWER})
        await seen(engine, run, lambda view: view.file("code").hunks[0].asked)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="target")))
        view = await seen(engine, run, is_quiet, lands=False)
        assert (assist(view).requests, assist(view).answers) == (1, 0)
        assert view.file("code").hunks[0].ask_problem == ""
        await engine.port.ask(DecideConflict(run.id, WHO, c.UndoChoice()))
    assert not await place.survivors()


async def test_a_hunk_with_a_likely_proposal_is_not_asked_about(place: MergingPlace):
    sides = (changed(9, "mine", changed(3, "line 30")), changed(9, "theirs", changed(3, "line 31")))
    async with place.engine() as engine:
        run = await clashing(engine, place, COST, {"result": ANSWER}, sides=sides)
        view = await seen(engine, run, lambda view: assist(view).answers)
        first, _ = view.file("code").hunks
        assert first.proposals[0].likely
        assert [bool(found) for found in offered(view)] == [False, True]
        assert assist(view).requests == 1


async def test_looking_for_a_question_goes_on_where_its_time_was_over(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(review, "_THINKS_S", -1.0)  # one hunk at each look
    sides = (changed(9, "mine", changed(3, "line 30")), changed(9, "theirs", changed(3, "line 31")))
    async with place.engine() as engine:
        run = await clashing(engine, place, COST, {"result": ANSWER}, sides=sides)
        view = await seen(engine, run, lambda view: assist(view).answers)
        assert [bool(found) for found in offered(view)] == [False, True]
        assert assist(view).requests == 1


async def test_a_days_budget_holds_for_the_helper_too_and_counts_what_it_uses(place: MergingPlace):
    helper = {**scripted(COST, {"result": ANSWER}), "day_budget_usd": 0.01}
    async with place.engine() as engine:
        run = await clashing(engine, place, helper=helper)
        view = await seen(engine, run, lambda view: assist(view).answers)
        view = await seen(engine, run, is_quiet, lands=False)
        assert (assist(view).requests, assist(view).answers, assist(view).spent) == (1, 1, "")
        logins = (await engine.port.ask(ReadRun(run.id))).logins
        (own,) = [one for one in logins if HELPER in one.agents]
        assert own.use.usd == pytest.approx(0.02)
        assert "the day's budget of helper is spent" in own.reason
        ask = c.AskAgent(path="code", hunk=1, agent=HELPER)
        await engine.port.ask(DecideConflict(run.id, WHO, ask))
        view = await seen(
            engine, run, lambda view: view.file("code").hunks[1].ask_problem, lands=False
        )
        assert "the day's budget of helper is spent" in view.file("code").hunks[1].ask_problem


async def test_a_helper_whose_vendor_refuses_it_is_not_asked_on(place: MergingPlace):
    helper = scripted({"rate_limit": {"delay_s": 3600.0, "ends": True}})
    async with place.engine() as engine:
        run = await clashing(engine, place, helper=helper)
        view = await seen(engine, run, lambda view: view.file("code").hunks[0].ask_problem)
        assert (assist(view).requests, assist(view).answers) == (1, 0)
        logins = (await engine.port.ask(ReadRun(run.id))).logins
        (own,) = [one for one in logins if HELPER in one.agents]
        assert own.held_until is not None

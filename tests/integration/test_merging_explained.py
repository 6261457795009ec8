"""An agent explains candidates: within its budget, until it is stopped, and decides nothing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.api import Engine, Run, attach
from engine.errors import EngineError
from engine.messages.explaining import ExplainCandidates, Explained
from engine.messages.merging import CandidateTable, ListCandidates
from engine.phases import Phase
from engine.work.explaining import prompt_of
from tests.support.engine_runs import scripted
from tests.support.merging_runs import MergingPlace, changed

pytestmark = pytest.mark.anyio
HELPER = "helper"
SAID = "A says two, B says zwei.\n\nA: none\nB: nobody here reads German"
COST = {"usage": {"usd": 0.02, "input_tokens": 100, "output_tokens": 10}}


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def picked(
    engine: Engine, place: MergingPlace, *steps: Mapping[str, Any], **budget: float
) -> Run:
    """Two candidates of a step; with steps, an agent that explains them."""
    works = {
        "1": [{"write": {"path": "code", "text": changed(2, "two")}}],
        "2": [{"write": {"path": "code", "text": changed(2, "zwei")}}],
    }
    step = {
        "name": "pick",
        "agent": scripted(workers=works),
        "concurrency": 2,
        "policy": "settled",
        "check": "grep -q two code || exit 0",
    }
    manifest = place.manifest(step, isolation_strategy="worktree")
    if steps:
        manifest["agents"][HELPER] = scripted(*steps)
        manifest["review"] = {"assist": {"agent": HELPER, "budget": budget}}
    run = await engine.start(manifest)
    await run.wait()
    return run


async def table_of(engine: Engine, run: Run) -> CandidateTable:
    return await engine.port.ask(ListCandidates(run.id, "pick"))


async def test_words_come_with_their_price_and_decide_nothing(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place, COST, {"result": SAID}, usd=0.5, minutes=2)
        before = await table_of(engine, run)
        assert before.explainer is not None
        offered = (before.explainer.by, before.explainer.requests, before.explainer.usd)
        assert offered == (HELPER, 10, 0.5)
        async with attach(place.project, environment=place.environment) as port:
            found = await port.ask(ExplainCandidates(run.id, "pick"))
        assert (found.by, found.text, found.usd) == (HELPER, SAID, 0.02)
        assert (found.read, found.places) == (1, 1)
        after = await table_of(engine, run)
        assert after.explainer is not None
        assert (after.explainer.requests, after.explainer.usd) == (9, 0.48)
        assert replace(after, explainer=None) == replace(before, explainer=None)
        assert {row.phase for row in after.rows} == {Phase.REVIEWING}
    state = anyio.Path(place.environment["PLAIT_STATE_HOME"])
    assert [found async for found in state.rglob("ask-*")] == []


async def test_nobody_is_asked_where_the_manifest_names_nobody(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        assert (await table_of(engine, run)).explainer is None
        with pytest.raises(EngineError, match="names no agent to ask") as refused:
            await engine.port.ask(ExplainCandidates(run.id, "pick"))
        assert "review: {assist: {agent: NAME}}" in refused.value.hint


@pytest.mark.parametrize(
    ("budget", "spent"),
    [({"requests": 1}, "all 1 requests are used"), ({"usd": 0.01}, r"\$0.01 is spent")],
)
async def test_it_ends_with_its_budget(place: MergingPlace, budget: dict[str, float], spent: str):
    async with place.engine() as engine:
        run = await picked(engine, place, COST, {"result": SAID}, **budget)
        await engine.port.ask(ExplainCandidates(run.id, "pick"))
        with pytest.raises(EngineError, match=f"plait no longer asks helper: {spent}"):
            await engine.port.ask(ExplainCandidates(run.id, "pick"))


async def test_what_nobody_answers_says_why_and_costs_what_it_cost(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place, COST, {"fail": "I cannot tell"}, usd=0.5)
        with pytest.raises(EngineError, match="helper: I cannot tell"):
            await engine.port.ask(ExplainCandidates(run.id, "pick"))
        left = (await table_of(engine, run)).explainer
        assert left is not None
        assert (left.requests, left.usd) == (9, 0.48)


async def test_a_question_is_stopped_and_leaves_no_process(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place, {"shell": place.waits_at("go")}, {"result": SAID})
        found: list[Explained] = []

        async def ask() -> None:
            found.append(await engine.port.ask(ExplainCandidates(run.id, "pick")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            while not (left := (await table_of(engine, run)).explainer) or not left.is_asking:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(EngineError, match="helper has been asked already"):
                await engine.port.ask(ExplainCandidates(run.id, "pick"))
            await engine.port.ask(ExplainCandidates(run.id, "pick", stops=True))
        assert [one.is_stopped for one in found] == [True]
    assert not await place.survivors()


async def test_the_prompt_has_every_place_that_there_is_room_for(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        table = await table_of(engine, run)
    prompt, read, places = prompt_of(table, "count to three")
    assert (read, places) == (1, 1)
    for wanted in ("count to three", "--- code:2", "line 2", "A:\ntwo", "B:\nzwei", "never"):
        assert wanted in prompt
    assert "its check passed" in prompt
    long = [
        replace(hunk, spot=n, new=("x" * 500 + "\n",)) for hunk in table.hunks for n in range(99)
    ]
    prompt, read, places = prompt_of(replace(table, hunks=tuple(long)), "")
    assert 0 < read < places == 198
    assert f"({places - read} more places are left out" in prompt
    assert len(prompt.encode()) < 70_000

"""A worker's program in its sandbox: two side by side, and one that crashes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api import Engine
from engine.errors import WorkspaceError
from engine.messages.questions import ReadServed, StopServing
from engine.messages.served import ServedState
from tests.support import served as s
from tests.support.merging_runs import MergingPlace, reviewed
from tests.support.needs import need

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@pytest.fixture
async def engine(place: MergingPlace) -> AsyncIterator[Engine]:
    async with place.engine() as engine:
        yield engine


@pytest.mark.parametrize("network", ["open", "none"])
async def test_two_candidates_are_looked_at_side_by_side(
    place: MergingPlace, engine: Engine, network: str
):
    if network == "none":
        need("bubblewrap")
    run = await reviewed(engine, s.plan(place, s.PYTHON, network=network, workers=2))
    one = await s.ready(engine, run)
    two = await s.ready(engine, run, "site/worker_2")
    assert one.port != two.port
    assert await s.page(one.url) == "made by 1\n"
    assert await s.page(two.url) == "made by 2\n"
    assert (await s.now(engine, run, "site/worker_2")).url == two.url
    assert (await s.begin(engine, run)).port == one.port, "it is served already"
    log = await engine.ask(ReadServed(run.id, "site/worker_1"))
    assert any("GET /" in line for line in log.lines)
    assert await engine.ask(StopServing(run.id, "site/worker_1"))
    assert not s.is_reached(one.port)
    assert s.is_reached(two.port)
    assert not await engine.ask(StopServing(run.id, "site/worker_1")), "it was ended already"
    assert (await engine.view(run.id)).worker("site/worker_1").served is None


async def test_one_that_crashes_says_how_it_ended_and_can_be_started_again(
    place: MergingPlace, engine: Engine
):
    run = await reviewed(engine, s.plan(place, s.CRASHES))
    for _ in range(2):
        await s.begin(engine, run)
        found = await s.wait_served(engine, run, ServedState.ENDED)
        assert found.note == "ended with exit code 3"
        assert found.tail == ("going to crash",)
    assert not s.left_over(place)


async def test_without_a_program_nothing_is_served(place: MergingPlace, engine: Engine):
    run = await reviewed(engine, place.workers("text\n"))
    with pytest.raises(WorkspaceError, match="does not name a program"):
        await s.begin(engine, run, "s1/worker_1")

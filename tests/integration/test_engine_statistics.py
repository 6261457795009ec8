"""An engine adds up attempts for its consoles: of one place, of one's own, of a team."""

from pathlib import Path

import pytest
from anyio import to_thread

from engine.api import EnginePort, attach
from engine.errors import EngineError
from engine.messages.results import Outcome
from engine.messages.roles import Role
from engine.messages.statistics import Axis, CountAttempts, Reach
from tests.support.engine_runs import Place, manifest
from tests.support.postgres import started

pytestmark = pytest.mark.anyio

FAILS = {"name": "b", "run": "false"}
WORKS = {"name": "a", "run": "true", "concurrency": 3}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Place, Place]:
    """Two folders of one name, of one user."""
    for name in ("here", "other"):
        (tmp_path / name).mkdir()
    here, other = Place(tmp_path / "here"), Place(tmp_path / "other")
    other.environment = here.environment
    return here, other


async def test_attempts_are_counted_by_what_is_asked_also_over_the_socket(
    places: tuple[Place, Place],
):
    here, other = places
    async with other.engine() as engine:
        await (await engine.start(manifest(FAILS))).wait()
        [failed] = await engine.ask(CountAttempts())  # which brings the history level
        assert (failed.attempts, failed.success) == (1, 0)
    async with here.engine() as engine:
        assert await engine.ask(CountAttempts()) == ()
        report = await (await engine.start(manifest(WORKS))).wait()
        assert report.outcome is Outcome.SUCCESS
        async with attach(here.project, environment=here.environment, role=Role.WATCHER) as far:
            for port in (engine.port, far):
                await assert_counted(port)


async def assert_counted(port: EnginePort) -> None:
    [figures] = await port.ask(CountAttempts(by=Axis.STEP))
    assert (figures.name, figures.attempts, figures.success) == ("a", 3, 3)
    both = await port.ask(CountAttempts(reach=Reach.OWN, by=Axis.STEP))
    assert {one.name: one.attempts for one in both} == {"a": 3, "b": 1}
    only = CountAttempts(reach=Reach.OWN, by=Axis.WEEK, of=Axis.STEP, name="b")
    [week] = await port.ask(only)
    assert (week.attempts, week.success) == (1, 0)
    assert await port.ask(CountAttempts(since=4e9)) == ()
    with pytest.raises(EngineError, match="PLAIT_DATABASE_URL is not set"):
        await port.ask(CountAttempts(reach=Reach.TEAM))


@pytest.mark.needs("postgresql")
async def test_a_team_is_counted_in_its_own_history(places: tuple[Place, Place]):
    place = places[0]
    with started() as server:
        place.environment["PLAIT_DATABASE_URL"] = await to_thread.run_sync(server.database)
        async with place.engine() as engine:
            with pytest.raises(EngineError, match="before this plait's") as told:
                await engine.ask(CountAttempts(reach=Reach.TEAM))
            assert "plait db up" in told.value.hint
            server.stop()
            with pytest.raises(EngineError, match=r"cannot be used.*No such file") as told:
                await engine.ask(CountAttempts(reach=Reach.TEAM))
            assert "?" not in str(told.value)

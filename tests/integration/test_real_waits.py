"""Attempts that end by nobody's fault resume where they stopped, in a real engine."""

from typing import Any

import anyio
import pytest

from engine.clock import SystemClock
from engine.core import lifecycle
from engine.messages import commands as c
from engine.messages.events import Steered
from engine.messages.results import Outcome
from engine.phases import Phase, StopCause
from tests.support.engine_runs import Place, scripted, wait_view, wait_worker
from tests.support.turned_clock import TurnedClock

pytestmark = pytest.mark.anyio

DONE = [{"result": "done"}]
HOUR_S = 3600.0


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place(tmp_path)


def worker(report: Any, step: str = "work", number: int = 1) -> Any:
    return report.steps[step].worker_results[number - 1]


async def test_a_limit_with_a_known_end_is_waited_for_and_holds_all_of_that_login(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TurnedClock(monkeypatch)
    until = clock.now() + HOUR_S
    limited = [{"rate_limit": {"until": until, "ends": True}}]
    agent = scripted(attempts={"1": limited, "2": DONE})
    cells = {"matrix": {"items": ["a", "b", "c"]}}
    other = scripted({"result": "done"})
    manifest = place.manifest(
        {"name": "work", "agent": agent, "merge": "none", "strategy": cells},
        {"name": "elsewhere", "agent": other, "merge": "none"},
        max_concurrent_workers=1,
    )
    async with place.engine() as engine:
        run = await engine.start(manifest)
        waiting = await wait_worker(
            engine, run, "work/worker_1", lambda w: w.phase is Phase.BACKING_OFF
        )
        assert waiting.retry_at == pytest.approx(until)
        view = await wait_view(
            engine, run, lambda view: view.worker("elsewhere/worker_1").phase is Phase.FINISHED
        )
        held = [view.worker(f"work/worker_{n}") for n in (2, 3)]
        assert [(w.phase, w.attempt) for w in held] == [(Phase.BACKING_OFF, 0)] * 2
        clock.turn(HOUR_S)
        report = await run.wait()
    assert report.outcome is Outcome.SUCCESS
    assert worker(report).attempts == 2


@pytest.mark.parametrize(("has_slept", "attempts"), [(True, 2), (False, 1)])
async def test_a_network_lost_in_sleep_costs_no_attempt(
    has_slept: bool,  # noqa: FBT001  pytest names it
    attempts: int,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SystemClock, "has_just_woken", lambda _: has_slept)
    monkeypatch.setattr(lifecycle, "_UNTIL_NETWORK_S", 0.05)
    agent = scripted(attempts={"1": [{"fail": "fetch failed: ECONNRESET"}], "2": DONE})
    manifest = place.manifest({"name": "work", "agent": agent, "merge": "none"})
    async with place.engine() as engine:
        report = await (await engine.start(manifest)).wait()
    assert worker(report).attempts == attempts
    assert (report.outcome is Outcome.SUCCESS) is has_slept


async def test_a_cost_that_no_agent_tells_stays_unknown(place: Place) -> None:
    manifest = place.manifest(
        {"name": "work", "agent": scripted({"result": "done"}), "merge": "none"},
    )
    async with place.engine() as engine:
        report = await (await engine.start(manifest)).wait()
    assert worker(report).usage.usd is None
    assert worker(report).usage.input_tokens is None


async def test_a_budget_is_the_cause_also_if_the_agent_itself_noticed(place: Place) -> None:
    agent = scripted({"usage": {"usd": 2.0}}, {"fail": "that is more than I may spend"})
    step = {"name": "work", "agent": agent, "merge": "none", "retry": {"attempts": 3}}
    manifest = place.manifest(step, limits={"budget_usd": 1.0})
    async with place.engine() as engine:
        result = worker(await (await engine.start(manifest)).wait())
    assert (result.cause, result.attempts) == (StopCause.BUDGET, 1)
    assert result.limit_hit is not None
    assert (result.limit_hit.allowed, result.limit_hit.seen) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("agent", "hears", "note"),
    [
        (scripted({"sleep": 30}), "now", "on its way"),
        ({"adapter": "command", "argv": ["sleep", "60"]}, "no", "reads nothing while it works"),
        (
            {"adapter": "command", "argv": ["sleep", "60"], "events": True},
            "now",
            "on its way",
        ),
    ],
)
async def test_who_steers_is_told_first_when_it_is_heard_and_then_whether(
    agent: dict[str, Any], hears: str, note: str, place: Place
) -> None:
    manifest = place.manifest({"name": "work", "agent": agent, "merge": "none"})
    async with place.engine() as engine:
        run = await engine.start(manifest)
        await wait_worker(engine, run, "work/worker_1", lambda w: w.hears == hears)
        said = await engine.port.command(c.Steer(worker="work/worker_1", text="Use spaces."))
        assert isinstance(said, c.Accepted)
        assert note in said.note
        fates = []
        with anyio.fail_after(30):
            async for told in engine.port.events(run=run.id):
                if isinstance(told.event, Steered):
                    fates.append(str(told.event.delivery))
                if len(fates) == 2:
                    break
        assert fates == ["queued", "refused" if hears == "no" else "delivered"]

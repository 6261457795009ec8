"""Refusals and a day's budget hold for a login over all runs and engines of its user."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engine.agents.logins import identity_of_login
from engine.ids import AttemptId, RunId, WorkerId
from engine.messages import commands as c
from engine.messages.results import LoginUse, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice
from engine.testing.manual_clock import ManualClock
from engine.work.ledger import Ledger, logins_of
from tests.support.engine_runs import Place, scripted, wait_view, wait_worker
from tests.support.turned_clock import TurnedClock

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 3, 4, 12).astimezone().timestamp()
HOUR_S = 3600.0
WAITS = {Phase.BACKING_OFF, Phase.PREPARING, Phase.RUNNING}
CLAUDE = AgentChoice(name="fast", adapter="claude", day_budget_usd=2.0)
MINE = AgentChoice(name="mine", adapter="command", day_budget_tokens=100)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ledger(tmp_path: Path, *, at: float = NOON, project: str = "a", **environ: str) -> Ledger:
    """That of another engine each time it is called."""
    found = {"HOME": str(tmp_path), **environ}
    return Ledger(found, folder=tmp_path / "l", place=tmp_path / project, clock=ManualClock(at))


def attempt(number: int) -> AttemptId:
    return AttemptId(RunId("r"), WorkerId("work", number), 1)


async def shared(*ledgers: Ledger) -> None:
    for one in (*ledgers, *ledgers):
        await one.share([CLAUDE, MINE])


async def test_what_engines_count_is_one_sum_and_the_unknown_stays_unknown(tmp_path: Path) -> None:
    one, other = ledger(tmp_path), ledger(tmp_path, project="b")
    await shared(one, other)
    one.spend(CLAUDE, attempt(1), at=NOON, usd=None, tokens=None)
    one.spend(CLAUDE, attempt(2), at=NOON, usd=0.5, tokens=10)
    other.spend(CLAUDE, attempt(2), at=NOON, usd=0.25, tokens=20)
    other.spend(CLAUDE, attempt(2), at=NOON, usd=0.75, tokens=30)
    await shared(one, other)
    wanted = LoginUse(usd=1.25, tokens=40, attempts=3, without_usd=1, without_tokens=1)
    assert one.use(CLAUDE) == other.use(CLAUDE) == wanted
    assert one.hold(CLAUDE) is None
    assert other.spend(CLAUDE, attempt(3), at=NOON, usd=0.75, tokens=None) is not None
    await shared(one, other)
    held = one.hold(CLAUDE)
    assert held is not None
    assert (held.cause, held.reason) == (
        StopCause.BUDGET,
        "the day's budget of fast is spent: 2 of 2 USD a day",
    )
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(held.until)) == "2026-03-05 00:00"


async def test_a_login_of_another_user_or_key_is_another_one(tmp_path: Path) -> None:
    one, other = ledger(tmp_path), ledger(tmp_path, ANTHROPIC_API_KEY="k")
    await shared(one, other)
    one.refuse(CLAUDE, NOON + 60)
    one.refuse(MINE, NOON + 60)
    await shared(one, other)
    assert other.hold(CLAUDE) is None
    here, elsewhere = ledger(tmp_path), ledger(tmp_path, project="b")
    await shared(here, elsewhere)
    assert [found.hold(CLAUDE) is not None for found in (here, elsewhere)] == [True, True]
    assert [found.hold(MINE) is not None for found in (here, elsewhere)] == [True, False]
    over_acp = AgentChoice(name="x", adapter="claude-acp")
    assert identity_of_login(over_acp, {}) == identity_of_login(CLAUDE, {})


async def test_a_recording_that_is_read_again_counts_once_also_after_midnight(
    tmp_path: Path,
) -> None:
    def read(into: Ledger, until: int) -> None:
        for n, usd in enumerate((0.5, 1.0, 1.5), 1):
            if n <= until:
                into.spend(CLAUDE, attempt(1), at=NOON + n * 6 * HOUR_S, usd=usd, tokens=n)

    before = ledger(tmp_path)
    await shared(before)
    read(before, 1)
    await shared(before)
    after = ledger(tmp_path, at=NOON + 19 * HOUR_S)
    await shared(after)
    for _ in range(2):
        read(after, 3)
        await shared(after)
    # At 18 o'clock 0.5, at midnight 1.0, at 6 o'clock 1.5: two thirds are of the new day.
    assert after.use(CLAUDE) == LoginUse(usd=1.0, tokens=2, attempts=1)


async def test_files_of_long_ago_and_damaged_lines_are_left_aside(tmp_path: Path) -> None:
    one = ledger(tmp_path)
    await shared(one)
    one.spend(CLAUDE, attempt(1), at=NOON, usd=1.0, tokens=1)
    await shared(one)
    (file,) = (tmp_path / "l").rglob("*.ndjson")
    old = file.with_name("2026-01-31.ndjson")
    old.touch()
    with file.open("ab") as out:
        out.write(b'{"attempt"\n[1]\nnull\n{"refused_until": "soon"}\n{"attempt": 1, "x": 2}\n')
    one.spend(CLAUDE, attempt(1), at=NOON, usd=1.5, tokens=1)
    await shared(one)
    assert (one.use(CLAUDE).usd, one.hold(CLAUDE)) == (1.5, None)
    assert not old.exists()
    assert file.exists()


def test_of_two_budgets_for_one_login_the_least_counts() -> None:
    strict = AgentChoice(name="slow", adapter="claude", day_budget_usd=1.0, day_budget_tokens=5)
    (found,) = logins_of([CLAUDE, strict, AgentChoice(name="claude", adapter="claude")]).values()
    assert (found.day_budget_usd, found.day_budget_tokens) == (1.0, 5)


async def test_a_limit_that_one_run_meets_holds_the_workers_of_another(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TurnedClock(monkeypatch)
    until = clock.now() + HOUR_S
    limited = [{"rate_limit": {"until": until, "ends": True}}]
    agent = scripted(attempts={"1": limited, "2": [{"result": "done"}]})
    done = {"adapter": "scripted", "script": {"steps": [{"result": "done"}]}}
    first = place.manifest({"name": "work", "agent": agent, "merge": "none"})
    second = place.manifest({"name": "work", "agent": done, "merge": "none"})
    other = place.manifest({"name": "elsewhere", "agent": done, "merge": "none"})
    async with place.engine() as engine:
        one = await engine.start(first)
        await wait_worker(engine, one, "work/worker_1", lambda w: w.phase is Phase.BACKING_OFF)
        two = await engine.start(second)
        held = await wait_worker(engine, two, "work/worker_1", lambda w: w.phase in WAITS)
        assert (held.phase, held.attempt) == (Phase.BACKING_OFF, 0)
        assert held.retry_at == pytest.approx(until)
        assert (await (await engine.start(other)).wait()).outcome is Outcome.SUCCESS
        for run in (one, two):
            (worker,) = (await engine.view(run.id)).workers
            assert worker.phase is Phase.BACKING_OFF
        clock.turn(HOUR_S)
        for run in (one, two):
            assert (await run.wait()).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("said", [{"until": 1e15}, {"delay_s": 10**12}])
async def test_no_agent_holds_a_login_for_longer_than_a_month(place: Place, said: Any) -> None:
    limited = [{"rate_limit": {**said, "ends": True}}]
    agent = scripted(attempts={"1": limited, "2": [{"result": "done"}]})
    async with place.engine() as engine:
        run = await engine.start(place.manifest({"name": "work", "agent": agent, "merge": "none"}))
        held = await wait_worker(
            engine, run, "work/worker_1", lambda w: w.phase is Phase.BACKING_OFF
        )
        month = time.time() + 31 * 24 * 3600
        assert held.retry_at == held.rate_limited_until
        assert month - 60 < (held.retry_at or 0) <= month
        await engine.command(c.RetryWorker(worker="work/worker_1", run=run.id))
        assert (await run.wait()).outcome is Outcome.SUCCESS


def spender(place: Place, **budget: Any) -> dict[str, Any]:
    spends = [{"usage": {"usd": 1.5, "input_tokens": 40}}, {"shell": place.waits_at("go")}]
    waits = [{"shell": place.waits_at("never")}]
    steps = {"1": spends, "2": waits}
    return {**scripted(workers=steps), **budget}


@pytest.mark.parametrize(
    ("budget", "seen"),
    [
        ({"day_budget_usd": 1.0}, (1.5, "USD a day")),
        ({"day_budget_tokens": 40}, (40, "tokens a day")),
    ],
)
async def test_a_spent_day_stops_who_works_and_holds_who_waits(
    budget: dict[str, float], seen: tuple[float, str], place: Place
) -> None:
    step = {"name": "work", "agent": spender(place, **budget), "merge": "none", "policy": "settled"}
    manifest = place.manifest({**step, "concurrency": 2, "retry": {"attempts": 3}})
    async with place.engine() as engine:
        report = await (await engine.start(manifest)).wait()
        for result in report.steps["work"].worker_results:
            assert (result.cause, result.attempts) == (StopCause.BUDGET, 1)
            assert result.limit_hit is not None
            assert (result.limit_hit.seen, result.limit_hit.unit) == seen
    async with place.engine() as another:
        run = await another.start(manifest)
        view = await wait_view(another, run, lambda v: v.workers[1].phase is Phase.BACKING_OFF)
        assert [w.phase for w in view.workers] == [Phase.BACKING_OFF] * 2
        assert [(w.cause, w.attempt) for w in view.workers] == [(StopCause.BUDGET, 0)] * 2
        (login,) = view.logins
        assert login.agents == ("work",)
        assert (login.held_until, login.reason) == (view.workers[0].retry_at, view.workers[0].error)
        assert (login.use.usd, login.use.tokens) == (1.5, 40)
        assert (login.use.attempts, login.use.without_usd) == (2, 1)


async def test_the_same_work_without_a_budget_goes_on(place: Place) -> None:
    step = {"name": "work", "agent": spender(place), "merge": "none"}
    async with place.engine() as engine:
        run = await engine.start(place.manifest(step))
        worker = await wait_worker(engine, run, "work/worker_1", lambda w: w.usage.usd == 1.5)
        assert worker.phase is Phase.RUNNING
        place.open_gate("go")
        assert (await run.wait()).outcome is Outcome.SUCCESS

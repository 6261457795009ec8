"""Logins that end: renewed once for everybody, outside the sandboxes, else a human is awaited.

The vendor of these tests takes a refresh token once; a second use ends the user's login for good.
"""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.agents.claude import LOGIN_OF_CLAUDE
from engine.agents.logins import kept_login
from engine.messages.results import Badge, Outcome
from engine.plan.model import AgentChoice
from tests.support.engine_runs import Place, wait_view
from tests.support.fake_vendor import FakeVendor, install, kept, log_in

pytestmark = pytest.mark.anyio

LONG_AGO = 1_000_000_000.0
FAR_AHEAD = 4_000_000_000.0


@pytest.fixture
def vendor() -> Iterator[FakeVendor]:
    service = FakeVendor()
    yield service
    service.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    log_in(made, {"accessToken": "access-0", "refreshToken": "refresh-0"}, ends_at=LONG_AGO)
    return made


@pytest.fixture
def places(tmp_path: Path, home: Path, vendor: FakeVendor) -> list[Place]:
    """Two folders to work for, of one user."""
    found = []
    for name in "ab":
        (tmp_path / name).mkdir()
        place = Place(tmp_path / name)
        for variable in LOGIN_OF_CLAUDE.variables:
            place.environment.pop(variable, None)
        place.environment |= {"HOME": str(home), "ANTHROPIC_BASE_URL": vendor.url}
        found.append(place)
    found[1].environment["PLAIT_STATE_HOME"] = found[0].environment["PLAIT_STATE_HOME"]
    return found


def six_workers(home: Path) -> dict[str, Any]:
    program = install(home.parent / "programs")
    claude = {"adapter": "claude", "options": {"program": str(program)}}
    step = {"name": "work", "agent": "mine", "prompt": "do it", "concurrency": 6, "merge": "none"}
    return {
        "runtime": {"isolation_strategy": "directory"},
        "agents": {"mine": claude},
        "pipelines": [{"name": "p", "steps": [step]}],
    }


def attempts(report: Any) -> list[int]:
    return [w.attempts for w in report.steps["work"].worker_results]


async def test_six_workers_past_the_end_of_a_login_renew_it_once(
    places: list[Place], home: Path, vendor: FakeVendor
) -> None:
    async with places[0].engine() as engine:
        report = await (await engine.start(six_workers(home))).wait()
    assert report.outcome is Outcome.SUCCESS, report
    assert attempts(report) == [1] * 6
    assert (vendor.renewals, vendor.is_revoked) == (1, False)
    assert kept(home)["refreshToken"] == vendor.refresh
    assert [seen["sees_refresh"] for seen in vendor.seen] == [False] * 6


async def test_engines_that_meet_at_a_login_renew_it_once(
    places: list[Place], home: Path, vendor: FakeVendor
) -> None:
    async with places[0].engine() as one, places[1].engine() as other:
        runs = [await one.start(six_workers(home)), await other.start(six_workers(home))]
        reports = [await run.wait() for run in runs]
    assert [report.outcome for report in reports] == [Outcome.SUCCESS] * 2
    assert (vendor.renewals, vendor.is_revoked) == (1, False)


async def test_workers_whose_login_ends_under_them_go_on_with_a_new_one(
    places: list[Place], home: Path, vendor: FakeVendor
) -> None:
    """The file says that the token is good for long, and the vendor does not think so."""
    log_in(home, {"accessToken": "gone", "refreshToken": "refresh-0"}, ends_at=FAR_AHEAD)
    async with places[0].engine() as engine:
        run = await engine.start(six_workers(home))
        await wait_view(engine, run, lambda view: all(needs_login(view)))
        assert vendor.renewals == 0
        log_in(home, {"accessToken": "gone", "refreshToken": "refresh-0"}, ends_at=time.time())
        report = await settled(engine, run)
    assert attempts(report) == [2] * 6
    assert (vendor.renewals, vendor.is_revoked) == (1, False)


async def test_a_login_that_cannot_be_renewed_waits_for_a_human(
    places: list[Place], home: Path, vendor: FakeVendor
) -> None:
    vendor.can_renew = False
    async with places[0].engine() as engine:
        run = await engine.start(six_workers(home))
        report = await run.wait()
        assert report.outcome is Outcome.PENDING
        assert [words.split(":")[0] for words in report.waits_for] == [
            f"log in for work/worker_{n}" for n in range(1, 7)
        ]
        log_in(home, vendor.issue(), ends_at=FAR_AHEAD)
        report = await settled(engine, run)
    assert report.outcome is Outcome.SUCCESS
    assert attempts(report) == [2] * 6


async def test_a_login_is_lost_where_two_renew_it_at_once(home: Path, tmp_path: Path) -> None:
    """Return what the lock is for: without it the vendor of these tests does notice."""
    service = FakeVendor(crowd=2)
    environment = {**os.environ, "HOME": str(home), "ANTHROPIC_BASE_URL": service.url}
    for name in LOGIN_OF_CLAUDE.variables:
        environment.pop(name, None)
    program = await to_thread.run_sync(install, tmp_path / "programs")
    choice = AgentChoice(name="mine", adapter="claude", options={"program": str(program)})
    login = kept_login(choice, environment)
    assert login is not None
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(partial(login.renew, environment, folder=tmp_path))
    service.close()
    assert service.is_revoked


def needs_login(view: Any) -> list[bool]:
    return [Badge.NEEDS_LOGIN in w.badges for step in view.steps for w in step.workers]


async def settled(engine: Any, run: Any) -> Any:
    """The report once everybody has settled: waiting for a login is an end too, for a while."""
    await wait_view(engine, run, lambda view: view.outcome is not Outcome.PENDING)
    return await run.wait()

"""Storage that fails for a while in any phase: the run stands still, says so, and goes on."""

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.errors import GitFailed, StoreError
from engine.messages import commands as c
from engine.messages.events import TroubleSeen
from engine.messages.results import Trouble
from engine.phases import Phase
from engine.run import performer
from engine.run.journal import Journal
from engine.work.checking import Checking
from engine.work.landing_work import LandingWork
from engine.work.trouble import storage_trouble
from engine.work.workshops import GitWorkshop
from tests.support.engine_runs import wait_view
from tests.support.merging_runs import MergingPlace, land, reviewed

pytestmark = pytest.mark.anyio

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
QUOTA = GitFailed(["git", "add"], 128, f"fatal: write error: {os.strerror(errno.EDQUOT)}")
BROKEN = StoreError(f"x cannot be written: {os.strerror(errno.EIO)}")
PLACES: dict[str, tuple[type[Any], str]] = {
    "prepare": (GitWorkshop, "prepare"),
    "collect": (GitWorkshop, "collect"),
    "check": (Checking, "check"),
    "land": (LandingWork, "land"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MergingPlace:
    monkeypatch.setattr(performer, "_AGAIN_S", 0.05)
    return MergingPlace(tmp_path)


class Failing:
    """A deed that fails as a full disk makes it fail, until there is room."""

    def __init__(self, real: Callable[..., Awaitable[Any]], error: Exception) -> None:
        self.real, self.error = real, error
        self.is_full = True
        self.tries = 0

    def bound(self) -> Callable[..., Awaitable[Any]]:
        async def act(*args: Any, **named: Any) -> Any:
            self.tries += 1
            if self.is_full:
                raise self.error
            return await self.real(*args, **named)

        return act


@pytest.mark.parametrize("error", [FULL, QUOTA, BROKEN], ids=["full", "quota", "broken"])
@pytest.mark.parametrize("phase", PLACES)
async def test_no_phase_fails_of_a_full_disk(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch, phase: str, error: Exception
):
    home, name = PLACES[phase]
    failing = Failing(getattr(home, name), error)
    monkeypatch.setattr(home, name, failing.bound())
    told: list[Trouble | None] = []
    async with place.engine() as engine, anyio.create_task_group() as tasks:

        async def listen() -> None:
            async for each in engine.events():
                if isinstance(each.event, TroubleSeen):
                    told.append(each.event.trouble)  # noqa: PERF401 - it is read meanwhile

        tasks.start_soon(listen)
        run = await engine.start(place.workers("changed\n", check="true"))
        if phase == "land":
            await run.wait()
            await engine.command(c.Land(worker="s1/worker_1", run=run.id))
        view = await wait_view(engine, run, lambda view: view.trouble)
        assert view.trouble is not None
        assert "Nothing is lost" in view.trouble.help
        await wait_view(engine, run, lambda _: failing.tries > 2)
        again = (await engine.view(run.id)).trouble
        assert again is not None
        assert again.since == view.trouble.since  # since the first time
        failing.is_full = False
        await run.wait()
        if phase != "land":
            assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        view = await wait_view(engine, run, lambda view: view.trouble is None)
        assert view.worker("s1/worker_1").phase is Phase.LANDED
        with anyio.fail_after(60):
            while told[-1:] != [None]:  # noqa: ASYNC110 - sets no event
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_what_is_no_trouble_of_the_disk_fails_as_before(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    """The negative control."""
    failing = Failing(GitWorkshop.collect, GitFailed(["git", "add"], 128, "fatal: bad object"))
    monkeypatch.setattr(GitWorkshop, "collect", failing.bound())
    async with place.engine() as engine:
        run = await engine.start(place.workers("changed\n"))
        await run.wait()
        assert (await engine.view(run.id)).worker("s1/worker_1").phase is Phase.FAILED
        assert failing.tries == 1


async def test_facts_wait_in_order_while_the_journal_cannot_be_written(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    is_full = False
    real = Journal.append

    def append(self: Journal, *args: Any, **named: Any) -> Any:
        if is_full:
            raise StoreError("run.db: database or disk is full", hint="Free some disk space.")
        return real(self, *args, **named)

    monkeypatch.setattr(Journal, "append", append)
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers("changed\n"))
        is_full = True
        assert isinstance(await engine.command(c.Approve(worker="s1/worker_1")), c.Accepted)
        view = await wait_view(engine, run, lambda view: view.trouble)
        refused = await engine.command(c.Reject(worker="s1/worker_1"))
        assert isinstance(refused, c.Refused)
        assert "plait cannot record anything" in refused.reason
        assert not view.is_stopping
        is_full = False
        await wait_view(engine, run, lambda view: view.trouble is None)
        seqs = []
        async for told in engine.events(run=run.id):
            if told.seq is not None:
                seqs.append(told.seq)
                if type(told.event).__name__ == "Commanded":
                    break
        assert seqs == list(range(1, len(seqs) + 1))


def test_trouble_says_what_the_error_or_the_disk_says_and_no_more(tmp_path: Path):
    error = GitFailed(["git", "add"], 128, f"fatal: {os.strerror(errno.ENOSPC)}")
    found = storage_trouble(error, [tmp_path], at=7.0)
    assert found is not None
    assert found.since == 7.0
    assert " free" in found.what or "No space left on device" in found.what
    grouped = ExceptionGroup("", [ValueError(), StoreError("no")])
    grouped.exceptions[1].__cause__ = OSError(errno.EROFS, "x")
    assert storage_trouble(grouped, [], at=0.0) is not None
    assert storage_trouble(ValueError("No"), [tmp_path], at=0.0) is None

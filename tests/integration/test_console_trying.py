"""Results are tried from the console: put into the user's checkout by a key, and taken back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.api import end_try, plan_from
from engine.phases import Phase
from tests.support.checkouts import picture
from tests.support.consoles import Console, Reachable, opened
from tests.support.engine_runs import Place, scripted, wait_worker
from tests.support.repositories import RepositoryBuilder
from tui.app import Options
from tui.kit.trials import Trials

pytestmark = [pytest.mark.anyio, pytest.mark.long]
ONE, TWO = "one/worker_1", "two/worker_1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    RepositoryBuilder(found.project).commit({"a.txt": "base\n", "mine.txt": "mine\n"})
    (found.project / "mine.txt").write_text("edited\n")
    return found


@asynccontextmanager
async def console_on(place: Place) -> AsyncIterator[Console]:
    """A console on a run with two results that wait for review."""
    steps = [
        {
            "name": name,
            "agent": scripted({"write": {"path": path, "text": f"{name}\n"}}),
        }
        for name, path in (("one", "a.txt"), ("two", "mine.txt"))
    ]
    options = Options(is_plain=False, has_truecolor=True)
    async with place.engine() as engine:
        run = await engine.start(
            plan_from(place.manifest(*steps, isolation_strategy="worktree"), folder=place.project)
        )
        for worker in (ONE, TWO):
            await wait_worker(engine, run, worker, lambda w: w.phase is Phase.REVIEWING)
        port: Any = Reachable(engine)
        async with opened(port=port, options=options, size=(160, 40)) as console:
            console.app.session.trials = Trials(place.project, place.environment)
            yield console


async def try_here(console: Console, worker: str) -> None:
    """Press the key on a worker, and answer yes."""
    console.screen.point_at(worker)
    await console.do("try")
    await console.shows(f"Try {worker} in your checkout")
    await console.do("try")
    await console.shows(f"{worker} is in your checkout")


async def test_a_result_is_tried_seen_on_every_screen_and_taken_back(place: Place):
    built = RepositoryBuilder(place.project, init=False)
    async with console_on(place) as console:
        before = picture(built)
        await try_here(console, ONE)
        assert (place.project / "a.txt").read_text() == "one\n"
        assert (place.project / "mine.txt").read_text() == "edited\n"
        for screen in ("go_worker", "go_review", "go_fleet"):
            await console.do(screen)
            await console.shows(
                "TRYING", "is in your checkout. W on that worker restores your files"
            )
        await console.do("try")
        await console.shows("your checkout is as it was before")
        assert picture(built) == before
        assert "TRYING" not in console.text
        await console.do("undo")
        await console.shows("there is nothing to undo")


async def test_another_result_takes_the_place_of_the_one_that_is_tried(place: Place):
    built = RepositoryBuilder(place.project, init=False)
    async with console_on(place) as console:
        before = picture(built)
        await try_here(console, ONE)
        await try_here(console, TWO)
        await console.shows("1 edit of yours set aside")
        assert (place.project / "a.txt").read_text() == "base\n"
        assert (place.project / "mine.txt").read_text() == "two\n"
        await console.do("undo")
        await console.shows("your checkout is as it was before")
        assert picture(built) == before


async def test_a_result_that_is_tried_is_landed_once_it_is_taken_back(place: Place):
    built = RepositoryBuilder(place.project, init=False)
    async with console_on(place) as console:
        await try_here(console, ONE)
        await console.do("diff")
        await console.shows("hunk 1 of 1")
        await console.do("yes")
        await console.shows("approved")
        await console.do("land")
        await console.shows(
            f"You are trying {ONE} in your checkout. Restore your files, then land {ONE}?"
        )
        await console.do("land")
        await console.until(lambda: built.git("show", "main:a.txt").strip() == "one")
        await console.until(lambda: (place.project / "a.txt").read_text() == "one\n")
        assert (place.project / "mine.txt").read_text() == "edited\n"
        assert "TRYING" not in console.text


async def test_a_try_that_was_ended_elsewhere_leaves_nothing_to_take_back(place: Place):
    async with console_on(place) as console:
        await try_here(console, ONE)
        assert await end_try(place.project, environment=place.environment)
        await console.until(lambda: "TRYING" not in console.text)
        await console.do("undo")
        await console.shows("there is nothing to undo")


async def test_what_stands_against_a_try_is_said_and_nothing_is_touched(place: Place):
    built = RepositoryBuilder(place.project, init=False)
    async with console_on(place) as console:
        built.git("update-index", "--split-index")
        before = picture(built)
        console.screen.point_at(ONE)
        await console.do("try", "try")
        await console.shows("the index here is split", "no-split-index")
        assert picture(built) == before


async def test_a_console_that_was_opened_elsewhere_names_the_command(place: Place):
    async with console_on(place) as console:
        console.app.session.trials = None
        await console.do("try")
        await console.shows("run `plait try` in one")

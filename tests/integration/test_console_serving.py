"""A key of the console starts and ends a worker's program, and the console shows its address."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import served as s
from tests.support.consoles import Reachable, opened
from tests.support.merging_runs import MergingPlace, reviewed
from tui.app import Options

pytestmark = [pytest.mark.anyio, pytest.mark.long]
WORKER = "site/worker_1"


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@pytest.mark.parametrize("screen", ["go_fleet", "go_worker"])
async def test_a_key_serves_a_program_and_the_same_key_ends_it(place: MergingPlace, screen: str):
    options = Options(is_plain=False, has_truecolor=True)
    async with place.engine() as engine:
        run = await reviewed(engine, s.plan(place, s.PYTHON))
        port: Any = Reachable(engine)
        async with opened(port=port, options=options, size=(120, 35)) as console:
            await console.do(screen)
            console.screen.point_at(WORKER)
            await console.do("serve")
            await console.shows("is at http://localhost:")
            found = await s.now(engine, run)
            assert await s.page(found.url) == "made by 1\n"
            await console.do("serve")
            await console.shows(f"the program of {WORKER} has stopped")
            assert not s.is_reached(found.port)

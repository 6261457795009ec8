"""No screen fails on a terminal that is too small for it, down to a single cell."""

import pytest

from tests.support.consoles import opened
from tests.support.world import csvlite

pytestmark = pytest.mark.anyio
SIZES = ((1, 1), (2, 3), (7, 2), (15, 5), (24, 8), (39, 6))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_every_screen_is_drawn_on_a_tiny_terminal(size: tuple[int, int]):
    async with opened(csvlite(), size=size) as console:
        for key in "12345678":
            await console.press(key)
            await console.pilot.resize_terminal(80, 24)
            await console.pilot.resize_terminal(*size)
        assert console.app.is_running

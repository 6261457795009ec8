"""Every pattern is tried on both back ends; time there is, is trio's own and jumps by itself."""

from typing import Any

import pytest
from trio.testing import MockClock


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    if request.param == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {}

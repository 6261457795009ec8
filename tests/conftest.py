"""What every test stands on: one async back end, and an event loop that nobody may block."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def never_block_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("engine") as guard:
        yield guard

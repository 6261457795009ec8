"""Define what tests with real clients share: a scripted model, a folder, the clients' places."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.clients import WANTED, WORK_ROOT, Serve, agent_of
from tests.agents.model_server import ModelServer, Turn


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the agents that are not to be tested."""
    left_out = [
        item
        for item in items
        if WANTED and item.path.parent == Path(__file__).parent and agent_of(item) not in WANTED
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ModelServer] = []

    def start(turns: list[Turn]) -> ModelServer:
        servers.append(ModelServer(turns))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that is not below the temporary one: codex wants none of its own there.

    Its name has no brackets: aider's library looks for packs by a pattern made of their path.
    """
    made = WORK_ROOT / re.sub(r"[^\w.-]", "_", request.node.name)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    yield made
    shutil.rmtree(made, ignore_errors=True)

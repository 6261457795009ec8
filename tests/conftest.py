"""What every test stands on: one async back end, and an event loop that nobody may block."""

import os
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def never_block_the_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("engine") as guard:
        for name, file, functions in _MAY_BLOCK:
            guard.functions[name].can_block_in(file, functions)
        yield guard


_COMMIT = {"transaction", "append", "_next"}
_MAY_BLOCK = (
    # A fact is journalled before anything is done about it: one commit to a write-ahead log takes
    # a tenth of a millisecond, less than the way to a thread and back.
    ("sqlite3.Connection.execute", "engine/store/database.py", _COMMIT),
    ("sqlite3.Connection.execute", "engine/store/run_store.py", _COMMIT),
    ("sqlite3.Connection.executemany", "engine/store/run_store.py", _COMMIT),
    ("sqlite3.Cursor.fetchone", "engine/store/run_store.py", _COMMIT),
    # anyio itself looks what lies where a socket is to be bound, once in an engine's life.
    ("os.stat", "anyio/_core/_sockets.py", {"setup_unix_local_socket"}),
)


NOT_TO_BE_HAD = {
    "test_sandbox_caches.py": "overlays of package caches need bubblewrap 0.11, Debian 12 has 0.8",
    "test_sandbox_scope.py": "scopes need a systemd user session, which a container has not",
}
"""Where a skip is allowed even in CI, and why: no package brings what is missing."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With PLAIT_CI=1 a skip is a failure: CI has what the tests need, or says why it cannot."""
    outcome = yield
    report = outcome.get_result()
    if not report.skipped or hasattr(report, "wasxfail") or os.environ.get("PLAIT_CI") != "1":
        return
    if item.path.name in NOT_TO_BE_HAD:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"skipped although PLAIT_CI=1 forbids it: {reason}"

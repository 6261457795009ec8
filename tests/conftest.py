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

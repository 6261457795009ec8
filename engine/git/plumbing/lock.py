"""One lock for all engines on a repository, around what git itself does not survive in parallel.

Worktrees added, removed or pruned at the same time fail, and so does a fetch that meets a half-made
one. The lock is advisory (`flock`): it ends with its holder, however that ends.
"""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from engine.private import private_folder

_FIRST_WAIT_S = 0.002
_LONGEST_WAIT_S = 0.05


class RepositoryLock:
    """The lock file of one repository; hold it with `async with lock.held():`.

    Tasks of this process queue in order; other processes are waited for by asking again, since a
    blocking `flock` in a thread could not be cancelled without perhaps keeping the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue = anyio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Nobody else adds, removes or fetches meanwhile."""
        async with self._queue:
            descriptor = await to_thread.run_sync(self._open)
            try:
                await _acquire(descriptor)
                yield
            finally:
                os.close(descriptor)

    def _open(self) -> int:
        private_folder(self._path.parent)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


async def _acquire(descriptor: int) -> None:
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await anyio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        else:
            return

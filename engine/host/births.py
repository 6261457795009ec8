"""The source of keepers: a zygote started once, and a plain start where there can be none.

One whose attempt came to a plain end waits a moment for another: it is asked before one is born.
"""

import os
import socket
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine.host.link import Link
from engine.keeper import launch

_MOST_FREE = 16


class Births:
    """Gives birth to keepers; each is known by our end of its connection."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._requests: socket.socket | None = None
        self._children: set[int] = set()  # started here, to be waited for when they have ended
        self._engine_fds: list[int] | None = None
        self._starting = anyio.Lock()
        self._free: dict[bool, list[Link]] = {False: [], True: []}

    def keep(self, keeper: Link, *, is_tethered: bool) -> None:
        """A keeper that waits for another attempt, for a short while."""
        free = self._free[is_tethered]
        free.append(keeper)
        if len(free) > _MOST_FREE:
            free.pop(0).close()

    def free_keeper(self, *, is_tethered: bool) -> Link | None:
        """The keeper that became free last; it may have gone since, and then says nothing."""
        free = self._free[is_tethered]
        return free.pop() if free else None

    async def bear(self, *, is_tethered: bool, is_cold: bool = False) -> socket.socket:
        """A connection to a newborn keeper, which waits on it for what it is to run."""
        if self._engine_fds is None:
            self._engine_fds = _own_pidfd()
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        fds = [theirs.fileno(), *(self._engine_fds if is_tethered else ())]
        try:
            with theirs:
                if is_cold or not await self._ask_zygote(fds):
                    await self._start("program", fds)
        except BaseException:
            ours.close()
            raise
        return ours

    async def aclose(self) -> None:
        """End the zygote; keepers of living attempts go on."""
        for keeper in (*self._free[False], *self._free[True]):
            keeper.close()
        self._free = {False: [], True: []}
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        with anyio.move_on_after(1, shield=True):
            while self._reap():  # noqa: ASYNC110 - nothing tells of a child's end but asking
                await anyio.sleep(0.005)
        for fd in self._engine_fds or ():
            os.close(fd)
        self._engine_fds = None

    async def _ask_zygote(self, fds: list[int]) -> bool:
        for _ in range(2):
            async with self._starting:
                if self._requests is None:
                    self._requests = await self._start_zygote()
                requests = self._requests
            if await _send(requests, fds):
                return True
            await self._bury(requests)
        return False

    async def _start_zygote(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(0)
        try:
            with theirs:
                await self._start("zygote", [theirs.fileno(), *(self._engine_fds or ())])
        except BaseException:
            ours.close()
            raise
        return ours

    async def _start(self, program: str, fds: list[int]) -> None:
        self._reap()
        start = partial(launch.start, program, fds, self._log)
        with anyio.CancelScope(shield=True):  # who is born is known, whoever still wants it
            self._children.add(await to_thread.run_sync(start))

    def _reap(self) -> bool:
        """Reap the dead; say if anybody started here still lives."""
        self._children = {pid for pid in self._children if not launch.reap(pid)}
        return bool(self._children)

    async def _bury(self, requests: socket.socket) -> None:
        async with self._starting:
            if self._requests is requests:
                requests.close()
                self._requests = None


def _own_pidfd() -> list[int]:
    """Return a descriptor that ends with this process; closed connections must do without one."""
    try:
        return [os.pidfd_open(os.getpid())]
    except OSError:
        return []


async def _send(requests: socket.socket, fds: list[int]) -> bool:
    """Hand over descriptors in one packet, all or nothing; False when the zygote is gone."""
    while True:
        try:
            socket.send_fds(requests, [b"k"], fds)
        except BlockingIOError:
            await anyio.wait_writable(requests)
        except OSError:
            return False
        else:
            return True

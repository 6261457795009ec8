"""The process at the other end of a socket: who it is, and whether a keeper stands above it.

A worker must not steer the engine it works for. Its keeper is an ancestor of all its processes,
because keepers adopt the orphans below them. So the line from the peer up to the first process is
walked, and a keeper on it that is not above the engine too means a worker. (An engine that itself
runs inside another engine's worker serves that worker.) What cannot be seen is refused.
"""

import os
import select
import socket
import struct
from dataclasses import dataclass
from typing import Self

from anyio.abc import SocketAttribute, SocketStream

from engine.keeper import proc
from engine.keeper.program import NAME as KEEPER
from engine.keeper.zygote import NAME as ZYGOTE

_PEER = struct.Struct("3i")
_SO_PEERPIDFD = 77  # Linux 6.5; the number is the same on every machine that plait runs on
_TRIES = 5
_MOST_ANCESTORS = 1000


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Whoever connected, as the kernel noted it at that moment.

    Attributes:
        pidfd: Holds the process, so that its number cannot come to mean another; -1 where the
            kernel gives none for a process that has ended already.
    """

    pid: int
    uid: int
    pidfd: int

    @classmethod
    def of(cls, stream: SocketStream) -> Self:
        """Return the peer of a connection; `close` gives it back."""
        raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610  anyio's, not Django's
        data = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, uid, _ = _PEER.unpack(data)
        return cls(pid=pid, uid=uid, pidfd=_pidfd(raw, pid))

    def close(self) -> None:
        """Let the process go."""
        if self.pidfd >= 0:
            os.close(self.pidfd)

    def is_kept(self) -> bool:
        """Return True if the process is a worker's, or cannot be proved not to be.

        It reads /proc, so it belongs in a thread.
        """
        if self.pid <= 0 or self.pidfd < 0:
            return True
        own = {process.pid for process in _line(os.getpid()) or ()}
        above = _line(self.pid)
        return above is None or self._has_ended() or any(_is_keeper(p, own) for p in above)

    def _has_ended(self) -> bool:
        """Return True if the number may mean another process by now."""
        waiting = select.poll()
        waiting.register(self.pidfd, select.POLLIN)
        return bool(waiting.poll(0))


def _pidfd(raw: socket.socket, pid: int) -> int:
    try:
        return raw.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass
    try:  # an older kernel: the process may have been exchanged since it connected, hardly before
        return os.pidfd_open(pid)
    except OSError:
        return -1


def _is_keeper(process: proc.Process, spared: set[int]) -> bool:
    return process.name in {KEEPER, ZYGOTE} and process.pid not in spared


def _line(pid: int) -> list[proc.Process] | None:
    """Return a process and all above it; None where the line cannot be seen whole."""
    for _ in range(_TRIES):
        line = _walk(pid)
        if line is not None:
            return line
    return None


def _walk(pid: int) -> list[proc.Process] | None:
    line: list[proc.Process] = []
    while pid > 0 and len(line) < _MOST_ANCESTORS:
        process = proc.look(pid)
        if process is None:
            return line if line and _is_hidden(pid) else None
        # A parent that began after its child is another process under the number of one that ended.
        if line and process.start > line[-1].start:
            return None
        line.append(process)
        pid = process.parent
    return line


def _is_hidden(pid: int) -> bool:
    """Return True if a process of another user, which is no keeper of ours, hides its /proc."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False

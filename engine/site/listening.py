"""Find out who listens on a port: a program of ours, or another one that took its place.

An address alone proves nothing: where the network is open, everybody on this machine can listen on
a port that was leased to somebody else. The kernel tells whose socket it is.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from engine.keeper import proc
from engine.system import IS_PORTABLE
from engine.values import dataclass

_LISTENS = "0A"
_TABLES = ("tcp", "tcp6")
_KNOCK_S = 0.5


class _Listener(NamedTuple):
    """One row of the kernel's table of sockets."""

    port: int
    inode: str


@dataclass(frozen=True, kw_only=True)
class Listeners:
    """Say who listens.

    Attributes:
        own: The ports on which the program listens, where it runs.
        is_taken: Somebody else listens on its port too, or alone.
        is_known: The kernel tells whose sockets they are; else `own` says who answers.
    """

    own: frozenset[int] = frozenset()
    is_taken: bool = False
    is_known: bool = True


def listening(tree: Callable[[], Iterable[int]], port: int, *, is_closed: bool) -> Listeners:
    """Return who listens on a port of this machine's loopback, or of a sandbox without network.

    Args:
        tree: Tells the processes of the program.
        port: The port that is leased to it.
        is_closed: It has a network of its own, and somebody of ours listens here in its place.
    """
    if IS_PORTABLE:
        return Listeners(own=frozenset({port}) if _answers(port) else frozenset(), is_known=False)
    # First: whoever listens by now is among the processes that are told afterwards.
    everybody = list(_listeners(os.getpid()))
    own: set[str] = set()
    networks: dict[str, int] = {}
    for pid in tree():
        with suppress(OSError):  # it has gone, or belongs to the wrapper's own helpers
            networks.setdefault(os.readlink(f"/proc/{pid}/ns/net"), pid)  # noqa: PTH115
            own.update(_sockets(pid))
    here = os.readlink("/proc/self/ns/net")  # noqa: PTH115
    rows = {name: list(_listeners(pid)) for name, pid in networks.items()}
    mine = {
        row.port
        for name, found in rows.items()
        if (name != here) is is_closed
        for row in found
        if row.inode in own
    }
    is_taken = any(row.port == port and row.inode not in own for row in everybody)
    return Listeners(own=frozenset(mine), is_taken=is_taken)


def _sockets(pid: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):  # noqa: PTH208  numbers, of which there may be many
        with suppress(OSError):
            kind, _, inode = os.readlink(f"{folder}/{name}").partition(":")  # noqa: PTH115
            if kind == "socket":
                yield inode.strip("[]")


def _listeners(pid: int) -> Iterator[_Listener]:
    """Yield the sockets that listen in the network of a process."""
    for table in _TABLES:
        for line in proc.read(f"/proc/{pid}/net/{table}").decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS:
                yield _Listener(int(fields[1].rpartition(":")[2], 16), fields[9])


def _answers(port: int) -> bool:
    for host in ("127.0.0.1", "::1"):
        with suppress(OSError), socket.create_connection((host, port), timeout=_KNOCK_S):
            return True
    return False

"""The keeper's ear and mouth: a socket in the attempt's folder and whoever is connected to it.

What must be heard is kept for each client until it reads; what is only news of a size is coalesced,
the newest replacing the older. A client that never reads is cut off and has to connect again.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from functools import partial

from engine.keeper import files, proc, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from engine.keeper.loop import Loop

_FOCUSED_S, _BESIDE_S = 0.005, 0.020
_MOST_WAITING = 1 << 18
_READ = 1 << 16


class Client:
    """One connection."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.inbox = wire.Inbox()
        self.waiting = bytearray()
        self.latest: dict[str, dict[str, Any]] = {}
        self.due = 0.0
        self.interval_s = _BESIDE_S


class Control:
    """Hears commands from all clients, tells all of them the same."""

    def __init__(self, loop: Loop, directory_fd: int) -> None:
        self._loop = loop
        self._clients: dict[int, Client] = {}
        self.on_command: Callable[[dict[str, Any]], None] = lambda _: None
        self.on_alone: Callable[[], None] = lambda: None
        self.greeting: Callable[[], dict[str, Any]] = dict
        self._listener = _listen(directory_fd)
        loop.watch(self._listener.fileno(), select.POLLIN, lambda _: self._accept())

    @property
    def is_alone(self) -> bool:
        """Nobody is connected."""
        return not self._clients

    def adopt(self, link: socket.socket, inbox: wire.Inbox) -> None:
        """Serve a connection that was made otherwise; it is greeted like any other."""
        link.settimeout(0)
        client = Client(link)
        client.inbox = inbox
        self._clients[link.fileno()] = client
        self._wait(client)
        self._queue(client, self.greeting())

    def say(self, message: dict[str, Any]) -> None:
        """Tell everybody, without fail."""
        for client in list(self._clients.values()):
            self._queue(client, message)

    def post(self, name: str, message: dict[str, Any]) -> None:
        """Tell everybody soon; a newer message of that name takes the place of this one."""
        now = time.monotonic()
        for client in list(self._clients.values()):
            client.latest[name] = message
            if client.due <= now:
                self._post(client, now)
            elif not self._loop.is_set(key := f"post {client.link.fileno()}"):
                self._loop.at(key, client.due, partial(self._post_due, client))

    def close(self, at_most_s: float = 1.0, *, spared: socket.socket | None = None) -> bool:
        """Let everything that waits be read, for a while, then release everybody.

        Returns:
            Whether the spared connection is still whole, and has heard all; it stays open then.
        """
        deadline = time.monotonic() + at_most_s
        while time.monotonic() < deadline and any(c.waiting for c in self._clients.values()):
            self._loop.turn(0.05)
        kept = self._clients.get(spared.fileno()) if spared is not None else None
        is_whole = kept is not None and kept.link is spared and not kept.waiting
        for client in list(self._clients.values()):
            if client is not kept or not is_whole:
                self._drop(client)
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
        return is_whole

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            link, _ = self._listener.accept()
            if _is_trusted(link):
                self.adopt(link, wire.Inbox())
            else:
                link.close()

    def _ready(self, client: Client, events: int) -> None:
        if events & select.POLLOUT:
            self._send(client)
        if not events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            return
        try:
            data = client.link.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        for message in client.inbox.feed(data):
            self._obey(client, message)

    def _obey(self, client: Client, message: dict[str, Any]) -> None:
        if message.get("do") == "focus":
            client.interval_s = _FOCUSED_S if message["on"] else _BESIDE_S
            client.due = min(client.due, time.monotonic() + client.interval_s)
        else:
            self.on_command(message)

    def _post_due(self, client: Client) -> None:
        if client.latest and client.link.fileno() in self._clients:
            self._post(client, time.monotonic())

    def _post(self, client: Client, now: float) -> None:
        if client.waiting:  # it does not read: the news stay until it does
            return
        messages, client.latest = client.latest, {}
        client.due = now + client.interval_s
        client.waiting += b"".join(map(wire.encode, messages.values()))
        self._send(client)

    def _queue(self, client: Client, message: dict[str, Any]) -> None:
        client.waiting += wire.encode(message)
        if len(client.waiting) > _MOST_WAITING:
            self._drop(client)
        else:
            self._send(client)

    def _send(self, client: Client) -> None:
        try:
            del client.waiting[: client.link.send(client.waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        self._wait(client)
        if not client.waiting and client.latest:
            self.post(*client.latest.popitem())

    def _wait(self, client: Client) -> None:
        events = select.POLLIN | (select.POLLOUT if client.waiting else 0)
        self._loop.watch(client.link.fileno(), events, lambda got: self._ready(client, got))

    def _drop(self, client: Client) -> None:
        if self._clients.pop(client.link.fileno(), None) is None:
            return
        self._loop.unwatch(client.link.fileno())
        self._loop.cancel(f"post {client.link.fileno()}")
        client.link.close()
        if not self._clients:
            self.on_alone()


def _listen(directory_fd: int) -> socket.socket:
    """Bound by its bare name from within the folder: a path may be longer than an address."""
    os.fchdir(directory_fd)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(files.SOCKET)
    os.chmod(files.SOCKET, 0o600)  # noqa: PTH101 - a keeper must not load pathlib: 2 MB in each of many
    listener.listen(8)
    listener.settimeout(0)
    return listener


def _is_trusted(link: socket.socket) -> bool:
    """Somebody of our own user, but none of those kept here: they could raise their own limits."""
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    above = proc.ancestors(pid)
    return uid == os.getuid() and bool(above) and os.getpid() not in above

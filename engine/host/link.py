"""One connection to a keeper: messages out, messages in, and getting it back when it breaks."""

import os
import socket
from pathlib import Path
from typing import Any

import anyio

from engine.keeper import files, wire
from engine.system import IS_PORTABLE, OWN_DESCRIPTORS

_READ = 1 << 16
_CONNECT_S = 2.0


class Link:
    """A connected keeper; any number of tasks may send, one at a time may receive."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._inbox = wire.Inbox()
        self._sending = anyio.Lock()

    async def send(self, message: dict[str, Any]) -> bool:
        """Say something; False when the keeper does not hear any more."""
        data = memoryview(wire.encode(message))
        async with self._sending:
            # Shielded: half a line would make the rest of the conversation unreadable.
            with anyio.CancelScope(shield=True):
                while data:
                    try:
                        data = data[self._connection.send(data) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._connection)
                    except OSError:
                        return False
        return True

    async def receive(self) -> list[dict[str, Any]] | None:
        """Wait for the keeper's next message; None at its end."""
        while True:
            try:
                data = self._connection.recv(_READ)
            except BlockingIOError:
                await anyio.wait_readable(self._connection)
                continue
            except OSError:
                return None
            if not data:
                return None
            messages = self._inbox.feed(data)
            if messages:
                return messages

    def close(self) -> None:
        """Hang up; a task that waits for a message sees the end."""
        if self._connection.fileno() >= 0:
            anyio.notify_closing(self._connection)
            self._connection.close()


def connect(directory: str) -> socket.socket | None:
    """Reach the keeper that listens in an attempt's folder, however long the folder's path is."""
    fd = files.open_directory(directory)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(_CONNECT_S)
        # By its descriptor, for a path may be too long for an address; elsewhere it must be short.
        folder = Path(directory) if IS_PORTABLE else Path(OWN_DESCRIPTORS, str(fd))
        link.connect(str(folder / files.SOCKET))
        link.settimeout(0)
    except OSError:
        link.close()
        return None
    finally:
        os.close(fd)
    return link

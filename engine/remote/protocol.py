"""What goes over the socket: one JSON object a line, requests numbered by whoever asks.

    → {"id": 1, "do": "command", "command": {…}}          ← {"id": 1, "ok": {…}}
    → {"id": 2, "do": "events", "after": 0}               ← {"id": 2, "item": {…}} … {"id": 2, "end": true}
    errors: {"id": 3, "error": "…", "hint": "…"}

The first line the server sends says who it is; a client of another version is told so and let go.
"""  # noqa: E501  the exchange reads best on one line

import json
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from engine.errors import EngineError

VERSION = 2
LONGEST_LINE = 64 << 20
_PEER = struct.Struct("3i")
_CHUNK = 1 << 16


class ProtocolError(EngineError):
    """The other side does not speak as agreed."""

    hint = "Both sides must be the same version of plait."


def peer_uid(stream: SocketStream) -> int:
    """The user id of whoever is at the other end, as the kernel knows it."""
    raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610  anyio's, not Django's
    data = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(data)[1])


class Wire:
    """Lines of JSON over a stream; each is sent whole."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._sending = anyio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        data = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        async with self._sending:
            await self._stream.send(data)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Every message until the other side is gone.

        Raises:
            ProtocolError: A line is no JSON object, or longer than any that could be meant.
        """
        rest = b""
        while True:
            try:
                data = await self._stream.receive(_CHUNK)
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST_LINE:
                raise ProtocolError("a message is too long")
            for line in lines:
                yield _parsed(line)

    async def aclose(self) -> None:
        """End the conversation."""
        await self._stream.aclose()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a message is not JSON") from error
    if not isinstance(message, dict):
        raise ProtocolError("a message is not an object")
    return message

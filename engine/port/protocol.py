"""The lines on the socket: one JSON object each, requests numbered by whoever asks.

    → {"id": 1, "do": "command", "command": {…}}          ← {"id": 1, "ok": {…}}
    → {"id": 2, "do": "ask", "question": {"type": "ReadRun", …}}        ← {"id": 2, "ok": {…}}
    → {"id": 3, "do": "events", "after": 0, "views": true} ← {"id": 3, "item": {…}} … {"id": 3, "end": true}
    → {"id": 4, "do": "run", "words": ["status"], …}       ← {"id": 4, "ok": {"said": […], "code": 0}}
    errors: {"id": 5, "error": "…", "hint": "…"}

The first line the engine sends says who it is, in which version, and a nonce. The first line of the
client names its role and proves that it knows the engine's key; the engine proves the same.

    ← {"v": 5, "plait": "engine", "pid": 7, "nonce": "…"}
    → {"v": 5, "role": "owner", "nonce": "…", "proof": "…"}       ← {"role": "owner", "proof": "…"}
"""  # noqa: E501  the exchange reads best on one line

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.abc import SocketStream

from engine import errors
from engine.errors import EngineError

LONGEST_LINE = 64 << 20
LONGEST_GREETING = 4096
GREETING_S = 5.0
PATIENCE_S = 30.0
"""The time that a client waits for an engine that lives and says nothing."""
_CHUNK = 1 << 16


class ProtocolError(EngineError):
    """The other side does not speak as agreed."""

    hint = "The client and the engine must be the same version of plait."


class NotAdmitted(EngineError):
    """The engine does not let this client in, or not do what it asks."""


class Wire:
    """Lines of JSON over a stream; each is sent whole.

    Attributes:
        longest: More bytes than this without an end of line are refused.
    """

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._sending = anyio.Lock()
        self.longest = LONGEST_LINE

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
            if len(rest) > self.longest:
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


def error_said(error: Exception) -> dict[str, str]:
    """Return an error as the other side shall hear it. One in a group comes out as itself."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    kind, hint = type(error).__name__, getattr(error, "hint", "")
    return {"error": str(error), "hint": hint, "kind": kind}


def error_heard(message: dict[str, Any]) -> EngineError:
    """Return an error as the other side raised it, with its sentence, without its other fields."""
    kind = getattr(errors, str(message.get("kind")), EngineError)
    is_ours = isinstance(kind, type) and issubclass(kind, EngineError)
    kind = kind if is_ours and not issubclass(kind, errors.EngineBug) else EngineError
    error: EngineError = kind.__new__(kind)
    EngineError.__init__(error, message["error"], hint=message.get("hint", ""))
    return error

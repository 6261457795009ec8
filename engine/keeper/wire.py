"""Messages between an engine and its keepers: one JSON object a line.

Bytes travel as text of the same code points, so that a message is never more than one line.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
"""Of messages and files alike: an old keeper may meet a newer engine, which must notice."""


def encode(message: dict[str, Any]) -> bytes:
    """The line that carries a message."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message a line carries; an empty one when it is none, for those are ignored."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def as_text(data: bytes) -> str:
    """Bytes as text that JSON can carry."""
    return data.decode("latin-1")


def as_bytes(text: str) -> bytes:
    """The bytes that `as_text` was given."""
    return text.encode("latin-1")


class Inbox:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete now."""
        self._tail += data
        if b"\n" not in data:
            return []
        *lines, tail = self._tail.split(b"\n")
        self._tail = tail
        return [decode(bytes(line)) for line in lines]

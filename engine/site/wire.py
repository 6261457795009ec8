"""Carry calls over a pipe: a length, plain data by the codec of the store, and bytes beside it.

A call names a function of the far half. Its arguments and its answer are written by the function's
own type hints. Bytes travel beside the text: one argument may be bytes, and an answer may be a pair
whose second part is bytes. Which call an answer belongs to is said by its number.
"""

import errno
import inspect
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import anyio

from engine.errors import (
    EngineError,
    HostLost,
    MechanismMissing,
    SiteGone,
    SiteSilent,
    WorkspaceError,
)
from engine.store.codec import Codec, codec_of

_LENGTHS = struct.Struct(">IQ")
_READ = 1 << 20
_GREETED = frozenset({"self", "return"})


class Message(NamedTuple):
    """One message: plain data, and bytes beside it."""

    head: Mapping[str, Any]
    blob: bytes


class Pipe:
    """One end of a pipe; any number of tasks may send, one at a time may receive."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(0)
        self._end = end
        self._inbox = bytearray()
        self._sending = anyio.Lock()

    async def send(self, head: Mapping[str, Any], blob: bytes = b"") -> bool:
        """Send a message; return False when nobody hears it any more."""
        text = json.dumps(head).encode()
        async with self._sending:
            # Shielded: half a message would make the rest of the conversation unreadable.
            with anyio.CancelScope(shield=True):
                for part in (_LENGTHS.pack(len(text), len(blob)) + text, blob):
                    if not await self._write(memoryview(part)):
                        return False
        return True

    async def _write(self, data: memoryview) -> bool:
        while data:
            try:
                data = data[self._end.send(data) :]
            except BlockingIOError:
                try:
                    await anyio.wait_writable(self._end)
                except (OSError, anyio.ClosedResourceError):
                    return False
            except OSError:
                return False
        return True

    async def receive(self) -> Message | None:
        """Wait for the next message; return None at the end of the conversation."""
        lengths = await self._take(_LENGTHS.size)
        if lengths is None:
            return None
        text_length, blob_length = _LENGTHS.unpack(lengths)
        text = await self._take(text_length)
        blob = await self._take(blob_length)
        if text is None or blob is None:
            return None
        return Message(json.loads(text), blob)

    async def _take(self, length: int) -> bytes | None:
        while len(self._inbox) < length:
            try:
                data = self._end.recv(_READ)
            except BlockingIOError:
                try:
                    await anyio.wait_readable(self._end)
                except (OSError, anyio.ClosedResourceError):
                    return None
                continue
            except OSError:
                return None
            if not data:
                return None
            self._inbox += data
        taken = bytes(self._inbox[:length])
        del self._inbox[:length]
        return taken

    def close(self) -> None:
        """Hang up; a task that waits for a message sees the end."""
        if self._end.fileno() >= 0:
            anyio.notify_closing(self._end)
            self._end.close()


class _Form(NamedTuple):
    """The way one function's arguments and answer are written."""

    signature: inspect.Signature
    codecs: Mapping[str, Codec]
    answer: Codec
    blob: str
    has_blob_back: bool


@cache
def _form(act: Callable[..., Any]) -> _Form:
    hints = get_type_hints(act)
    back = hints.get("return", type(None))
    parts = get_args(back) if get_origin(back) is tuple else ()
    has_blob = len(parts) == 2 and parts[1] is bytes  # noqa: PLR2004  a pair
    codecs = {n: codec_of(hint) for n, hint in hints.items() if n not in _GREETED}
    blob = next((n for n, hint in hints.items() if hint is bytes and n not in _GREETED), "")
    return _Form(
        signature=inspect.signature(act),
        codecs=codecs,
        answer=codec_of(parts[0] if has_blob else back),
        blob=blob,
        has_blob_back=has_blob,
    )


def ask(act: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Message:
    """Write a call of a function of the far half."""
    form = _form(act)
    given = dict(form.signature.bind(None, *args, **named).arguments)
    del given["self"]
    blob = given.pop(form.blob) if form.blob else b""
    written = {name: form.codecs[name].encode(value) for name, value in given.items()}
    return Message({"do": act.__qualname__, "with": written}, blob)


def asked(act: Callable[..., Any], message: Message) -> Mapping[str, Any]:
    """Read the arguments of a call."""
    form = _form(act)
    given = {n: form.codecs[n].decode(value) for n, value in message.head["with"].items()}
    return {**given, **({form.blob: message.blob} if form.blob else {})}


def answer(act: Callable[..., Any], value: Any) -> Message:
    """Write the answer of a call."""
    form = _form(act)
    plain, blob = value if form.has_blob_back else (value, b"")
    return Message({"value": form.answer.encode(plain)}, blob)


def answered(act: Callable[..., Any], message: Message) -> Any:
    """Read the answer of a call, or raise what it says.

    Raises:
        EngineError: The far half refused.
        OSError: Its disk did.
    """
    form = _form(act)
    if "error" in message.head:
        raise _error(message.head["error"])
    value = form.answer.decode(message.head["value"])
    return (value, message.blob) if form.has_blob_back else value


def refused(error: Exception) -> Message:
    """Write an error as an answer."""
    said: dict[str, Any] = {"text": str(error), "hint": getattr(error, "hint", "")}
    match error:
        case HostLost():
            said |= {"kind": "lost", "attempt": error.attempt, "offset": error.last_offset}
        case MechanismMissing():
            fields = ("dimension", "wanted", "found", "fix")
            said |= {"kind": "missing", **{name: getattr(error, name) for name in fields}}
        case SiteSilent():
            said |= {"kind": "silent"}
        case SiteGone():
            said |= {"kind": "gone"}
        case OSError():
            said |= {"kind": "disk", "errno": error.errno or errno.EIO}
        case EngineError():
            said |= {"kind": "refused"}
        case _:
            said |= {"kind": "broken", "text": f"{type(error).__name__}: {error}"}
    return Message({"error": said}, b"")


def _error(said: Mapping[str, Any]) -> Exception:
    match said["kind"]:
        case "lost":
            return HostLost(said["attempt"], said["offset"])
        case "missing":
            fields = ("dimension", "wanted", "found", "fix")
            return MechanismMissing(**{name: said[name] for name in fields})
        case "silent":
            return SiteSilent(said["text"], hint=said["hint"])
        case "gone":
            return SiteGone(said["text"], hint=said["hint"])
        case "disk":
            return OSError(said["errno"], os.strerror(said["errno"]))
        case _:
            return WorkspaceError(said["text"], hint=said["hint"])

"""Tell if a program that is served is ready: it listens, a page answers, or it has said so.

Whatever answers was made by an agent: little of it is read, no redirection is followed, and nothing
of it is shown as our own words.
"""

from collections.abc import Iterable
from contextlib import suppress

import anyio

_ANSWER_S = 2.0
_MOST_READ = 4096
_WELL = range(200, 400)


def is_page(ready: str) -> bool:
    """Return whether a program is ready once a page answers."""
    return ready.startswith("/")


def says(line: str, wanted: str) -> bool:
    """Return whether a line has a text, in which `*` stands for anything."""
    place = 0
    for part in wanted.split("*"):
        place = line.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def is_said(lines: Iterable[str], wanted: str) -> bool:
    """Return whether one of the lines has the text."""
    return any(says(line, wanted) for line in lines)


async def answers(port: int, page: str) -> bool:
    """Return whether a page of this machine's loopback answers well, or leads elsewhere."""
    with anyio.move_on_after(_ANSWER_S):
        for host in ("127.0.0.1", "::1"):
            with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError, ValueError):
                return await _status(host, port, page) in _WELL
    return False


async def _status(host: str, port: int, page: str) -> int:
    async with await anyio.connect_tcp(host, port) as stream:
        asked = f"GET {page} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
        await stream.send(asked.encode())
        head = b""
        while b"\r\n" not in head and len(head) < _MOST_READ:
            head += await stream.receive(_MOST_READ)
    protocol, status, *_ = head.split(maxsplit=2)
    if not protocol.startswith(b"HTTP/"):
        raise ValueError("it does not speak HTTP")
    return int(status)

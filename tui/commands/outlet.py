"""Writing to a reader that may stop reading, without holding anything else up.

A pipe takes what fits and then blocks whoever writes. So nothing is written before the kernel says
that a piece fits; until then only the task that writes waits.
"""

import errno
import os
import select
import stat
from io import UnsupportedOperation
from typing import TextIO

import anyio

_PIECE = select.PIPE_BUF
"""A pipe that can be written takes this much without blocking."""


async def write(stream: TextIO, text: str) -> None:
    """Write a text; return when the reader, or a buffer of the kernel, has all of it."""
    stream.flush()
    try:
        number = stream.fileno()
    except (UnsupportedOperation, OSError, AttributeError):  # no file of the kernel's
        stream.write(text)
        return
    data = text.encode(stream.encoding or "utf-8", stream.errors or "strict")
    while data:
        await _wait_room(number)
        data = data[_written(number, data[:_PIECE]) :]


def _written(number: int, piece: bytes) -> int:
    """Write a piece; return how much of it was taken.

    Raises:
        BrokenPipeError: The reader has gone. A terminal that was closed says so by EIO.
    """
    try:
        return os.write(number, piece)
    except OSError as error:
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(number).st_mode):
            raise BrokenPipeError from error
        raise


async def _wait_room(number: int) -> None:
    room = select.poll()
    room.register(number, select.POLLOUT)
    if room.poll(0):
        return
    await anyio.wait_writable(number)

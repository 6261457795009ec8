"""The recording of one attempt: everything it wrote and read, framed, in one appended file.

A frame is a header of 16 bytes (a magic byte, the stream, two bytes unused, the length, the
microseconds since the start) and the bytes. A frame is complete or it is the tail of the file: a
keeper killed while writing leaves a tail that its own header gives away. The first frame is a note
that names the format; other notes say what happened to the recording itself.
"""

from __future__ import annotations

import os
import struct
import time

FILE = "recording"
OUT, ERR, IN, NOTE = range(4)
"""The streams, as they are written in a header."""
MAX_DATA = 1 << 16
TRUNCATED = b"truncated"
_HEADER = struct.Struct("<BBHIQ")
_MAGIC = 0xF7
_BEGAN = b"recording 1 "
NOTHING_YET = _HEADER.size + len(_BEGAN) + len(b"1700000000.123456")
"""The size of a recording that holds only its first note."""


class Recorder:
    """Appends frames; what the disk refuses is kept and written later, never dropped."""

    def __init__(self, directory_fd: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(FILE, flags, 0o600, dir_fd=directory_fd)
        self._start = time.monotonic()
        self._rest = b""
        self.size = 0
        self.add(NOTE, _BEGAN + b"%.6f" % time.time())

    @property
    def is_clogged(self) -> bool:
        """The disk took only a part; nothing may be added until `retry` succeeds."""
        return bool(self._rest)

    def add(self, stream: int, data: bytes) -> None:
        """Append one frame of at most `MAX_DATA` bytes."""
        micros = int((time.monotonic() - self._start) * 1e6)
        header = _HEADER.pack(_MAGIC, stream, 0, len(data), micros)
        whole = len(header) + len(data)
        if self._rest:  # a note while clogged: it waits behind what could not be written
            self._rest += header + data
            return
        try:
            written = os.writev(self._fd, (header, data))
        except OSError:
            written = 0
        self.size += written
        if written < whole:
            self._rest = (header + data)[written:]

    def retry(self) -> bool:
        """Write what the disk refused; True when all of it is there."""
        try:
            while self._rest:
                written = os.write(self._fd, self._rest)
                self.size += written
                self._rest = self._rest[written:]
        except OSError:
            return False
        return True

    def sync(self) -> None:
        """Bring it to the disk, as far as the disk lets us."""
        try:
            os.fdatasync(self._fd)
        except OSError:
            return

    def close(self) -> None:
        """Nothing more is added."""
        os.close(self._fd)


def began_at(note: bytes) -> float | None:
    """The wall-clock time from which the frames count, if a note is the one that names it."""
    return float(note.removeprefix(_BEGAN)) if note.startswith(_BEGAN) else None


def parse(block: bytes | memoryview) -> tuple[list[tuple[float, int, bytes]], int]:
    """The complete frames (seconds, stream, bytes) at the start of a block, and their length."""
    frames = []
    position, end = 0, len(block)
    unpack, header_size = _HEADER.unpack_from, _HEADER.size
    while position + header_size <= end:
        magic, stream, _, length, micros = unpack(block, position)
        begin = position + header_size
        if magic != _MAGIC or length > MAX_DATA or begin + length > end:
            break
        position = begin + length
        frames.append((micros / 1e6, stream, bytes(block[begin:position])))
    return frames, position

"""Decode a PNG picture into pixels: enough of the format for what repositories hold."""

import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

_BEGIN = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By the type of its colors: gray, RGB, a palette, gray with alpha, RGB with alpha."""
_GRAY, _RGB, _PALETTE = 0, 2, 3
_DEPTHS = {1, 2, 4, 8, 16}
_BYTE = 8
MOST_PIXELS = 4_000_000
"""A larger picture would take many seconds in Python."""


class Raster(NamedTuple):
    """A picture as pixels: red, green, blue and alpha of each, a byte each, row by row."""

    width: int
    height: int
    pixels: bytes


class _Head(NamedTuple):
    width: int
    height: int
    depth: int
    colors: int

    @property
    def bits(self) -> int:
        return self.depth * _CHANNELS[self.colors]

    @property
    def row_bytes(self) -> int:
        return (self.width * self.bits + 7) // _BYTE


def png_pixels(data: bytes) -> Raster | str:
    """Return the pixels of a PNG picture; or, in words, why they cannot be had."""
    several = defaultdict[bytes, list[bytes]](list)
    for name, content in _parts(data):
        several[name].append(content)
    parts = {name: b"".join(contents) for name, contents in several.items()}
    start = parts.get(b"IHDR", b"")
    if len(start) != 13:  # noqa: PLR2004 - the size of that part
        return "it is damaged"
    width, height = int.from_bytes(start[:4], "big"), int.from_bytes(start[4:8], "big")
    head = _Head(width, height, start[8], start[9])
    if head.colors not in _CHANNELS or head.depth not in _DEPTHS or not width or not height:
        return "it is damaged"
    if start[12]:
        return "it is interlaced"
    if width * height > MOST_PIXELS:
        return f"it has more than {MOST_PIXELS // 1_000_000} million pixels"
    size = (head.row_bytes + 1) * height
    try:
        raw = zlib.decompressobj().decompress(parts.get(b"IDAT", b""), size)
    except zlib.error:
        return "it is damaged"
    if len(raw) < size:
        return "it is damaged"
    rows = _unfiltered(raw, head.row_bytes, max(head.bits // _BYTE, 1))
    pixels = b"".join(_rgba(row, head, parts) for row in rows)
    return Raster(width, height, pixels)


def _parts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_BEGIN)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += size + 12


def _unfiltered(raw: bytes, row_bytes: int, step: int) -> Iterator[bytes]:
    """Yield the rows: each is stored as what differs from the pixel before it, or the row above."""
    above = bytes(row_bytes)
    for at in range(0, len(raw), row_bytes + 1):
        row = _FILTERS.get(raw[at], _plain)(raw[at + 1 : at + 1 + row_bytes], above, step)
        yield row
        above = row


def _plain(row: bytes, above: bytes, step: int) -> bytes:
    del above, step
    return row


def _sub(row: bytes, above: bytes, step: int) -> bytes:
    del above
    found = bytearray(row)
    for channel in range(step):
        found[channel::step] = bytes(v & 0xFF for v in accumulate(row[channel::step]))
    return bytes(found)


def _up(row: bytes, above: bytes, step: int) -> bytes:
    del step
    return bytes((one + two) & 0xFF for one, two in zip(row, above, strict=True))


def _average(row: bytes, above: bytes, step: int) -> bytes:
    found = bytearray(row)
    for at, value in enumerate(row):
        left = found[at - step] if at >= step else 0
        found[at] = (value + (left + above[at]) // 2) & 0xFF
    return bytes(found)


def _paeth(row: bytes, above: bytes, step: int) -> bytes:
    found = bytearray(row)
    for at, value in enumerate(row):
        up = above[at]
        left, corner = (found[at - step], above[at - step]) if at >= step else (0, 0)
        guess = left + up - corner
        far = abs(guess - left), abs(guess - up), abs(guess - corner)
        best = left if far[0] <= far[1] and far[0] <= far[2] else up if far[1] <= far[2] else corner
        found[at] = (value + best) & 0xFF
    return bytes(found)


_FILTERS = {1: _sub, 2: _up, 3: _average, 4: _paeth}


def _rgba(row: bytes, head: _Head, parts: dict[bytes, bytes]) -> bytes:
    """Return a row as four bytes a pixel."""
    clear = parts.get(b"tRNS", b"")
    samples = _samples(row, head)
    out = bytearray(b"\xff" * (4 * head.width))
    if head.colors == _PALETTE:
        table = parts.get(b"PLTE", b"")
        for channel in range(3):
            out[channel::4] = samples.translate(table[channel::3].ljust(256, b"\0")[:256])
        out[3::4] = samples.translate(clear.ljust(256, b"\xff")[:256])
        return bytes(out)
    count = _CHANNELS[head.colors]
    colors = (0, 1, 2) if count > _RGB else (0, 0, 0)
    for channel, taken in enumerate(colors):
        out[channel::4] = samples[taken::count]
    if count in {2, 4}:
        out[3::4] = samples[count - 1 :: count]
    return bytes(out)


def _samples(row: bytes, head: _Head) -> bytes:
    """Return the samples of a row, a byte each; those of gray stretched from black to white."""
    if head.depth == _BYTE:
        return row
    if head.depth > _BYTE:
        return row[::2]
    many, most = _BYTE // head.depth, (1 << head.depth) - 1
    shifts = [_BYTE - head.depth * (n + 1) for n in range(many)]
    scale = 1 if head.colors == _PALETTE else 255 // most
    table = [bytes((value >> shift & most) * scale for shift in shifts) for value in range(256)]
    return b"".join(table[value] for value in row)[: head.width * _CHANNELS[head.colors]]

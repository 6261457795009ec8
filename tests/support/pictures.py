"""Pictures for tests, written from the description of the format."""

import struct
import zlib


def _part(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def png(width: int, height: int, *, kind: int = 2, depth: int = 8, filters: bytes = b"\0") -> bytes:
    """Return a picture whose samples count up, each row stored by the next of these filters."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    step, row_bytes = max(channels * depth // 8, 1), (width * channels * depth + 7) // 8
    rows, above = [], bytes(row_bytes)
    for y in range(height):
        row = bytes((y * row_bytes + x) * 7 % 256 for x in range(row_bytes))
        how = filters[y % len(filters)]
        rows.append(bytes([how]) + _filtered(row, above, step, how))
        above = row
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    palette = _part(b"PLTE", bytes(range(256)) * 3) if kind == 3 else b""
    data = _part(b"IDAT", zlib.compress(b"".join(rows)))
    return b"\x89PNG\r\n\x1a\n" + _part(b"IHDR", head) + palette + data + _part(b"IEND", b"")


def _filtered(row: bytes, above: bytes, step: int, how: int) -> bytes:
    """Store a row as the format says: written anew here, not taken from what reads it."""
    out = bytearray()
    for at, value in enumerate(row):
        a = row[at - step] if at >= step else 0
        b = above[at]
        c = above[at - step] if at >= step else 0
        nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        guess = (0, a, b, (a + b) // 2, nearest)[how]
        out.append((value - guess) % 256)
    return bytes(out)

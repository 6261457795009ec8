"""Read the head of a picture: its kind and its size in pixels. It is never decoded here."""

import re
from typing import NamedTuple

PICTURE_ENDS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""The ends of the names of files that can be pictures; their first bytes say if they are."""

_PNG = b"\x89PNG\r\n\x1a\n"
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""Marks of a JPEG among those of its frames that begin no frame."""
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
"""Marks of a JPEG that no length follows."""
_FILL = re.compile(rb"\xff+")
"""The beginning of every mark of a JPEG, as often as its writer likes."""
_MOST_SEGMENTS = 1000
"""A picture has a few dozen; anybody can write a file of nothing but segments."""


class Picture(NamedTuple):
    """The kind of a picture, such as PNG, and its size in pixels."""

    kind: str
    width: int
    height: int


def picture_of(data: bytes) -> Picture | None:
    """Return what the head of a file says of it as a picture; None where it is none we know."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR":
        return _sized("PNG", _big(data[16:20]), _big(data[20:24]))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _sized("GIF", _little(data[6:8]), _little(data[8:10]))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _sized("WebP", *_webp(data))
    if data.startswith(b"\xff\xd8"):
        return _sized("JPEG", *_jpeg(data))
    return None


def _sized(kind: str, width: int, height: int) -> Picture | None:
    return Picture(kind, width, height) if width > 0 and height > 0 else None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L" if data[20:21] == b"\x2f":
            bits = _little(data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(data) >= len(b"RIFF....WEBPVP8X") + 14:
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case _:
            return 0, 0


def _jpeg(data: bytes) -> tuple[int, int]:
    """Return the size that the first frame says: segments before it are passed over."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        fill = _FILL.match(data, at)
        at = fill.end() - 1 if fill else len(data)
        if at + 9 > len(data):
            break
        mark = data[at + 1]
        if mark in _BARE:
            at += 2
        elif 0xC0 <= mark <= 0xCF and mark not in _NO_SIZE:  # noqa: PLR2004 - the marks of frames
            return _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])
        else:
            at += 2 + max(_big(data[at + 2 : at + 4]), 2)
    return 0, 0

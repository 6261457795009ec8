"""Read from an index which files git wrote, and what the kernel said of each of them then."""

import stat
import struct
from collections import Counter
from pathlib import Path

from engine.beneath import Known, Sighting

_HEADER = struct.Struct(">4sII")
_NAME_BYTES = {"sha1": 20, "sha256": 32}
_HAS_MORE_FLAGS = 0x4000
_STAGE = 0x3000
_SHORT_NAMES = 4
"""From this version on, a name says only how it differs from the one before."""
_KIND, _FILES = 0o170000, frozenset({stat.S_IFREG, stat.S_IFLNK})
_UNKNOWABLE = (-1, -1)


def known_files(index: Path, object_format: str) -> Known | None:
    """Return the files of an index by folder and name.

    None means that the index cannot be read, or lists more than files: a submodule, a conflict.
    """
    try:
        return _IndexReading(index.read_bytes(), _NAME_BYTES[object_format]).all()
    except (OSError, ValueError, KeyError, struct.error, IndexError):
        return None


class _IndexReading:
    """One pass over the bytes of an index of version 2, 3 or 4."""

    def __init__(self, data: bytes, hashed: int) -> None:
        self._data = data
        # Read: both parts of the time of change, the inode, the mode, the flags.
        self._entry = struct.Struct(f">II12xII12x{hashed}xH")
        self._size = self._entry.size
        magic, self._version, self._count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or self._version not in {2, 3, _SHORT_NAMES}:
            raise ValueError("no index of a known version")

    def all(self) -> Known | None:
        """Return every entry; None if one is no file."""
        known: dict[bytes, dict[bytes, Sighting]] = {b"": {}}
        data, unpack, named = self._data, self._entry.unpack_from, self._named
        at, name = _HEADER.size, b""
        for _ in range(self._count):  # thousands of them, so each of these lines counts
            seconds, nanoseconds, inode, mode, flags = unpack(data, at)
            if flags & _STAGE or mode & _KIND not in _FILES:
                return None
            name, at = named(at, flags, name)
            folder, _, base = name.rpartition(b"/")
            if folder not in known:
                _add_folders(known, folder)
            known[folder][base] = (inode, seconds * 1_000_000_000 + nanoseconds)
        _forget_doubles(known)
        return known

    def _named(self, start: int, flags: int, previous: bytes) -> tuple[bytes, int]:
        """Return the name of the entry that starts somewhere, and where the next one starts."""
        at = start + self._size + (2 if flags & _HAS_MORE_FLAGS else 0)
        if self._version == _SHORT_NAMES:
            dropped, at = self._number(at)
            end = self._data.index(b"\0", at)
            return previous[: len(previous) - dropped] + self._data[at:end], end + 1
        end = self._data.index(b"\0", at)
        return self._data[at:end], start + (end - start + 8) // 8 * 8

    def _number(self, at: int) -> tuple[int, int]:
        """Return a number of git's variable length, and where it ends."""
        byte = self._data[at]
        value = byte & 127
        while byte & 128:
            at += 1
            byte = self._data[at]
            value = (value + 1 << 7) | byte & 127
        return value, at + 1


def _add_folders(known: dict[bytes, dict[bytes, Sighting]], folder: bytes) -> None:
    while folder not in known:
        known[folder] = {}
        folder = folder.rpartition(b"/")[0]


def _forget_doubles(known: dict[bytes, dict[bytes, Sighting]]) -> None:
    """Take what two files have alike from both: an index keeps half of an inode."""
    counts = Counter(seen for names in known.values() for seen in names.values())
    if len(counts) == counts.total():
        return
    for names in known.values():
        names.update({name: _UNKNOWABLE for name, seen in names.items() if counts[seen] > 1})

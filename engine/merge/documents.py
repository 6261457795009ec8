"""Files that a program has to read: of two that it can read, no proposal makes one that it cannot.

Knows JSON and TOML, where one comma or a key written twice is enough to break the whole file.
"""

import json
import tomllib
from collections.abc import Callable
from typing import Any

from engine.merge.conflict import FileConflict
from engine.merge.text import ConflictHunk, TextMerge

_JSON = (b".json", b".geojson", b".ipynb", b".webmanifest", b".jsonld", b".lock")
_TOML = (b".toml", b".lock", b"Pipfile")
_MOST = 8 << 20
"""So many bytes are read at most for the proposals of one file."""

Read = Callable[[str], object]


def reads_still(conflict: FileConflict) -> Callable[[ConflictHunk, bytes], bool]:
    """Return a test of the text proposed for a hunk: the file can be read with it in place.

    Everything passes where the file is none that is known here, or where a side cannot be read
    either. A file that is too big to be read so often has only texts of its own versions.
    """
    text, readers = conflict.text, _readers(conflict.path)
    if text is None or not readers:
        return _anything
    sides = [b"".join(text.target), b"".join(text.incoming)]
    read = next((one for one in readers if all(_is_read(one, side) for side in sides)), None)
    if read is None:
        return _anything
    if max(map(len, sides)) * len(text.hunks) > _MOST:
        return _only_versions
    return _TextReading(text, read)


class _TextReading:
    """A file's text, read with a proposal in place and all other hunks as one of the sides."""

    def __init__(self, text: TextMerge, read: Read) -> None:
        self._text, self._read = text, read

    def __call__(self, hunk: ConflictHunk, proposed: bytes) -> bool:
        def target(other: ConflictHunk) -> bytes:
            return proposed if other.key == hunk.key else b"".join(other.target)

        def incoming(other: ConflictHunk) -> bytes:
            return proposed if other.key == hunk.key else b"".join(other.incoming)

        return any(_is_read(self._read, self._text.render(way)) for way in (target, incoming))


def _anything(hunk: ConflictHunk, proposed: bytes) -> bool:
    del hunk, proposed
    return True


def _only_versions(hunk: ConflictHunk, proposed: bytes) -> bool:
    return proposed in {b"".join(side) for side in (hunk.base, hunk.target, hunk.incoming)}


def _readers(path: bytes) -> list[Read]:
    found: list[Read] = []
    if path.endswith(_JSON):
        found.append(_read_json)
    if path.endswith(_TOML):
        found.append(tomllib.loads)
    return found


def _is_read(read: Read, content: bytes) -> bool:
    try:
        read(content.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _read_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is written twice")
    return found

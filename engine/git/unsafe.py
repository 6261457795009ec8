"""Paths that no checkout may ever see: those that would reach outside, or into a git directory.

`merge-tree` calls a tree that holds them clean; publishing one would give everybody a branch that
cannot be checked out, or that writes into their `.git`.
"""

import re

_IGNORED_BY_HFS = re.compile(
    "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"  # joiners, marks and overrides
)
_LINK = "120000"
_NEVER_A_LINK = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap"})


def is_unsafe(path: bytes, mode: str = "100644") -> bool:
    """The path, or a part of it, is one that git would refuse to check out somewhere."""
    parts = path.split(b"/")
    if any(_is_unsafe_part(part) for part in parts):
        return True
    return mode == _LINK and any(_plain(part) in _NEVER_A_LINK for part in parts)


def _is_unsafe_part(part: bytes) -> bool:
    if part in {b"", b".", b".."}:
        return True
    text = part.decode(errors="surrogateescape").replace("\\", "/")
    return any(_plain(piece.encode(errors="surrogateescape")) in _OURS for piece in text.split("/"))


_OURS = frozenset({".git", "git~1", ".."})


def _plain(part: bytes) -> str:
    """A name as the most forgiving file systems see it."""
    text = _IGNORED_BY_HFS.sub("", part.decode(errors="surrogateescape")).lower()
    name = text.partition(":")[0]
    return name if name in {".", ".."} else name.rstrip(". ")

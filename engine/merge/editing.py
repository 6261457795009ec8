"""A file with open hunks as text for an editor, and what an editor made of it.

An open hunk stands between conflict markers that carry its key. Only such markers are ever read
back; other lines that look like markers are content. A block whose markers are whole is still
open, one that is gone is decided, and a marker left alone is a mistake that is reported.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from engine.merge.conflict import SideNames
from engine.merge.linediff import diff
from engine.merge.text import ConflictHunk, HunkKey, join_all, split_lines

_KEY = rb"(?P<key>[0-9a-f]{20}(?:\#[0-9]+)?)"
_BLOCK = re.compile(
    rb"^<{7} [^\n]*\[hunk " + _KEY + rb"\][ \t]*\r?\n"
    rb".*?"
    rb"^>{7} [^\n]*\[hunk (?P=key)\][ \t]*(?:\r?\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_ALONE = re.compile(rb"^(?:<{7}|\|{7}|={7}|>{7}) [^\n]*\[hunk " + _KEY + rb"\]", re.MULTILINE)


class _Block(NamedTuple):
    """A block between its markers: which hunk, and the lines of the text that it covers."""

    key: HunkKey
    start: int
    end: int


def marked(hunk: ConflictHunk, names: SideNames) -> bytes:
    """An open hunk for an editor, its base between the sides."""
    tag = f"[hunk {hunk.key}]"
    sides = (
        (f"<<<<<<< {_one_line(names.target)} {tag}", hunk.target),
        (f"||||||| base {tag}", hunk.base),
        (f"======= {tag}", hunk.incoming),
        (f">>>>>>> {_one_line(names.incoming)} {tag}", ()),
    )
    texts = (text for mark, lines in sides for text in (mark.encode(), *lines))
    return join_all(texts, hunk.ending) + hunk.ending


def keys_marked(content: bytes) -> frozenset[HunkKey]:
    """The hunks that stand open in a text."""
    return frozenset(HunkKey(block["key"].decode()) for block in _BLOCK.finditer(content))


def check_markers(content: bytes) -> None:
    """ValueError, with the line, where one of our markers stands without its others."""
    rest = _BLOCK.sub(lambda block: b"\n" * block[0].count(b"\n"), content)
    alone = _ALONE.search(rest)
    if alone:
        line = rest.count(b"\n", 0, alone.start()) + 1
        raise ValueError(f"line {line}: a conflict marker without its counterparts")


def filled(content: bytes, texts: Mapping[HunkKey, bytes]) -> bytes:
    """The text with these hunks decided; hunks that are not named stay as they are."""

    def decide(block: re.Match[bytes]) -> bytes:
        text = texts.get(HunkKey(block["key"].decode()))
        if text is None:
            return block[0]
        more = block.end() < len(content)
        ending = b"\r\n" if block[0].endswith(b"\r\n") else b"\n"
        return text + ending if more and text and not text.endswith(b"\n") else text

    return _BLOCK.sub(decide, content)


def written(before: bytes, after: bytes) -> dict[HunkKey, bytes] | None:
    """Return an editor's text for open hunks, if the editor changed nothing else; else None."""
    old, new = split_lines(before), split_lines(after)
    blocks = _blocks(before)
    changes = diff(old, new)
    for change in changes:
        if not any(b.start <= change.before and change.before_end <= b.end for b in blocks):
            return None
    texts: dict[HunkKey, bytes] = {}
    for block in blocks:
        above = [change for change in changes if change.before < block.start]
        inside = [c for c in changes if block.start <= c.before and c.before_end <= block.end]
        start = block.start + sum(change.grown for change in above)
        end = block.end + sum(change.grown for change in (*above, *inside))
        text = b"".join(new[start:end])
        if inside and block.key not in keys_marked(text):
            texts[block.key] = text
        elif inside:
            return None
    return texts


def _blocks(content: bytes) -> list[_Block]:
    """Return the blocks, in lines."""
    blocks: list[_Block] = []
    for found in _BLOCK.finditer(content):
        start = content.count(b"\n", 0, found.start())
        end = start + len(split_lines(found[0]))
        blocks.append(_Block(HunkKey(found["key"].decode()), start, end))
    return blocks


def _one_line(name: str) -> str:
    return " ".join(name.split())

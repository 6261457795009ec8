"""A file with open hunks as text for an editor, and what an editor made of it.

An open hunk stands between conflict markers that carry its key. Only such markers are ever read
back; other lines that look like markers are content. A block whose markers are whole is still
open, one that is gone is decided, and a marker left alone is a mistake that is reported.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from engine.merge.conflict import SideNames
from engine.merge.linediff import diff
from engine.merge.text import ConflictHunk, HunkKey, join_all, split_lines

_KEY = rb"(?P<key>[0-9a-f]{20}(?:\#[0-9]+)?)"
_OPENS = re.compile(rb"^<{7} [^\n]*\[hunk " + _KEY + rb"\][ \t]*\r?\n", re.MULTILINE)
_CLOSES = re.compile(rb"^>{7} [^\n]*\[hunk " + _KEY + rb"\][ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_ALONE = re.compile(rb"^(?:<{7}|\|{7}|={7}|>{7}) [^\n]*\[hunk " + _KEY + rb"\]", re.MULTILINE)


class _Marked(NamedTuple):
    """A block between its markers: which hunk, and the bytes of the text that it covers."""

    key: HunkKey
    start: int
    end: int


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
    return frozenset(span.key for span in _spans(content))


def check_markers(content: bytes) -> None:
    """ValueError, with the line, where one of our markers stands without its others."""
    rest = _replaced(content, lambda _, text: b"\n" * text.count(b"\n"))
    alone = _ALONE.search(rest)
    if alone:
        line = rest.count(b"\n", 0, alone.start()) + 1
        raise ValueError(f"line {line}: a conflict marker without its counterparts")


def filled(content: bytes, texts: Mapping[HunkKey, bytes]) -> bytes:
    """The text with these hunks decided; hunks that are not named stay as they are."""

    def decide(span: _Marked, block: bytes) -> bytes:
        text = texts.get(span.key)
        if text is None:
            return block
        more = span.end < len(content)
        ending = b"\r\n" if block.endswith(b"\r\n") else b"\n"
        return text + ending if more and text and not text.endswith(b"\n") else text

    return _replaced(content, decide)


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
    line = at = 0
    for span in _spans(content):
        start = line + content.count(b"\n", at, span.start)
        line, at = start + len(split_lines(content[span.start : span.end])), span.end
        blocks.append(_Block(span.key, start, line))
    return blocks


def _spans(content: bytes) -> Iterator[_Marked]:
    """Yield the blocks in order: each opening marker with the first of its closing ones behind it.

    Every line is read once, whatever stands open: either side may hold lines that look like ours.
    """
    closings: dict[bytes, list[tuple[int, int]]] = {}
    for found in _CLOSES.finditer(content):
        closings.setdefault(found["key"], []).append(found.span())
    at = 0
    for opening in _OPENS.finditer(content):
        ends = closings.get(opening["key"], [])
        index = bisect_left(ends, (opening.end(), 0))
        if opening.start() >= at and index < len(ends):
            at = ends[index][1]
            yield _Marked(HunkKey(opening["key"].decode()), opening.start(), at)


def _replaced(content: bytes, by: Callable[[_Marked, bytes], bytes]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for span in _spans(content):
        parts += [content[at : span.start], by(span, content[span.start : span.end])]
        at = span.end
    return b"".join([*parts, content[at:]])


def _one_line(name: str) -> str:
    return " ".join(name.split())

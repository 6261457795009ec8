"""Lines compared word by word: what to tint in a diff, and whether both edits fit in one line.

Knows tokens: a word, a run of blanks, a line end, or one other sign. Letters outside ASCII are
parts of words, so a token never cuts a UTF-8 sequence in two. Knows no colors.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from engine.merge.linediff import LineChange, diff
from engine.merge.threeway import merged

tokens: Callable[[bytes], list[bytes]] = re.compile(
    rb"[0-9A-Za-z_\x80-\xff]+|[ \t]+|\r?\n|[^\n]"
).findall
"""Split a text into tokens; joined, they are the text."""
_WORD = re.compile(r"\S+")
_BRIDGE = 5
_TOO_MANY_TOKENS = 6000

Span = tuple[int, int]


class ChangedWords(NamedTuple):
    """The marked stretches of two lines, counted in characters of the decoded text.

    Bytes that are not UTF-8 count as one character each (`decode(errors="surrogateescape")`).
    """

    before: tuple[Span, ...]
    after: tuple[Span, ...]


class MarkedLine(NamedTuple):
    """A line of a side compared with the base: its sign, its text, its changed words."""

    sign: str
    text: bytes
    marks: tuple[Span, ...] = ()


def changed_words(before: bytes, after: bytes) -> ChangedWords:
    """Return what to mark in a line that became another; nothing where nearly all changed.

    Marks with five or fewer unchanged characters between them are joined; a word that is more than
    half marked is marked whole; blanks at the ends of a mark are left out; and if more than three
    quarters of both lines changed, nothing is marked, for then the ground says enough.
    """
    old, new = tokens(before.rstrip(b"\r\n")), tokens(after.rstrip(b"\r\n"))
    if len(old) + len(new) > _TOO_MANY_TOKENS:
        return ChangedWords((), ())
    changes = diff(old, new)
    old_text, new_text = _text(old), _text(new)
    left = _tidy(old_text, _spans(old, (change[:2] for change in changes)))
    right = _tidy(new_text, _spans(new, (change[2:] for change in changes)))
    if _mostly(old_text, left) and _mostly(new_text, right):
        return ChangedWords((), ())
    return ChangedWords(left, right)


def compare(base: Sequence[bytes], side: Sequence[bytes]) -> tuple[MarkedLine, ...]:
    """The lines of a side against the base, with their changed words.

    Within a change, the lines taken away are paired in order with the most similar added ones. So a
    line pushed down by a new one above it is still compared with itself.
    """
    lines: list[MarkedLine] = []
    at = 0
    for change in diff(base, side):
        lines.extend(MarkedLine(" ", line) for line in base[at : change.before])
        old, new = base[change.before : change.before_end], side[change.after : change.after_end]
        lines.extend(_block(old, new))
        at = change.before_end
    lines.extend(MarkedLine(" ", line) for line in base[at:])
    return tuple(lines)


def combine(base: bytes, target: bytes, incoming: bytes) -> bytes | None:
    """Both edits in one text, if no token was touched by both; else None."""
    words, mine, theirs = tokens(base), tokens(target), tokens(incoming)
    if len(words) + len(mine) + len(theirs) > _TOO_MANY_TOKENS:
        return None
    stretches = merged(words, (mine, diff(words, mine)), (theirs, diff(words, theirs)))
    return None if stretches is None else b"".join(chain.from_iterable(stretches))


def _text(parts: Iterable[bytes]) -> str:
    return b"".join(parts).decode(errors="surrogateescape")


def _spans(parts: Sequence[bytes], ranges: Iterable[Sequence[int]]) -> list[Span]:
    """Ranges of tokens as stretches of characters."""
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part.decode(errors="surrogateescape")))
    return [(starts[start], starts[end]) for start, end in ranges if start < end]


def _tidy(text: str, spans: list[Span]) -> tuple[Span, ...]:
    """The marks as an eye wants them."""
    joined = _join(spans, _BRIDGE)
    words = [word.span() for word in _WORD.finditer(text)]
    whole = [word for word in words if 2 * _covered(joined, word) > word[1] - word[0]]
    marks = _join(sorted((*joined, *whole)), 0)
    trimmed = (_trim(text, mark) for mark in marks)
    return tuple((start, end) for start, end in trimmed if start < end)


def _join(spans: Iterable[Span], bridge: int) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start - joined[-1][1] <= bridge:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _covered(spans: Iterable[Span], word: Span) -> int:
    return sum(max(0, min(end, word[1]) - max(start, word[0])) for start, end in spans)


def _trim(text: str, span: Span) -> Span:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _mostly(text: str, marks: Iterable[Span]) -> bool:
    """More than three quarters of what can be seen of the line is marked; so is an empty line."""
    seen = sum(not char.isspace() for char in text)
    marked = sum(not char.isspace() for start, end in marks for char in text[start:end])
    return 4 * marked > 3 * seen or not seen


def _block(old: Sequence[bytes], new: Sequence[bytes]) -> list[MarkedLine]:
    """The lines of one change, taken away first."""
    marks_old: list[tuple[Span, ...]] = [()] * len(old)
    marks_new: list[tuple[Span, ...]] = [()] * len(new)
    for i, j in _pairs(old, new):
        words = changed_words(old[i], new[j])
        marks_old[i], marks_new[j] = words.before, words.after
    gone = [MarkedLine("-", line, marks) for line, marks in zip(old, marks_old, strict=True)]
    come = [MarkedLine("+", line, marks) for line, marks in zip(new, marks_new, strict=True)]
    return gone + come


def _pairs(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Pair old lines with the new ones that they became, judged by the tokens they share."""
    if len(old) == len(new):
        return list(zip(range(len(old)), range(len(new)), strict=True))
    flat_old, flat_new = _numbered(old), _numbered(new)
    if len(flat_old) + len(flat_new) > _TOO_MANY_TOKENS:
        return []
    shared: dict[tuple[int, int], int] = {}
    for (i, token), (j, _) in _matched(flat_old, flat_new):
        shared[i, j] = shared.get((i, j), 0) + len(token.strip())
    pairs: list[tuple[int, int]] = []
    for (i, j), _ in sorted(shared.items(), key=lambda found: (-found[1], found[0])):
        if all((i < a) == (j < b) and i != a and j != b for a, b in pairs):
            pairs.append((i, j))
    return sorted(pairs)


def _numbered(lines: Sequence[bytes]) -> list[tuple[int, bytes]]:
    return [(index, token) for index, line in enumerate(lines) for token in tokens(line)]


def _matched(
    old: list[tuple[int, bytes]], new: list[tuple[int, bytes]]
) -> list[tuple[tuple[int, bytes], tuple[int, bytes]]]:
    """The tokens that a diff of the two leaves alone, side by side."""
    end = LineChange(len(old), len(old), len(new), len(new))
    pairs: list[tuple[tuple[int, bytes], tuple[int, bytes]]] = []
    at = at_new = 0
    for change in (*diff([token for _, token in old], [token for _, token in new]), end):
        same = zip(old[at : change.before], new[at_new : change.after], strict=True)
        pairs.extend(same)
        at, at_new = change.before_end, change.after_end
    return pairs

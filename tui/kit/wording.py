"""Find which words of a line changed: marks that a reader takes in at a glance."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from engine.messages.diffs import DiffLine, Sign

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\S+")
_JOIN_BELOW = 6
_TOO_MUCH = 0.75
_LONGEST = 500
Marks = tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def changed_words(old: str, new: str) -> tuple[Marks, Marks]:
    """The changed stretches of both lines; none where the ground alone says enough."""
    if len(old) > _LONGEST or len(new) > _LONGEST:
        return (), ()
    one, two = _TOKEN.findall(old), _TOKEN.findall(new)
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    ours: list[tuple[int, int]] = []
    theirs: list[tuple[int, int]] = []
    places, others = _starts(one), _starts(two)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            ours.append((places[i1], places[i2]))
            theirs.append((others[j1], others[j2]))
    first, second = _tidy(ours, old), _tidy(theirs, new)
    if _share(first, old) > _TOO_MUCH and _share(second, new) > _TOO_MUCH:
        return (), ()
    return first, second


def _starts(tokens: Sequence[str]) -> list[int]:
    starts = [0]
    for token in tokens:
        starts.append(starts[-1] + len(token))
    return starts


def _tidy(marks: list[tuple[int, int]], text: str) -> Marks:
    """Near marks joined, words marked whole where most of them is, blanks at the ends left out."""
    joined = _joined([mark for mark in marks if mark[0] < mark[1]])
    words = [found.span() for found in _WORD.finditer(text)]
    for start, end in words:
        covered = sum(max(min(b, end) - max(a, start), 0) for a, b in joined)
        if covered * 2 > end - start:
            joined.append((start, end))
    trimmed = []
    for start, end in _joined(sorted(joined)):
        piece = text[start:end]
        lead = len(piece) - len(piece.lstrip())
        tail = len(piece) - len(piece.rstrip())
        if lead < len(piece):
            trimmed.append((start + lead, end - tail))
    return tuple(trimmed)


def _joined(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start - joined[-1][1] < _JOIN_BELOW:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _share(marks: Marks, text: str) -> float:
    inked = len(text.strip())
    return sum(end - start for start, end in marks) / inked if inked else 0.0


def pairs(lines: Sequence[DiffLine]) -> dict[int, int]:
    """Pair each removed line with the added one it became, by their places in the hunk."""
    found: dict[int, int] = {}
    removed: list[int] = []
    added: list[int] = []

    def settle() -> None:
        for one, two in zip(removed, added, strict=False):
            found[one] = two
            found[two] = one
        removed.clear()
        added.clear()

    for place, line in enumerate(lines):
        if line.sign is Sign.REMOVED:
            if added:
                settle()
            removed.append(place)
        elif line.sign is Sign.ADDED:
            added.append(place)
        else:
            settle()
    settle()
    return found

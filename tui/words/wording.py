"""Find which words of a line changed: marks that a reader takes in at a glance."""

import re
from collections.abc import Container, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from engine.messages.diffs import DiffLine, Sign

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\S+")
_WORDS = re.compile(r"\w+")
_JOIN_BELOW = 6
_TOO_MUCH = 0.75
_LONGEST = 500
_ALIKE = 0.4
"""Lines that share fewer words than this are two lines, not one that was changed."""
_SURE = 0.6
"""Lines at the same place that share so many words need no search for better partners."""
_MOST_COMPARED = 900
"""So many pairs of lines are compared at one place; a longer stretch pairs by place."""
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


def changed_blanks(one: str, two: str) -> tuple[int, int] | None:
    """Return which stretch of the first text differs where only blanks differ; None elsewhere."""
    if one == two or "".join(one.split()) != "".join(two.split()):
        return None
    short = min(len(one), len(two))
    start = next((at for at in range(short) if one[at] != two[at]), short)
    end = next((at for at in range(short - start) if one[-1 - at] != two[-1 - at]), short - start)
    end = len(one) - end
    return start, end + len(one[end:]) - len(one[end:].lstrip())


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


def pairs(lines: Sequence[DiffLine], apart: Container[int] = ()) -> dict[int, int]:
    """Pair each removed line with the added one it became, where the two are alike.

    Pairs never cross. A line that became nothing, or came from nothing, has no partner. Lines that
    are `apart` take no part.
    """
    found: dict[int, int] = {}
    removed: list[int] = []
    added: list[int] = []

    def settle() -> None:
        old, new = [lines[at].text for at in removed], [lines[at].text for at in added]
        for one, two in alike(old, new):
            found[removed[one]] = added[two]
            found[added[two]] = removed[one]
        removed.clear()
        added.clear()

    for place, line in enumerate(lines):
        if place in apart:
            continue
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


def alike(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return which old lines became which new ones, in order, by the words they share."""
    if len(old) == len(new) == 1:
        return [(0, 0)]
    ours, theirs = list(map(_vocabulary, old)), list(map(_vocabulary, new))
    by_place = [_likeness(one, two) for one, two in zip(ours, theirs, strict=False)]
    is_plain = len(old) == len(new) and all(like >= _SURE for like in by_place)
    if is_plain or len(old) * len(new) > _MOST_COMPARED:
        return [(at, at) for at, like in enumerate(by_place) if like >= _ALIKE]
    return _best_pairs([[_likeness(one, two) for two in theirs] for one in ours])


def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(text)) or frozenset(text.split())


def likeness(one: str, two: str) -> float:
    """Return the share of words that two lines have in common."""
    return _likeness(_vocabulary(one), _vocabulary(two))


def _likeness(one: frozenset[str], two: frozenset[str]) -> float:
    """Return the share of words that both have; lines without a word are alike if both are."""
    count = len(one) + len(two)
    return 2 * len(one & two) / count if count else 1.0


def _best_pairs(likeness: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the pairs that do not cross and are the most alike in all."""
    height, width = len(likeness), len(likeness[0]) if likeness else 0
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            like = likeness[i][j]
            paired = best[i + 1][j + 1] + like if like >= _ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < height and j < width:
        like = likeness[i][j]
        if like >= _ALIKE and best[i][j] == best[i + 1][j + 1] + like:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found

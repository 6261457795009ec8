"""A diff laid out: which row of the screen shows which line, for any number of lines.

The layout is a flat list of small tuples; rows are inked only when they are seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, FileDiff, Hunk, Sign, keys_of
from tui.kit.wording import pairs_of
from tui.screens.diff.shifted import Spot
from tui.words.comments import Comment


class Part(StrEnum):
    """Name what a row of the layout is."""

    FILE = "file"
    NOTE = "note"
    HUNK = "hunk"
    LINE = "line"
    PAIR = "pair"
    COMMENT = "comment"
    BLANK = "blank"


class Place(NamedTuple):
    """A row of the layout: a file, a hunk of it, a line of that, or two lines side by side."""

    part: Part
    file: int
    hunk: int = -1
    line: int = -1
    other: int = -1


@dataclass(kw_only=True)
class Shape:
    """Say how a diff is to be laid out."""

    is_split: bool = False
    context: int = 3
    seen: set[str] = field(default_factory=set)
    left_out: frozenset[str] = frozenset()
    open_hunks: set[str] = field(default_factory=set)
    folded_files: set[str] = field(default_factory=set)
    has_generated: bool = False
    ignores_blanks: bool = False
    comments: Sequence[Comment] = ()
    about: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    """By file: the one who decided it, where conflicts were decided."""
    decided: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """The lines of the target at which there was a conflict, and what was chosen there."""
    moves: Mapping[Spot, Spot] = field(default_factory=dict)
    """The other place of every line that was moved."""

    def chosen(self, file: FileDiff, hunk: Hunk) -> str:
        """Return what was decided about the conflicts that a hunk covers."""
        old = [line.old for line in hunk.lines if line.old]
        if not old or file.path not in self.decided:
            return ""
        ways = [said for line, said in self.decided[file.path] if old[0] <= line <= old[-1] + 1]
        return ", ".join(dict.fromkeys(ways))

    def is_folded_file(self, file: FileDiff) -> bool:
        """Fold what a program wrote, or nobody reads, until it is opened; others if told."""
        is_at_first = (file.is_generated or file.is_huge) and not self.has_generated
        return is_at_first != (file.path in self.folded_files)

    def is_about(self, comment: Comment) -> bool:
        """It was written about the change that is shown."""
        return not comment.about or comment.about == self.about

    def is_folded(self, key: str, hunk: Hunk) -> bool:
        """A hunk that was seen, left out, or changes only blanks, is one row until it is opened."""
        if key in self.open_hunks:
            return False
        return (
            key in self.seen or key in self.left_out or (self.ignores_blanks and hunk.is_blank_only)
        )


def lay_out(diff: ChangeDiff, shape: Shape) -> list[Place]:
    """Every row of a diff, top to bottom."""
    places: list[Place] = []
    for index, file in enumerate(diff.files):
        if places:
            places.append(Place(Part.BLANK, index))
        places.append(Place(Part.FILE, index))
        if file.note or not file.hunks:
            places.append(Place(Part.NOTE, index))
        places += _stale_places(index, file, diff.keys[index], shape)
        if shape.is_folded_file(file):
            continue
        for number, hunk in enumerate(file.hunks):
            key = diff.keys[index][number]
            places.append(Place(Part.HUNK, index, number))
            if not shape.is_folded(key, hunk):
                places += _hunk_places((index, number), hunk, shape, key)
    return places


def _stale_places(index: int, file: FileDiff, keys: Sequence[str], shape: Shape) -> Iterator[Place]:
    """Comments on code of the file that is another by now."""
    for place, comment in enumerate(shape.comments):
        if comment.path == file.path and comment.key not in keys and shape.is_about(comment):
            yield Place(Part.COMMENT, index, -1, -1, place)


def _hunk_places(at: tuple[int, int], hunk: Hunk, shape: Shape, key: str) -> Iterator[Place]:
    file, number = at
    kept = _in_context(hunk, shape.context)
    is_pure = not (hunk.added and hunk.removed)
    rows = _pairs(hunk, kept) if shape.is_split and not is_pure else ((line, -1) for line in kept)
    noted = [
        (place, c.line)
        for place, c in enumerate(shape.comments)
        if c.key == key and shape.is_about(c)
    ]
    part = Part.PAIR if shape.is_split and not is_pure else Part.LINE
    for line, other in rows:
        yield Place(part, file, number, line, other)
        for comment, place in noted:
            if place in {line, other}:
                yield Place(Part.COMMENT, file, number, place, comment)
    yield Place(Part.BLANK, file, number)


def _in_context(hunk: Hunk, context: int) -> list[int]:
    """The lines of a hunk that are shown: changed ones, and so many beside each."""
    changed = [place for place, line in enumerate(hunk.lines) if line.sign is not Sign.KEPT]
    if not changed:
        return list(range(len(hunk.lines)))
    first, last = changed[0] - context, changed[-1] + context
    return [place for place in range(len(hunk.lines)) if first <= place <= last]


def _pairs(hunk: Hunk, kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Old and new side by side, those that are alike in one row; a side without a line has -1."""
    partners = pairs_of(hunk)
    removed: list[int] = []
    added: list[int] = []
    for place in kept:
        match hunk.lines[place].sign:
            case Sign.REMOVED:
                if added:
                    yield from _beside(removed, added, partners)
                    removed, added = [], []
                removed.append(place)
            case Sign.ADDED:
                added.append(place)
            case Sign.KEPT:
                yield from _beside(removed, added, partners)
                removed, added = [], []
                yield place, place
    yield from _beside(removed, added, partners)


def _beside(
    removed: Sequence[int], added: Sequence[int], partners: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Rows of one change: partners meet, and between them lines without one stand by place."""
    old = new = 0
    places = {two: at for at, two in enumerate(added)}
    met = ((at, places.get(partners.get(one, -1))) for at, one in enumerate(removed))
    meetings = [(at, place) for at, place in met if place is not None]
    for one_at, two_at in (*meetings, (len(removed), len(added))):
        between = zip_longest(removed[old:one_at], added[new:two_at], fillvalue=-1)
        yield from between
        if one_at < len(removed):
            yield removed[one_at], added[two_at]
        old, new = one_at + 1, two_at + 1


def seen_of(diff: ChangeDiff, index: int, seen: set[str]) -> tuple[int, int]:
    """Count the hunks of a file that were seen, and all of them; without any, itself."""
    keys = keys_of(diff, index)
    return sum(key in seen for key in keys), len(keys)


def left_out_of(diff: ChangeDiff, index: int, left_out: frozenset[str]) -> int:
    """Count the hunks of a file that stay behind; a file that has none counts as one."""
    return sum(key in left_out for key in keys_of(diff, index))


def file_sign(file: FileDiff) -> str:
    """The letter before a file's name."""
    return "G" if file.is_generated else file.kind.value[0].upper() if file.kind != "mode" else "m"

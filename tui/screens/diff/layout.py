"""A diff laid out: which row of the screen shows which line, for any number of lines.

The layout is a flat list of small tuples; rows are inked only when they are seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, zip_longest
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign, keys_of
from engine.messages.merging import FileRisk
from tui.screens.diff.fates import Fate, rows_of
from tui.words.comments import Comment
from tui.words.shifted import NO_MOVES, Move, Moves, Spot, Stretch
from tui.words.wording import pairs


class Part(StrEnum):
    """Name what a row of the layout is."""

    FILE = "file"
    NOTE = "note"
    HUNK = "hunk"
    LINE = "line"
    PAIR = "pair"
    MOVED = "moved"
    WAS = "was"
    UNIT = "unit"
    COMMENT = "comment"
    BLANK = "blank"


class Place(NamedTuple):
    """A row of the layout: a file, a hunk of it, a line of that, or two lines side by side.

    A moved block that is folded is known by its first line. What one of its lines `was` is the line
    `other` of the hunk that it was moved from.
    """

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
    key_to_apply: str = ""
    """The key that applies a suggestion, as it is written on screen."""
    about: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    """By file: the one who decided it, where conflicts were decided."""
    decided: Mapping[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """The lines of the target at which there was a conflict, and what was chosen there."""
    moves: Moves = NO_MOVES
    open_moves: set[str] = field(default_factory=set)
    opens_moves: bool = False
    """Moved code is shown in full, but for what `open_moves` names."""
    _partners: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)

    fates: Mapping[int, Sequence[Fate]] = field(default_factory=dict)
    """By file: what became of its functions."""
    risks: Mapping[str, FileRisk] = field(default_factory=dict)
    """The files by risk, while they stand in that order."""

    def take(self, moves: Moves) -> None:
        """Show another diff, with these moves."""
        self.moves, self.fates = moves, {}
        self._partners.clear()

    def order(self, diff: ChangeDiff) -> Sequence[int]:
        """Return the files as they stand: as git lists them, or the riskiest first.

        Those of which no risk is known come last.
        """
        known = [self.risks.get(path) for path in diff.paths]
        return sorted(range(len(known)), key=lambda at: -one.score if (one := known[at]) else 1.0)

    def is_only_set(self, file: int, hunk: Hunk) -> bool:
        """Say if a hunk is within functions that say what they said, set in another way."""
        ranges = [fate.lines for fate in self.fates.get(file, ()) if fate.lines]
        return bool(ranges) and all(
            any(a <= (line.old or 0) <= b or c <= (line.new or 0) <= d for a, b, c, d in ranges)
            for line in hunk.lines
            if line.sign is not Sign.KEPT
        )

    def partners(self, file: int, number: int, hunk: Hunk) -> Mapping[int, int]:
        """Return the pairs of a hunk; what was moved has its partner elsewhere."""
        found = self._partners.get((file, number))
        if found is None:
            moved = self.moves.of
            spots = (Spot(file, number, at) for at in range(len(hunk.lines))) if moved else ()
            apart = {spot.line for spot in spots if spot in moved}
            found = self._partners[file, number] = pairs(hunk.lines, apart)
        return found

    def move_at(self, spot: Spot, hunk: Hunk) -> Stretch | None:
        """Return the moved block that a line belongs to, where it is one that can be folded."""
        move = self.moves.of.get(spot)
        if move is None or move.deeper is None:
            return None
        return move.new if hunk.lines[spot.line].sign is Sign.ADDED else move.old

    def is_folded_move(self, key: str, hunk: Hunk, stretch: Stretch) -> bool:
        """Fold code that was only moved, until it is opened."""
        return self.opens_moves == (move_key(key, hunk, stretch) in self.open_moves)

    def chosen(self, file: FileDiff, hunk: Hunk) -> str:
        """Return what was decided about the conflicts that a hunk covers."""
        old = [line.old for line in hunk.lines if line.old]
        if not old or file.path not in self.decided:
            return ""
        ways = [said for line, said in self.decided[file.path] if old[0] <= line <= old[-1] + 1]
        return ", ".join(dict.fromkeys(ways))

    def is_folded_file(self, file: FileDiff) -> bool:
        """Fold what a program wrote, or nobody reads, until it is opened; others if asked."""
        is_at_first = (file.is_generated or file.is_huge) and not self.has_generated
        return is_at_first != (file.path in self.folded_files)

    def thread(self, place: Place) -> list[Comment]:
        """Return the comments that a row shows, in their order."""
        first = self.comments[place.other]
        return [c for c in self.comments if c.thread == first.thread]

    def begins_thread(self, place: int) -> bool:
        """Say if a comment is the first one on its line."""
        thread = self.comments[place].thread
        return all(c.thread != thread for c in self.comments[:place])

    def is_about(self, comment: Comment) -> bool:
        """It was written about the change that is shown."""
        return not comment.about or comment.about == self.about

    def is_folded(self, key: str, hunk: Hunk, file: int) -> bool:
        """A hunk that was seen, left out, or changes only blanks, is one row until it is opened."""
        if key in self.open_hunks:
            return False
        if key in self.seen or key in self.left_out:
            return True
        return self.ignores_blanks and (hunk.is_blank_only or self.is_only_set(file, hunk))


def move_key(key: str, hunk: Hunk, stretch: Stretch) -> str:
    """Return what a moved block is known by, however much context is shown."""
    above = hunk.lines[: stretch.first.line]
    return f"{key}@{sum(line.sign is not Sign.KEPT for line in above)}"


def lines_of(diff: ChangeDiff, moves: Moves, place: Place) -> Sequence[DiffLine]:
    """Return the lines that a row stands for; of two side by side the new one, if there is one."""
    if place.hunk < 0 or (place.line < 0 and place.other < 0):
        return ()
    file, number = place.file, place.hunk
    if place.part is Part.WAS:
        file, number = moves.of[Spot(*place[1:4])].old.first[:2]
    lines = diff.files[file].hunks[number].lines
    match place.part:
        case Part.MOVED:
            count = stretch_of(diff, moves, place).size
            return lines[place.line : place.line + count]
        case Part.WAS:
            return lines[place.other : place.other + 1]
        case Part.LINE | Part.PAIR:
            at = place.other if place.other >= 0 else place.line
            return lines[at : at + 1]
        case _:
            return ()


def stretch_of(diff: ChangeDiff, moves: Moves, place: Place) -> Stretch:
    """Return the lines of a moved block on the side that a row is of."""
    move = moves.of[Spot(*place[1:4])]
    sign = diff.files[place.file].hunks[place.hunk].lines[place.line].sign
    return move.new if sign is Sign.ADDED else move.old


def lay_out(diff: ChangeDiff, shape: Shape) -> list[Place]:
    """Every row of a diff, top to bottom."""
    places: list[Place] = []
    for index in shape.order(diff):
        file = diff.files[index]
        if places:
            places.append(Place(Part.BLANK, index))
        places.append(Place(Part.FILE, index))
        if file.note or not file.hunks:
            places.append(Place(Part.NOTE, index))
        if not shape.is_folded_file(file):
            told = rows_of(shape.fates.get(index, ()))
            places += [Place(Part.UNIT, index, other=at) for at in range(len(told))]
        places += _stale_places(index, file, diff.keys[index], shape)
        if shape.is_folded_file(file):
            continue
        for number, hunk in enumerate(file.hunks):
            key = diff.keys[index][number]
            places.append(Place(Part.HUNK, index, number))
            if not shape.is_folded(key, hunk, index):
                places += _hunk_places((index, number), hunk, shape, key)
    return places


def _stale_places(index: int, file: FileDiff, keys: Sequence[str], shape: Shape) -> Iterator[Place]:
    """Comments on code of the file that is another by now."""
    for place, comment in enumerate(shape.comments):
        is_here = comment.path == file.path and comment.key not in keys
        if is_here and shape.is_about(comment) and shape.begins_thread(place):
            yield Place(Part.COMMENT, index, -1, -1, place)


def _hunk_places(at: tuple[int, int], hunk: Hunk, shape: Shape, key: str) -> Iterator[Place]:
    units = list(_units(at, hunk, shape, key))
    noted = [
        (place, c.line)
        for place, c in enumerate(shape.comments)
        if c.key == key and shape.is_about(c) and shape.begins_thread(place)
    ]
    if shape.is_split and hunk.added and hunk.removed:
        rows = _pairs(at, hunk, units, shape.partners(*at, hunk))
    else:
        rows = chain.from_iterable(
            (Place(Part.LINE, *at, unit),) if isinstance(unit, int) else unit for unit in units
        )
    for row in rows:
        yield row
        about = _about(row, shape.moves) if noted else ()
        for comment, line in noted:
            if line in about:
                yield Place(Part.COMMENT, *at, line, comment)
    yield Place(Part.BLANK, *at)


def _about(row: Place, moves: Moves) -> frozenset[int]:
    """Return the lines of its hunk that a row stands for."""
    if row.part is Part.WAS:
        return frozenset()
    if row.part is not Part.MOVED:
        return frozenset({row.line, row.other}) - {-1}
    move = moves.of[Spot(*row[1:4])]
    if row[1:4] == move.old.first:
        return frozenset(range(row.line, row.line + move.old.size))
    edited = {row.line + at for edit in move.edits for at in range(*edit.new)}
    return frozenset(range(row.line, row.line + move.new.size)) - edited


_Unit = int | tuple[Place, ...]
"""A line of a hunk, or the rows that stand for a moved block of it."""


def _units(at: tuple[int, int], hunk: Hunk, shape: Shape, key: str) -> Iterator[_Unit]:
    lines = _in_context(hunk, shape.context)
    if not shape.moves.of:
        yield from lines
        return
    end = 0
    for line in lines:
        spot = Spot(*at, line)
        stretch = shape.move_at(spot, hunk)
        if stretch is None or not shape.is_folded_move(key, hunk, stretch):
            yield line
        elif line >= end:
            end = line + stretch.size
            yield tuple(_folded(spot, shape.moves.of[spot]))


def _folded(spot: Spot, move: Move) -> Iterator[Place]:
    """A moved block as one row; where it stands now, what changed on the way follows."""
    yield Place(Part.MOVED, *spot)
    for edit in move.edits if spot == move.new.first else ():
        begin = spot.line + edit.new[0]
        for old in range(*edit.old):
            yield Place(Part.WAS, *spot[:2], begin, move.old.first.line + old)
        for new in range(*edit.new):
            yield Place(Part.LINE, *spot[:2], spot.line + new)


def _in_context(hunk: Hunk, context: int) -> list[int]:
    """The lines of a hunk that are shown: changed ones, and so many beside each."""
    changed = [place for place, line in enumerate(hunk.lines) if line.sign is not Sign.KEPT]
    if not changed:
        return list(range(len(hunk.lines)))
    first, last = changed[0] - context, changed[-1] + context
    return [place for place in range(len(hunk.lines)) if first <= place <= last]


def _pairs(
    at: tuple[int, int], hunk: Hunk, units: Sequence[_Unit], partners: Mapping[int, int]
) -> Iterator[Place]:
    """Old and new side by side, those that are alike in one row; a side without a line has -1."""
    removed: list[_Unit] = []
    added: list[_Unit] = []
    for unit in units:
        line = unit if isinstance(unit, int) else unit[0].line
        match hunk.lines[line].sign:
            case Sign.REMOVED:
                if added:
                    yield from _beside(at, removed, added, partners)
                    removed, added = [], []
                removed.append(unit)
            case Sign.ADDED:
                added.append(unit)
            case Sign.KEPT:
                yield from _beside(at, removed, added, partners)
                removed, added = [], []
                yield Place(Part.PAIR, *at, line, line)
    yield from _beside(at, removed, added, partners)


def _beside(
    at: tuple[int, int],
    removed: Sequence[_Unit],
    added: Sequence[_Unit],
    partners: Mapping[int, int],
) -> Iterator[Place]:
    """Rows of one change: partners meet, and between them lines without one stand by place."""
    old = new = 0
    places = {two: n for n, two in enumerate(added) if isinstance(two, int)}
    for one_at, one in enumerate(removed):
        if not isinstance(one, int) or (two := partners.get(one, -1)) not in places:
            continue
        yield from _rows(at, removed[old:one_at], added[new : places[two]])
        yield Place(Part.PAIR, *at, one, two)
        old, new = one_at + 1, places[two] + 1
    yield from _rows(at, removed[old:], added[new:])


def _rows(at: tuple[int, int], old: Sequence[_Unit], new: Sequence[_Unit]) -> Iterator[Place]:
    """Rows of lines that stand side by side by place; a moved block takes the whole width."""
    i = j = 0
    while i < len(old) or j < len(new):
        ours, theirs = _first_lines(old[i:]), _first_lines(new[j:])
        for one, two in zip_longest(ours, theirs, fillvalue=-1):
            yield Place(Part.PAIR, *at, one, two)
        i, j = i + len(ours), j + len(theirs)
        for unit in (*old[i : i + 1], *new[j : j + 1]):
            yield from () if isinstance(unit, int) else unit
        i, j = i + 1, j + 1


def _first_lines(units: Sequence[_Unit]) -> list[int]:
    """Return the lines before the first moved block."""
    found: list[int] = []
    for unit in units:
        if not isinstance(unit, int):
            break
        found.append(unit)
    return found


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

"""Find code that a change moved: lines taken away in one place that stand in another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, DiffLine, Sign
from tui.words.wording import alike, likeness

_LEAST = 3
"""So many lines in a row make a move; fewer are like each other by chance."""
_LEAST_SIGNS = 20
"""A move has at least so many letters and digits: brackets alone are found everywhere."""
_MOST_FOUND = 8
"""So many places are tried for the same three lines: the longest of them is the move."""
_GAP = 4
"""So many lines at one place inside a moved block may have changed on the way."""
_MOSTLY = 2 / 3
"""So much of a moved block with changes in it is unchanged."""
_ALIKE = 0.5
"""A line at the edge of a moved block that shares so many words belongs to it, changed."""


class Spot(NamedTuple):
    """A line of a diff, by the places of its file, its hunk and itself."""

    file: int
    hunk: int
    line: int


class Stretch(NamedTuple):
    """Lines of one sign that follow each other in a hunk; `number` is that of the first."""

    first: Spot
    size: int
    number: int

    def spot(self, at: int) -> Spot:
        """Return one of its lines, counted from 0."""
        return self.first._replace(line=self.first.line + at)


class Edit(NamedTuple):
    """Lines of a moved block that are others there: from where up to where in either stretch."""

    old: tuple[int, int]
    new: tuple[int, int]


class Move(NamedTuple):
    """Code that was moved: where it stood, where it stands, and what of it was changed.

    `deeper` is by how many blanks all of it is indented more, or less; None where its blanks
    differ in another way.
    """

    old: Stretch
    new: Stretch
    edits: tuple[Edit, ...] = ()
    deeper: int | None = 0

    @property
    def changed(self) -> int:
        """Return how many of its lines were changed, taken away or added."""
        return sum(max(e.old[1] - e.old[0], e.new[1] - e.new[0]) for e in self.edits)


class Moves(NamedTuple):
    """The moves of a diff, by each of their lines.

    Attributes:
        of: The move that a line belongs to, changed lines as well.
        lines: The other place of a line that is the same in both.
        partners: The other place of a line that was changed on the way.
    """

    of: Mapping[Spot, Move]
    lines: Mapping[Spot, Spot]
    partners: Mapping[Spot, Spot]


NO_MOVES = Moves({}, {}, {})


_Texts = Sequence[str | None]


class _Piece(NamedTuple):
    """Lines that are the same in both runs."""

    old: int
    new: int
    size: int


class _Run(NamedTuple):
    """Lines of one sign that follow each other; what a move has taken is None."""

    first: Spot
    lines: list[DiffLine]
    texts: list[str | None]

    def spot(self, at: int) -> Spot:
        return self.first._replace(line=self.first.line + at)

    def stretch(self, start: int, end: int) -> Stretch:
        line = self.lines[start]
        return Stretch(self.spot(start), end - start, line.new or line.old or 1)


def moves_of(diff: ChangeDiff) -> Moves:
    """Return the moves of a diff, kept beside it: whoever cleans a diff hands them on."""
    found: Moves | None = vars(diff).get("_moves")
    if found is None:
        found = vars(diff)["_moves"] = _found(diff)
    return found


def keep_moves(diff: ChangeDiff, moves: Moves) -> None:
    """Let these be the moves of a diff, whatever its own lines say."""
    vars(diff)["_moves"] = moves


def _found(diff: ChangeDiff) -> Moves:
    removed = list(_runs(diff, Sign.REMOVED))
    begins: dict[tuple[str | None, ...], list[tuple[_Run, int]]] = {}
    for run in removed:
        for at in range(len(run.texts) - _LEAST + 1):
            places = begins.setdefault(tuple(run.texts[at : at + _LEAST]), [])
            if len(places) < _MOST_FOUND:
                places.append((run, at))
    notes = _Notes()
    for run in _runs(diff, Sign.ADDED) if begins else ():
        at = 0
        while at + _LEAST <= len(run.texts):
            known = begins.get(tuple(run.texts[at : at + _LEAST]), [])
            places = [place for place in known if not _is_one_place(place[0], run)]
            counts = [_same(old.texts, begin, run.texts, at) for old, begin in places]
            count = max(counts, default=0)
            if count >= _LEAST and _says_enough(run.texts[at : at + count]):
                old, begin = places[counts.index(count)]
                at = notes.take(old, run, _Piece(begin, at, count))
            else:
                at += max(count, 1)
    return Moves(notes.of, notes.lines, notes.partners)


def _runs(diff: ChangeDiff, sign: Sign) -> Iterator[_Run]:
    for file, changed in enumerate(diff.files):
        for number, hunk in enumerate(changed.hunks):
            lines: list[DiffLine] = []
            for at, line in enumerate((*hunk.lines, None)):
                if line is not None and line.sign is sign:
                    lines.append(line)
                elif lines:
                    texts: list[str | None] = [_text(one) for one in lines]
                    yield _Run(Spot(file, number, at - len(lines)), lines, texts)
                    lines = []


def _text(line: DiffLine) -> str:
    """Return what two lines have in common if one was moved; a missing line end is part of it."""
    return line.text.strip() if line.has_newline else f"{line.text.strip()}\0"


def _is_one_place(old: _Run, new: _Run) -> bool:
    """Say if the new lines took the place of the old ones: what is alike there did not move."""
    return old.spot(len(old.lines)) == new.first


def _same(old: _Texts, i: int, new: _Texts, j: int, *, step: int = 1) -> int:
    """Return how many lines of both are the same from these places on, or back."""
    begin, most, others = i, len(old), len(new)
    while 0 <= i < most and 0 <= j < others and old[i] is not None and old[i] == new[j]:
        i, j = i + step, j + step
    return abs(i - begin)


def _says_enough(texts: _Texts) -> bool:
    return sum(char.isalnum() for text in texts if text for char in text) >= _LEAST_SIGNS


def _onward(old: _Texts, new: _Texts, at: tuple[int, int], step: int) -> Iterator[_Piece]:
    """Yield the pieces that go on from a place, or back: behind a few changed lines each."""
    i, j = at
    gap: tuple[int, int] | None = (0, 0)
    while gap:
        i, j = i + step * gap[0], j + step * gap[1]
        count = _same(old, i, new, j, step=step)
        first = 0 if step > 0 else 1 - count
        if count:
            yield _Piece(i + first, j + first, count)
        i, j = i + step * count, j + step * count
        gap = _gap(_near(old, i, step), _near(new, j, step))


def _near(texts: _Texts, at: int, step: int) -> _Texts:
    """Return the few lines from a place on, or back."""
    return [texts[n] for n in range(at, at + step * (_GAP + 1), step) if 0 <= n < len(texts)]


_GAPS = sorted(
    ((i, j) for i in range(_GAP + 1) for j in range(_GAP + 1) if i or j),
    key=lambda gap: (sum(gap), abs(gap[0] - gap[1])),
)


def _gap(old: _Texts, new: _Texts) -> tuple[int, int] | None:
    """Return how many lines of either side were changed before both go on alike."""
    for i, j in _GAPS:
        if i < len(old) and j < len(new) and None not in (*old[:i], *new[:j]):
            line = old[i]
            if line is not None and line == new[j] and sum(map(str.isalnum, line)) >= _LEAST:
                return i, j
    return None


class _Notes:
    """Write moves down, line by line."""

    def __init__(self) -> None:
        self.of: dict[Spot, Move] = {}
        self.lines: dict[Spot, Spot] = {}
        self.partners: dict[Spot, Spot] = {}

    def take(self, old: _Run, new: _Run, found: _Piece) -> int:
        """Note a move with what belongs to it on both sides; returns where it ends in the new."""
        pieces = _pieces(old.texts, new.texts, found)
        first, last = pieces[0], pieces[-1]
        ends = last.old + last.size, last.new + last.size
        lead = _like(_near(old.texts, first.old - 1, -1), _near(new.texts, first.new - 1, -1))
        tail = _like(_near(old.texts, ends[0], 1), _near(new.texts, ends[1], 1))
        starts = first.old - lead, first.new - lead
        edges = [(starts[0] + n, starts[1] + n) for n in range(lead)]
        edges += [(ends[0] + n, ends[1] + n) for n in range(tail)]
        ends = ends[0] + tail, ends[1] + tail
        same = [(p.old + n, p.new + n) for p in pieces for n in range(p.size)]
        same += [(one, two) for one, two in edges if old.texts[one] == new.texts[two]]
        same.sort()
        edits, at = [], starts
        for one, two in (*same, ends):
            if (one, two) != at:
                edits.append(
                    Edit((at[0] - starts[0], one - starts[0]), (at[1] - starts[1], two - starts[1]))
                )
            at = one + 1, two + 1
        depth = deeper([(old.lines[one].text, new.lines[two].text) for one, two in same])
        sides = old.stretch(starts[0], ends[0]), new.stretch(starts[1], ends[1])
        self._note(Move(*sides, tuple(edits), depth), old, new)
        for one, two in same:
            self._join(self.lines, old.spot(one), new.spot(two))
        old.texts[starts[0] : ends[0]] = [None] * (ends[0] - starts[0])
        new.texts[starts[1] : ends[1]] = [None] * (ends[1] - starts[1])
        return ends[1]

    def _note(self, move: Move, old: _Run, new: _Run) -> None:
        for stretch in (move.old, move.new):
            self.of.update({stretch.spot(at): move for at in range(stretch.size)})
        first = move.old.first.line - old.first.line
        second = move.new.first.line - new.first.line
        for edit in move.edits:
            ours = [line.text for line in old.lines[first + edit.old[0] : first + edit.old[1]]]
            theirs = [line.text for line in new.lines[second + edit.new[0] : second + edit.new[1]]]
            for one, two in alike(ours, theirs) if ours and theirs else ():
                at = move.old.spot(edit.old[0] + one), move.new.spot(edit.new[0] + two)
                self._join(self.partners, *at)

    def _join(self, book: dict[Spot, Spot], old: Spot, new: Spot) -> None:
        book[old], book[new] = new, old


def _pieces(old: _Texts, new: _Texts, found: _Piece) -> list[_Piece]:
    """Return what is the same in both runs at a place, and behind a few changed lines, in order."""
    pieces = [
        *_onward(old, new, (found.old - 1, found.new - 1), -1),
        found,
        *_onward(old, new, (found.old + found.size, found.new + found.size), 1),
    ]
    pieces.sort()
    count = pieces[-1].new + pieces[-1].size - pieces[0].new
    is_mostly_same = sum(piece.size for piece in pieces) >= _MOSTLY * count
    return pieces if is_mostly_same else [found]


def _like(old: _Texts, new: _Texts) -> int:
    """Return how many lines at an edge of the block are alike, though they were changed."""
    pairs = zip(old[:_GAP], new[:_GAP], strict=False)
    differs = (
        count
        for count, (one, two) in enumerate(pairs)
        if one is None or two is None or likeness(one, two) < _ALIKE
    )
    return next(differs, min(len(old), len(new), _GAP))


def deeper(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return by how many blanks all lines are indented more; None where no one figure says it."""
    if all(old == new for old, new in pairs):
        return 0
    steps = {_step(old, new) for old, new in pairs if old.strip()}
    if len(steps) != 1 or None in steps:
        return None
    (step,) = steps
    return step and (len(step[1]) - len(step[0]))


def _step(old: str, new: str) -> tuple[str, str] | None:
    """Return what stands before a line in one of two texts only."""
    if old.endswith(new) and not old[: len(old) - len(new)].strip():
        return old[: len(old) - len(new)], ""
    if new.endswith(old) and not new[: len(new) - len(old)].strip():
        return "", new[: len(new) - len(old)]
    return None

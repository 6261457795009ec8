"""Align the lines of two texts.

This is the shortest edit script of Myers (1986), searched from both ends at once, after setting
aside lines that cannot match. Ties are broken, long searches given up and changes slid into place
so that the alignment is the one of git's `myers`; so a merge built on it finds the conflicts that
`git merge-file` finds. Knows sequences only, never what the lines say.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

_PATIENCE = 256
_FAR = 1 << 62
_CROWDED = 1024
_WINDOW = 100


def root(number: int) -> int:
    """A power of two near the square root, as git rounds it."""
    return 1 << ((number.bit_length() + 1) // 2)


class _Front:
    """The reach of each diagonal from one corner; `low` to `high` are those in use.

    Diagonals below zero are kept at the end of the list, where negative indices lead.
    """

    __slots__ = ("high", "low", "reach")

    def __init__(self, reach: list[int], diagonal: int, start: int) -> None:
        self.reach, self.low, self.high = reach, diagonal, diagonal
        reach[diagonal] = start

    def widen(self, lowest: int, highest: int, beyond: int) -> None:
        """One more diagonal on each side, or one less where the box ends."""
        if self.low > lowest:
            self.low -= 1
            self.reach[self.low - 1] = beyond
        else:
            self.low += 1
        if self.high < highest:
            self.high += 1
            self.reach[self.high + 1] = beyond
        else:
            self.high -= 1


class _Split(NamedTuple):
    """The point that cuts a box in two, and which halves must be searched to the end."""

    x: int
    y: int
    lower_exact: bool = True
    upper_exact: bool = True


class _Box(NamedTuple):
    """The part of both texts still to be aligned."""

    x: int
    x_end: int
    y: int
    y_end: int
    exact: bool = False


class Search:
    """One run of the algorithm over two lists of numbers."""

    def __init__(self, a: list[int], b: list[int], patience: int | None) -> None:
        self.a, self.b = a, b
        diagonals = len(a) + len(b) + 3
        self.patience = patience or max(root(diagonals), _PATIENCE)
        self.ahead, self.behind = [0] * diagonals, [0] * diagonals

    def unmatched(self) -> tuple[list[int], list[int]]:
        """The places in either list that have no partner."""
        lost_a: list[int] = []
        lost_b: list[int] = []
        boxes = [_Box(0, len(self.a), 0, len(self.b))]
        while boxes:
            box = self._shrink(boxes.pop())
            if box.x == box.x_end:
                lost_b.extend(range(box.y, box.y_end))
            elif box.y == box.y_end:
                lost_a.extend(range(box.x, box.x_end))
            else:
                cut = self._cut(box)
                boxes.append(_Box(box.x, cut.x, box.y, cut.y, cut.lower_exact))
                boxes.append(_Box(cut.x, box.x_end, cut.y, box.y_end, cut.upper_exact))
        return lost_a, lost_b

    def _shrink(self, box: _Box) -> _Box:
        """The box without the equal lines at its corners."""
        a, b = self.a, self.b
        x, x_end, y, y_end, exact = box
        while x < x_end and y < y_end and a[x] == b[y]:
            x += 1
            y += 1
        while x < x_end and y < y_end and a[x_end - 1] == b[y_end - 1]:
            x_end -= 1
            y_end -= 1
        return _Box(x, x_end, y, y_end, exact)

    def _cut(self, box: _Box) -> _Split:
        """A point on a shortest path, found where the searches from both corners meet."""
        ahead = _Front(self.ahead, box.x - box.y, box.x)
        behind = _Front(self.behind, box.x_end - box.y_end, box.x_end)
        meets_ahead = bool((ahead.low - behind.low) & 1)
        lowest, highest = box.x - box.y_end, box.x_end - box.y
        cost = 0
        while True:
            cost += 1
            ahead.widen(lowest, highest, -1)
            met = self._forward(box, ahead, behind if meets_ahead else None)
            if met:
                return met
            behind.widen(lowest, highest, _FAR)
            met = self._backward(box, behind, None if meets_ahead else ahead)
            if met:
                return met
            if cost >= self.patience and not box.exact:
                return _furthest(box, ahead, behind)

    def _forward(self, box: _Box, front: _Front, other: _Front | None) -> _Split | None:
        """One step on every diagonal; where it meets `other`, that point."""
        a, b, reach = self.a, self.b, front.reach
        x_end, y_end = box.x_end, box.y_end
        for diagonal in range(front.high, front.low - 1, -2):
            across, down = reach[diagonal - 1], reach[diagonal + 1]
            x = across + 1 if across >= down else down
            y = x - diagonal
            while x < x_end and y < y_end and a[x] == b[y]:
                x += 1
                y += 1
            reach[diagonal] = x
            if other and other.low <= diagonal <= other.high and other.reach[diagonal] <= x:
                return _Split(x, y)
        return None

    def _backward(self, box: _Box, front: _Front, other: _Front | None) -> _Split | None:
        """The same from the far corner."""
        a, b, reach = self.a, self.b, front.reach
        x_start, y_start = box.x, box.y
        for diagonal in range(front.high, front.low - 1, -2):
            down, across = reach[diagonal - 1], reach[diagonal + 1]
            x = down if down < across else across - 1
            y = x - diagonal
            while x > x_start and y > y_start and a[x - 1] == b[y - 1]:
                x -= 1
                y -= 1
            reach[diagonal] = x
            if other and other.low <= diagonal <= other.high and x <= other.reach[diagonal]:
                return _Split(x, y)
        return None


def _furthest(box: _Box, ahead: _Front, behind: _Front) -> _Split:
    """A good point when the shortest path takes too long to find: the furthest one reached."""
    start, end = (-1, -1), (_FAR, _FAR)
    for diagonal in range(ahead.high, ahead.low - 1, -2):
        x = min(ahead.reach[diagonal], box.x_end, box.y_end + diagonal)
        start = max(start, (2 * x - diagonal, x), key=lambda found: found[0])
    for diagonal in range(behind.high, behind.low - 1, -2):
        x = max(behind.reach[diagonal], box.x, box.y + diagonal)
        end = min(end, (2 * x - diagonal, x), key=lambda found: found[0])
    if box.x_end + box.y_end - end[0] < start[0] - box.x - box.y:
        return _Split(start[1], start[0] - start[1], lower_exact=True, upper_exact=False)
    return _Split(end[1], end[0] - end[1], lower_exact=False, upper_exact=True)


class LineChange(NamedTuple):
    """Lines `before:before_end` of the one text became `after:after_end` of the other."""

    before: int
    before_end: int
    after: int
    after_end: int

    @property
    def grown(self) -> int:
        """The number of lines added, less those removed."""
        return self.after_end - self.after - self.before_end + self.before


LineDiff = Callable[[Sequence[bytes], Sequence[bytes]], list[LineChange]]
"""A function that does what `diff` does for lines; a caller with git may give git's answer."""


def diff(
    before: Sequence[Hashable], after: Sequence[Hashable], *, patience: int | None = None
) -> list[LineChange]:
    """The changes that lead from `before` to `after`, in order, never touching each other.

    With little `patience`, texts that have little in common are compared quickly and less well:
    so many edits are looked for in one place, by default as many as git looks for.
    """
    names: dict[Hashable, int] = {}
    a = [names.setdefault(line, len(names)) for line in before]
    b = [names.setdefault(line, len(names)) for line in after]
    gone, come = bytearray(len(a)), bytearray(len(b))
    _mark((a, gone), (b, come), patience)
    _slide(a, gone, come)
    _slide(b, come, gone)
    return _pair(_runs(gone), _runs(come))


def common_prefix(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Return how many items both begin with."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))


def common_suffix(a: Sequence[Hashable], b: Sequence[Hashable], *, most: int) -> int:
    """Return how many items both end with, `most` at the most."""
    for index, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False)):
        if index == most or x != y:
            return index
    return min(len(a), len(b), most)


def _mark(
    one: tuple[list[int], bytearray], other: tuple[list[int], bytearray], patience: int | None
) -> None:
    """Set a flag for each line, in either text, that has no partner."""
    (a, gone), (b, come) = one, other
    head = common_prefix(a, b)
    tail = common_suffix(a, b, most=min(len(a), len(b)) - head)
    at_a = _worth_comparing(a, Counter(b), range(head, len(a) - tail), gone)
    at_b = _worth_comparing(b, Counter(a), range(head, len(b) - tail), come)
    search = Search([a[i] for i in at_a], [b[i] for i in at_b], patience)
    lost_a, lost_b = search.unmatched()
    for index in lost_a:
        gone[at_a[index]] = 1
    for index in lost_b:
        come[at_b[index]] = 1


def _worth_comparing(
    lines: list[int], others: Counter[int], span: range, flags: bytearray
) -> list[int]:
    """The places in `span` whose lines may find a partner; the rest is flagged at once.

    0: no such line in the other text, 1: some, 2: so many that a match says little. The last are
    set aside only where they stand among lines without any partner.
    """
    limit = min(root(len(lines)), _CROWDED)
    counts = [others.get(lines[i], 0) for i in span]
    rank = [0 if not n else 2 if n >= limit else 1 for n in counts]
    kept: list[int] = []
    for index, grade in enumerate(rank):
        if grade == 1 or (grade and not _is_noise(rank, index)):
            kept.append(span.start + index)
        else:
            flags[span.start + index] = 1
    return kept


def _is_noise(rank: list[int], index: int) -> bool:
    """The crowded line at `index` stands, on both sides, mostly among lines without a partner."""
    if index == 0 or rank[index - 1] == 1 or rank[index + 1 : index + 2] == [1]:
        return False
    up = _neighbors(rank[i] for i in range(index - 1, max(index - _WINDOW, 0) - 1, -1))
    if not up[0]:
        return False
    down = _neighbors(rank[i] for i in range(index + 1, min(index + _WINDOW + 1, len(rank))))
    if not down[0]:
        return False
    alone, crowded = up[0] + down[0], up[1] + down[1] + 2
    return crowded * 4 < crowded + alone


def _neighbors(ranks: Iterable[int]) -> tuple[int, int]:
    """Count the lines without a partner and the crowded ones before the next ordinary line."""
    found = [0, 0, 0]
    for grade in ranks:
        if grade == 1:
            break
        found[grade] += 1
    return found[0], found[2]


def _runs(flags: bytearray) -> dict[int, int]:
    """The length of each run of flagged lines, by the number of unflagged lines before it.

    Both texts have the same unflagged lines, so this number names the same gap in both.
    """
    runs: dict[int, int] = {}
    flagged = 0
    start = flags.find(1)
    while start >= 0:
        end = flags.find(0, start)
        end = len(flags) if end < 0 else end
        runs[start - flagged] = end - start
        flagged += end - start
        start = flags.find(1, end)
    return runs


def _pair(gone: dict[int, int], come: dict[int, int]) -> list[LineChange]:
    """Runs of both texts in the same gap are one change."""
    changes: list[LineChange] = []
    removed = added = 0
    for gap in sorted(gone.keys() | come.keys()):
        x, y = gap + removed, gap + added
        removed += gone.get(gap, 0)
        added += come.get(gap, 0)
        changes.append(LineChange(x, gap + removed, y, gap + added))
    return changes


class _Run:
    """A run of changed lines that can slide over equal lines, swallowing other runs on its way."""

    __slots__ = ("end", "flags", "gap", "lines", "start")

    def __init__(self, lines: list[int], flags: bytearray, start: int, end: int) -> None:
        self.lines, self.flags, self.start, self.end = lines, flags, start, end
        self.gap = 0

    def up(self) -> bool:
        """One line up, if the line before it equals its last."""
        lines, flags = self.lines, self.flags
        if self.start == 0 or lines[self.start - 1] != lines[self.end - 1]:
            return False
        self.start -= 1
        self.end -= 1
        self.gap -= 1
        flags[self.start], flags[self.end] = 1, 0
        while self.start and flags[self.start - 1]:
            self.start -= 1
        return True

    def down(self) -> bool:
        """One line down, if the line after it equals its first."""
        lines, flags = self.lines, self.flags
        if self.end == len(lines) or lines[self.start] != lines[self.end]:
            return False
        flags[self.start], flags[self.end] = 0, 1
        self.start += 1
        self.end += 1
        self.gap += 1
        while self.end < len(lines) and flags[self.end]:
            self.end += 1
        return True

    def settle(self, gaps: dict[int, int]) -> None:
        """Down as far as it goes, or the last place on the way where the other text changes too."""
        size = -1
        aligned, top = False, self.end
        while size != self.end - self.start:
            size = self.end - self.start
            while self.up():
                pass
            top, aligned = self.end, self.gap in gaps
            while self.down():
                aligned = aligned or self.gap in gaps
        if aligned and self.end != top:
            while self.gap not in gaps:
                self.up()


def _slide(lines: list[int], flags: bytearray, other: bytearray) -> None:
    """Bring every run of flagged lines into its place."""
    gaps = _runs(other)
    last = len(lines)
    flagged = 0
    start = flags.find(1)
    while start >= 0:
        end = flags.find(0, start)
        end = last if end < 0 else end
        gap = start - flagged
        if (start and lines[start - 1] == lines[end - 1]) or (
            end < last and lines[start] == lines[end]
        ):
            run = _Run(lines, flags, start, end)
            run.gap = gap
            run.settle(gaps)
            end, gap = run.end, run.gap
        flagged = end - gap
        start = flags.find(1, end)

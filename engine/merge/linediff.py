"""The lines of one text that became lines of another.

This is the shortest edit script of Myers (1986), searched from both ends at once, after setting
aside lines that cannot match. Ties are broken, long searches given up and changes slid into place
so that the alignment is the one of git's `myers`; so a merge built on it finds the conflicts that
`git merge-file` finds. Knows sequences only, never what the lines say.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from engine.merge.myers import Search, root


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
"""What `diff` does for lines; whoever has git at hand may put its answer in place of ours."""

_CROWDED = 1024
_WINDOW = 100


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
    up = _neighbours(rank[i] for i in range(index - 1, max(index - _WINDOW, 0) - 1, -1))
    if not up[0]:
        return False
    down = _neighbours(rank[i] for i in range(index + 1, min(index + _WINDOW + 1, len(rank))))
    if not down[0]:
        return False
    alone, crowded = up[0] + down[0], up[1] + down[1] + 2
    return crowded * 4 < crowded + alone


def _neighbours(ranks: Iterable[int]) -> tuple[int, int]:
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

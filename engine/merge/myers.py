"""Find the items of two lists of numbers without a partner: Myers' search from both ends.

Ties are broken and long searches given up as git does it. Knows numbers only.
"""

from typing import NamedTuple

_PATIENCE = 256
_FAR = 1 << 62


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

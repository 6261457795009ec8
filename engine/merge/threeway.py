"""A base and its two descendants laid side by side: what each changed, and where both did.

Works on sequences of anything: lines make the conflicts of a file, tokens make the word-by-word
combination of one conflict. Where changes touch, they are one; that is the rule of git's merge.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from engine.merge.linediff import LineChange, diff

T = TypeVar("T", bound=Hashable)


Changed = tuple[Sequence[T], list[LineChange]]
"""A side, and what it changed of the base."""


class Origin(StrEnum):
    """The origin of a part of the merged sequence; `OWN` is what a human wrote or chose whole."""

    SAME = "same"
    TARGET = "target"
    INCOMING = "incoming"
    ALIKE = "alike"
    CONFLICT = "conflict"
    OWN = "own"


class Part(NamedTuple):
    """A stretch of all three sequences, as half-open ranges of places; parts leave no gaps."""

    origin: Origin
    base: int
    base_end: int
    target: int
    target_end: int
    incoming: int
    incoming_end: int


def align(
    base: Sequence[T],
    target: Sequence[T],
    incoming: Sequence[T],
    *,
    differ: Callable[[Sequence[T], Sequence[T]], list[LineChange]] = diff,
) -> list[Part]:
    """The parts of the three sequences, in order."""
    return parts_of(base, (target, differ(base, target)), (incoming, differ(base, incoming)))


def parts_of(base: Sequence[T], one: "Changed[T]", other: "Changed[T]") -> list[Part]:
    """The parts of a base and two sides whose changes are known already."""
    (target, left), (incoming, right) = one, other
    parts: list[Part] = []
    at = shift_t = shift_i = 0
    for ours, theirs in _clusters(left, right):
        start = min(change.before for change in (*ours[:1], *theirs[:1]))
        end = max(change.before_end for change in (*ours[-1:], *theirs[-1:]))
        if start > at:
            parts.append(_same(at, start, shift_t, shift_i))
        t, i = start + shift_t, start + shift_i
        shift_t += sum(change.grown for change in ours)
        shift_i += sum(change.grown for change in theirs)
        t_end, i_end = end + shift_t, end + shift_i
        if not theirs:
            origin = Origin.TARGET
        elif not ours:
            origin = Origin.INCOMING
        elif _is_alike(ours, theirs) and target[t:t_end] == incoming[i:i_end]:
            origin = Origin.ALIKE
        else:
            origin = Origin.CONFLICT
        parts.append(Part(origin, start, end, t, t_end, i, i_end))
        at = end
    if at < len(base):
        parts.append(_same(at, len(base), shift_t, shift_i))
    return parts


def merged(base: Sequence[T], one: "Changed[T]", other: "Changed[T]") -> list[Sequence[T]] | None:
    """The stretches of the merged sequence, or None where the two changed the same place."""
    target, incoming = one[0], other[0]
    taken: list[Sequence[T]] = []
    for part in parts_of(base, one, other):
        if part.origin is Origin.CONFLICT:
            return None
        if part.origin is Origin.INCOMING:
            taken.append(incoming[part.incoming : part.incoming_end])
        else:
            taken.append(target[part.target : part.target_end])
    return taken


def _same(start: int, end: int, shift_t: int, shift_i: int) -> Part:
    return Part(
        Origin.SAME, start, end, start + shift_t, end + shift_t, start + shift_i, end + shift_i
    )


def _is_alike(ours: Sequence[LineChange], theirs: Sequence[LineChange]) -> bool:
    """Both sides made one change, of the same stretch of the base."""
    return len(ours) == len(theirs) == 1 and ours[0][:2] == theirs[0][:2]


def _clusters(
    left: list[LineChange], right: list[LineChange]
) -> Iterator[tuple[list[LineChange], list[LineChange]]]:
    """The changes of both sides, put together where they overlap or touch."""
    i = j = 0
    while i < len(left) or j < len(right):
        first_i, first_j = i, j
        if j == len(right) or (i < len(left) and left[i].before <= right[j].before):
            end = left[i].before_end
            i += 1
        else:
            end = right[j].before_end
            j += 1
        while True:
            if i < len(left) and left[i].before <= end:
                end = max(end, left[i].before_end)
                i += 1
            elif j < len(right) and right[j].before <= end:
                end = max(end, right[j].before_end)
                j += 1
            else:
                break
        yield left[first_i:i], right[first_j:j]

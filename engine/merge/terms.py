"""A merge as a value: an odd row of alternating terms, `add, remove, add …`.

Knows nothing of files: the same type serves texts, modes, tree entries and branch heads.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Self, TypeVar

T = TypeVar("T", bound=Hashable)
U = TypeVar("U", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Merge(Generic[T]):
    """A value, or the conflict that stands in its place.

    `terms` alternates: even places are added, odd places are taken away, and one more is added
    than taken away. One term is a plain value. Three are the usual conflict: target, base,
    incoming. Five and more come from merging what was conflicted already.
    """

    terms: tuple[T, ...]

    def __post_init__(self) -> None:
        if len(self.terms) % 2 == 0:
            raise ValueError(f"a merge has an odd number of terms, not {len(self.terms)}")

    def __repr__(self) -> str:
        if self.is_resolved:
            return f"Resolved({self.terms[0]!r})"
        return f"Conflicted({list(self.terms)!r})"

    @classmethod
    def of(cls, value: T) -> Self:
        """The merge that is no conflict."""
        return cls((value,))

    @classmethod
    def three(cls, *, base: T, target: T, incoming: T) -> Self:
        """The usual three-way merge, not yet simplified."""
        return cls((target, base, incoming))

    @classmethod
    def from_sides(cls, adds: Sequence[T], removes: Sequence[T]) -> Self:
        """The merge of these adds and removes; there is one more of the former."""
        if len(adds) != len(removes) + 1:
            raise ValueError(f"{len(adds)} adds do not go with {len(removes)} removes")
        pairs = chain.from_iterable(zip(removes, adds[1:], strict=True))
        return cls((adds[0], *pairs))

    @property
    def adds(self) -> tuple[T, ...]:
        """The values that the sides want."""
        return self.terms[::2]

    @property
    def removes(self) -> tuple[T, ...]:
        """The values that the sides started from."""
        return self.terms[1::2]

    @property
    def is_resolved(self) -> bool:
        """There is one term, and so nothing to decide."""
        return len(self.terms) == 1

    @property
    def resolved(self) -> T | None:
        """The value, or None while conflicted; ask `is_resolved` where None is a value too."""
        return self.terms[0] if self.is_resolved else None

    def simplify(self) -> "Merge[T]":
        """The same merge with every add that is also taken away struck out, once for each."""
        adds, removes = list(self.adds), []
        for term in self.removes:
            if term in adds:
                adds.remove(term)
            else:
                removes.append(term)
        return Merge.from_sides(adds, removes)

    def settle(self, *, accept_same: bool = True) -> "Merge[T]":
        """Simplified, and resolved where only one value is wanted.

        With `accept_same`, sides that made the same change agree on it, as in git and Mercurial.
        Darcs and jj's strict mode keep such a conflict, because doing a thing twice can be wrong;
        line merging here follows git.
        """
        counts = Counter(self.adds)
        counts.subtract(self.removes)
        left = {value: count for value, count in counts.items() if count}
        wanted = [value for value, count in left.items() if count > 0]
        # A less B plus A: only one value is wanted, and only one other is taken away.
        if len(wanted) == 1 and (len(left) == 1 or (accept_same and len(left) == 2)):  # noqa: PLR2004 - the wanted one and the base
            return Merge.of(wanted[0])
        return self.simplify()

    def map(self, change: Callable[[T], U]) -> "Merge[U]":
        """The merge of what `change` makes of each term."""
        return Merge(tuple(change(term) for term in self.terms))

"""Candidates under comparison as plain state: where the eye is, which hunks are taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import CandidateHunkView, CandidateRow, CandidateTable, Wove


class Spot(NamedTuple):
    """One place where candidates changed something: alternatives of which one can be taken."""

    number: int
    path: str
    line: int
    hunks: tuple[CandidateHunkView, ...]

    @property
    def differs(self) -> bool:
        """More than one answer was given here."""
        return len(self.hunks) > 1


@dataclass
class ComparePane:
    """Candidates under comparison: where the eye is, and which hunks are taken.

    `taken` holds the keys by place: where one made a single hunk of a stretch, another may have
    made several of it.
    """

    table: CandidateTable | None = None
    rows: tuple[CandidateRow, ...] = ()
    spots: list[Spot] = field(default_factory=list)
    taken: dict[int, tuple[str, ...]] = field(default_factory=dict)
    at: int = 0
    column: int = 0
    woven: Wove | None = None
    woven_of: tuple[str, ...] = ()
    name_cells: int = 0
    """The cells that the column of names was dragged to."""

    def show(self, table: CandidateTable | None) -> None:
        """Show a table; what was taken stays taken where it is still there."""
        self.table = table
        self.rows = tuple(row for row in table.rows if not is_woven(row.worker)) if table else ()
        self.spots = _spots(table.hunks) if table else []
        keys = {hunk.key for spot in self.spots for hunk in spot.hunks}
        self.taken = {spot: own for spot, own in self.taken.items() if keys.issuperset(own)}
        self.at = min(self.at, max(len(self.spots) - 1, 0))
        self.column = min(self.column, max(len(self.rows) - 1, 0))

    def begin_anew(self) -> None:
        """Forget the table and all that was taken of it."""
        vars(self).update(vars(ComparePane()))

    @property
    def spot(self) -> Spot | None:
        """The place under the cursor."""
        return self.spots[self.at] if self.spots else None

    @property
    def row(self) -> CandidateRow | None:
        """The candidate under the cursor."""
        return self.rows[self.column] if self.rows else None

    @property
    def hunk(self) -> CandidateHunkView | None:
        """Return what the candidate under the cursor did at the place under it."""
        return self.hunk_of(self.spot, self.column)

    def hunk_of(self, spot: Spot | None, column: int) -> CandidateHunkView | None:
        """Return what a candidate did at a place, or the first of several things."""
        return next(iter(self.hunks_of(spot, column)), None)

    def hunks_of(self, spot: Spot | None, column: int) -> tuple[CandidateHunkView, ...]:
        """All that a candidate did at a place; what is the same but for blanks counts as its."""
        if spot is None or column >= len(self.rows):
            return ()
        worker = self.rows[column].worker
        own = tuple(hunk for hunk in spot.hunks if worker in hunk.candidates)
        return own or tuple(hunk for hunk in spot.hunks if worker in hunk.alike)[:1]

    def is_taken(self, spot: Spot, hunk: CandidateHunkView) -> bool:
        """Say whether a hunk goes into the composite."""
        return hunk.key in self.taken.get(spot.number, ())

    def shared(self, one: int, other: int) -> int:
        """Return at how many places two candidates did the same."""
        pairs = ((self.hunk_of(spot, one), self.hunk_of(spot, other)) for spot in self.spots)
        return sum(hunk is not None and hunk is same for hunk, same in pairs)

    @property
    def keys(self) -> tuple[str, ...]:
        """The hunks that are taken, in the order of their places."""
        return tuple(key for spot in self.spots for key in self.taken.get(spot.number, ()))

    @property
    def others(self) -> tuple[int, ...]:
        """Whom the candidate under the cursor may be held against, the likeliest first."""
        rest = [at for at in range(len(self.rows)) if at not in {self.column, self.other}]
        return (self.other, *rest) if self.other != self.column else ()

    @property
    def other(self) -> int:
        """Whom the candidate under the cursor is held against: the taken one, else the next."""
        spot, here = self.spot, self.hunk
        if spot is None:
            return (self.column + 1) % max(len(self.rows), 1)
        others = [at for at in range(len(self.rows)) if at != self.column]
        differing = [
            at for at in others if (hunk := self.hunk_of(spot, at)) is not None and hunk is not here
        ]
        chosen = [
            at for at in differing if (hunk := self.hunk_of(spot, at)) and self.is_taken(spot, hunk)
        ]
        return next(iter([*chosen, *differing, *others]), self.column)

    def take(self) -> bool:
        """Take the hunk under the cursor, in place of another at the same place."""
        spot, own = self.spot, self.hunks_of(self.spot, self.column)
        if spot is None or not own:
            return False
        self.taken[spot.number] = tuple(hunk.key for hunk in own)
        return True

    def take_all(self) -> bool:
        """Take every hunk of the candidate under the cursor, in place of others at their places."""
        own = {spot.number: self.hunks_of(spot, self.column) for spot in self.spots}
        found = {number: tuple(hunk.key for hunk in did) for number, did in own.items() if did}
        self.taken |= found
        return bool(found)

    def leave(self) -> bool:
        """Leave the place under the cursor as it was."""
        return self.spot is not None and self.taken.pop(self.spot.number, None) is not None

    def move(self, by: int) -> None:
        """To the next place."""
        self.at = max(min(self.at + by, len(self.spots) - 1), 0)

    def sideways(self, by: int) -> None:
        """To the next candidate."""
        self.column = max(min(self.column + by, len(self.rows) - 1), 0)

    def to_own(self) -> None:
        """Go on to the next place where the candidate under the cursor did something."""
        ahead = range(self.at + 1, len(self.spots))
        own = (at for at in ahead if self.hunk_of(self.spots[at], self.column) is not None)
        self.at = next(own, min(self.at + 1, max(len(self.spots) - 1, 0)))

    def to_file(self, by: int) -> bool:
        """To the first place of the next file."""
        here = self.spot
        ahead = [i for i, s in enumerate(self.spots) if here and s.path != here.path]
        ahead = [i for i in ahead if (i - self.at) * by > 0]
        if ahead:
            self.at = ahead[0] if by > 0 else ahead[-1]
        return bool(ahead)

    def to_difference(self, by: int) -> bool:
        """To the next place where candidates differ."""
        ahead = [i for i, s in enumerate(self.spots) if s.differs and (i - self.at) * by > 0]
        if ahead:
            self.at = ahead[0] if by > 0 else ahead[-1]
        return bool(ahead)

    @property
    def is_checked(self) -> bool:
        """The composite was made of exactly what is taken now."""
        return self.woven is not None and self.woven_of == self.keys


def is_woven(worker: str) -> bool:
    """A composite is no candidate of its own."""
    return worker.endswith("/woven")


def _spots(hunks: Sequence[CandidateHunkView]) -> list[Spot]:
    found: dict[int, list[CandidateHunkView]] = {}
    for hunk in hunks:
        found.setdefault(hunk.spot, []).append(hunk)
    return [
        Spot(number, group[0].path, group[0].line, tuple(group)) for number, group in found.items()
    ]

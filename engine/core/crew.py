"""The workers of a run, counted: who stands in which phase, without looking at each of them.

After every fact the joint rules ask the same few questions of every step. A run may have thousands
of workers of which a fact moves one. So the answers are kept up to date instead of looked for, and
a turn copies only what it changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, Self, TypeVar

from engine.ids import WorkerId
from engine.messages.results import Outcome
from engine.phases import HOLDING, SETTLED, Phase

_BITS = 6
"""A turn copies the members beside the one that it changes: so many, as a power of two."""
_LAST = (1 << _BITS) - 1


class Member(Protocol):
    """A worker, as far as it has to be known to be counted."""

    @property
    def id(self) -> WorkerId:
        """Return its name."""

    @property
    def phase(self) -> Phase:
        """Return its phase."""

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of its own work."""


M = TypeVar("M", bound=Member)


class _Tally:
    """One step's workers by phase, and how many of each outcome.

    A set of places in the run's order is a number with these bits: it is never changed in place,
    so a copy shares it, and a step of a thousand workers is counted as quickly as one of ten.
    """

    __slots__ = ("outcomes", "phases", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.phases: dict[Phase, int] = {}
        self.outcomes: dict[Outcome, int] = {}

    def copy(self) -> "_Tally":
        made = _Tally()
        made.places = self.places  # grows only while a crew is made
        made.phases, made.outcomes = dict(self.phases), dict(self.outcomes)
        return made

    def enter(self, place: int, member: Member) -> None:
        self.phases[member.phase] = self.phases.get(member.phase, 0) | (1 << place)
        self.outcomes[member.outcome] = self.outcomes.get(member.outcome, 0) + 1

    def leave(self, place: int, member: Member) -> None:
        self.phases[member.phase] ^= 1 << place
        self.outcomes[member.outcome] -= 1

    def standing(self, phases: Iterable[Phase]) -> int:
        """Return the places of those in one of these phases."""
        places = 0
        for phase in phases:
            places |= self.phases.get(phase, 0)
        return places


class Crew(Mapping[WorkerId, M], Generic[M]):
    """A run's workers in plan order. Only the turn that made a copy may `put`, until it ends."""

    __slots__ = ("_members", "_order", "_own", "_own_steps", "_place", "_steps")

    def __init__(self, members: Mapping[WorkerId, M]) -> None:
        """Count everybody once; the order of `members` is that of the plan, step by step."""
        every = list(members.values())
        self._order = [member.id for member in every]
        self._place = {worker: place for place, worker in enumerate(self._order)}
        self._members = [every[n : n + _LAST + 1] for n in range(0, len(every), _LAST + 1)]
        self._own: set[int] = set()
        self._steps: dict[str, _Tally] = {}
        self._own_steps: set[str] = set()
        for place, member in enumerate(every):
            tally = self._steps.setdefault(member.id.step, _Tally())
            tally.places.append(place)
            tally.enter(place, member)

    def copy(self) -> Self:
        """Return the same workers, to be changed."""
        made = object.__new__(type(self))
        made._order, made._place = self._order, self._place
        made._members, made._own = list(self._members), set()
        made._steps, made._own_steps = dict(self._steps), set()
        return made

    def __getitem__(self, worker: WorkerId) -> M:
        place = self._place[worker]
        return self._members[place >> _BITS][place & _LAST]

    def __contains__(self, worker: object) -> bool:
        return worker in self._place

    def __iter__(self) -> Iterator[WorkerId]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def put(self, member: M) -> None:
        """Take in how a worker stands now."""
        place = self._place[member.id]
        shelf = place >> _BITS
        if shelf not in self._own:  # it is shared with the crew before until it is changed
            self._own.add(shelf)
            self._members[shelf] = list(self._members[shelf])
        before = self._members[shelf][place & _LAST]
        self._members[shelf][place & _LAST] = member
        if before.phase is not member.phase or before.outcome is not member.outcome:
            tally = self._tally(member.id.step)
            tally.leave(place, before)
            tally.enter(place, member)

    def _tally(self, step: str) -> _Tally:
        """Return a step's tally, to be changed: it is shared with the crew before until it is."""
        if step not in self._own_steps:
            self._own_steps.add(step)
            self._steps[step] = self._steps[step].copy()
        return self._steps[step]

    def _at(self, place: int) -> M:
        return self._members[place >> _BITS][place & _LAST]

    def of(self, step: str) -> tuple[M, ...]:
        """Return all workers of a step, in worker order."""
        tally = self._steps.get(step)
        return tuple(map(self._at, tally.places)) if tally else ()

    def standing(
        self, phases: Iterable[Phase], step: str | None = None, at_most: int | None = None
    ) -> list[M]:
        """Return those of a step, or of the run, in one of these phases, in plan order.

        Whoever wants only the first of thousands says so: the others are not even looked at.
        """
        phases, places = tuple(phases), 0
        for tally in self._tallies(step):
            places |= tally.standing(phases)
        return [self._at(place) for place in _each(places, at_most)]

    def count(self, phases: Iterable[Phase], step: str | None = None) -> int:
        """Return the number of workers of a step, or of the run, in one of these phases."""
        phases = tuple(phases)
        return sum(tally.standing(phases).bit_count() for tally in self._tallies(step))

    def outcomes(self, step: str) -> Mapping[Outcome, int]:
        """Return the number of workers of a step by outcome."""
        tally = self._steps.get(step)
        return tally.outcomes if tally else {}

    @property
    def holding(self) -> int:
        """Return the number of workers that hold a slot."""
        return self.count(HOLDING)

    @property
    def is_settled(self) -> bool:
        """Return whether everybody has come to rest for good."""
        return self.count(SETTLED) == len(self)

    def _tallies(self, step: str | None) -> Iterable[_Tally]:
        if step is None:
            return self._steps.values()
        tally = self._steps.get(step)
        return () if tally is None else (tally,)


def _each(places: int, at_most: int | None) -> list[int]:
    """Return the places in a set, the first ones first."""
    found: list[int] = []
    if at_most == 1:  # as mostly: whoever stands behind the first is not even looked at
        places &= -places
    bits = bin(places)[:1:-1]
    place = bits.find("1")
    while place >= 0 and len(found) != at_most:
        found.append(place)
        place = bits.find("1", place + 1)
    return found

"""The workers of a run, counted: who stands in which phase, without looking at each of them.

After every fact the joint rules ask the same few questions of every step. A run may have thousands
of workers of which a fact moves one, so the answers are kept up to date rather than looked for.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, Self, TypeVar

from engine.ids import WorkerId
from engine.phases import HOLDING, SETTLED, Phase
from engine.results import Outcome


class Member(Protocol):
    """What has to be known of a worker to count it."""

    @property
    def id(self) -> WorkerId:
        """Its name."""

    @property
    def phase(self) -> Phase:
        """Where it stands."""

    @property
    def outcome(self) -> Outcome:
        """What its own work has come to."""


M = TypeVar("M", bound=Member)


class _Tally:
    """One step's workers by phase, as places in the run's order, and how many of each outcome."""

    __slots__ = ("outcomes", "phases", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.phases: dict[Phase, set[int]] = {}
        self.outcomes: dict[Outcome, int] = {}

    def copy(self) -> "_Tally":
        made = _Tally()
        made.places = self.places  # grows only while a crew is made
        made.phases = {phase: set(places) for phase, places in self.phases.items() if places}
        made.outcomes = dict(self.outcomes)
        return made

    def enter(self, place: int, member: Member) -> None:
        self.phases.setdefault(member.phase, set()).add(place)
        self.outcomes[member.outcome] = self.outcomes.get(member.outcome, 0) + 1

    def leave(self, place: int, member: Member) -> None:
        self.phases[member.phase].discard(place)
        self.outcomes[member.outcome] -= 1


class Crew(dict[WorkerId, M], Generic[M]):
    """A run's workers in plan order. Only the turn that made a copy may `put`, until it ends."""

    def __init__(self, members: Mapping[WorkerId, M]) -> None:
        """Count everybody once; the order of `members` is that of the plan, step by step."""
        super().__init__(members)
        self._order = list(self)
        self._place = {worker: place for place, worker in enumerate(self._order)}
        self._steps: dict[str, _Tally] = {}
        for place, member in enumerate(self.values()):
            tally = self._steps.setdefault(member.id.step, _Tally())
            tally.places.append(place)
            tally.enter(place, member)

    def copy(self) -> Self:
        """The same workers, to be changed."""
        made = self.__class__.__new__(self.__class__)
        made.update(self)
        made._order, made._place, made._steps = self._order, self._place, dict(self._steps)  # noqa: SLF001  its own kind
        return made

    def put(self, member: M) -> None:
        """Take in how a worker stands now."""
        place, before = self._place[member.id], self[member.id]
        self[member.id] = member
        if before.phase is not member.phase or before.outcome is not member.outcome:
            # A step's tally is shared with the crew before until something of it changes.
            tally = self._steps[member.id.step] = self._steps[member.id.step].copy()
            tally.leave(place, before)
            tally.enter(place, member)

    def of(self, step: str) -> tuple[M, ...]:
        """All workers of a step, in worker order."""
        order, tally = self._order, self._steps.get(step)
        return tuple(self[order[place]] for place in tally.places) if tally else ()

    def standing(
        self, phases: Iterable[Phase], step: str | None = None, at_most: int | None = None
    ) -> list[M]:
        """Those of a step, or of the run, who stand in one of these phases, in plan order.

        Whoever wants only the first of thousands says so: the others are not even looked at.
        """
        order = self._order
        places = [
            place
            for tally in self._tallies(step)
            for phase in phases
            for place in tally.phases.get(phase, ())
        ]
        places.sort()
        return [self[order[place]] for place in places[:at_most]]

    def count(self, phases: Iterable[Phase], step: str | None = None) -> int:
        """How many of a step, or of the run, stand in one of these phases."""
        return sum(
            len(tally.phases.get(phase, ())) for tally in self._tallies(step) for phase in phases
        )

    def outcomes(self, step: str) -> Mapping[Outcome, int]:
        """How many workers of a step have come to what."""
        tally = self._steps.get(step)
        return tally.outcomes if tally else {}

    @property
    def holding(self) -> int:
        """How many hold a slot."""
        return self.count(HOLDING)

    @property
    def is_settled(self) -> bool:
        """Everybody has come to rest for good."""
        return self.count(SETTLED) == len(self)

    def _tallies(self, step: str | None) -> Iterable[_Tally]:
        if step is None:
            return self._steps.values()
        tally = self._steps.get(step)
        return () if tally is None else (tally,)

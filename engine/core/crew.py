"""The workers of a run, counted: who stands in which phase, without looking at each of them.

After every fact the joint rules ask the same few questions of every step. A run may have thousands
of workers of which a fact moves one, so the answers are kept up to date rather than looked for.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Generic, Protocol, Self, TypeVar

from engine.ids import WorkerId
from engine.messages.results import Outcome
from engine.phases import HOLDING, SETTLED, Phase


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
    """One step's workers by phase, as places in the run's order, and how many of each outcome.

    A copy shares its sets with the tally before it until it changes them: those it has of its own
    are named in `own`. Thousands wait, or have settled, while a few go from phase to phase.
    """

    __slots__ = ("outcomes", "own", "phases", "places")

    def __init__(self) -> None:
        self.places: list[int] = []
        self.phases: dict[Phase, set[int]] = {}
        self.own: set[Phase] = set()
        self.outcomes: dict[Outcome, int] = {}

    def copy(self) -> "_Tally":
        made = _Tally()
        made.places = self.places  # grows only while a crew is made
        made.phases = {phase: places for phase, places in self.phases.items() if places}
        made.outcomes = dict(self.outcomes)
        return made

    def enter(self, place: int, member: Member) -> None:
        self._of(member.phase).add(place)
        self.outcomes[member.outcome] = self.outcomes.get(member.outcome, 0) + 1

    def leave(self, place: int, member: Member) -> None:
        self._of(member.phase).discard(place)
        self.outcomes[member.outcome] -= 1

    def _of(self, phase: Phase) -> set[int]:
        if phase not in self.own:
            self.own.add(phase)
            self.phases[phase] = set(self.phases.get(phase, ()))
        return self.phases[phase]


class Crew(dict[WorkerId, M], Generic[M]):
    """A run's workers in plan order. Only the turn that made a copy may `put`, until it ends."""

    def __init__(self, members: Mapping[WorkerId, M]) -> None:
        """Count everybody once; the order of `members` is that of the plan, step by step."""
        super().__init__(members)
        self._order = list(self)
        self._place = {worker: place for place, worker in enumerate(self._order)}
        self._steps: dict[str, _Tally] = {}
        self._own: set[str] = set()
        for place, member in enumerate(self.values()):
            tally = self._steps.setdefault(member.id.step, _Tally())
            tally.places.append(place)
            tally.enter(place, member)

    def copy(self) -> Self:
        """Return the same workers, to be changed."""
        made = self.__class__.__new__(self.__class__)
        made.update(self)
        made._order, made._place, made._steps = self._order, self._place, dict(self._steps)  # noqa: SLF001  its own kind
        made._own = set()  # noqa: SLF001  its own kind
        return made

    def put(self, member: M) -> None:
        """Take in how a worker stands now."""
        place, before = self._place[member.id], self[member.id]
        self[member.id] = member
        if before.phase is not member.phase or before.outcome is not member.outcome:
            tally = self._tally(member.id.step)
            tally.leave(place, before)
            tally.enter(place, member)

    def _tally(self, step: str) -> _Tally:
        """Return a step's tally, to be changed: it is shared with the crew before until it is."""
        if step not in self._own:
            self._own.add(step)
            self._steps[step] = self._steps[step].copy()
        return self._steps[step]

    def of(self, step: str) -> tuple[M, ...]:
        """Return all workers of a step, in worker order."""
        order, tally = self._order, self._steps.get(step)
        return tuple(self[order[place]] for place in tally.places) if tally else ()

    def standing(
        self, phases: Iterable[Phase], step: str | None = None, at_most: int | None = None
    ) -> list[M]:
        """Return those of a step, or of the run, in one of these phases, in plan order.

        Whoever wants only the first of thousands says so: the others are not even looked at.
        """
        order = self._order
        sets = [tally.phases.get(phase, ()) for tally in self._tallies(step) for phase in phases]
        if at_most == 1:
            first = min((min(places) for places in sets if places), default=None)
            return [] if first is None else [self[order[first]]]
        places = sorted(chain.from_iterable(sets))
        return [self[order[place]] for place in places[:at_most]]

    def count(self, phases: Iterable[Phase], step: str | None = None) -> int:
        """Return the number of workers of a step, or of the run, in one of these phases."""
        return sum(
            len(tally.phases.get(phase, ())) for tally in self._tallies(step) for phase in phases
        )

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

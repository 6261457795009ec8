"""Define what attempts come to when they are added up, and the question for it."""

from enum import StrEnum

from engine.messages.questions import Ask
from engine.values import dataclass


class Axis(StrEnum):
    """The property that attempts are counted by."""

    AGENT = "agent"
    MODEL = "model"
    STEP = "step"
    PERSON = "person"
    REPOSITORY = "repository"
    WEEK = "week"


class Reach(StrEnum):
    """Whose attempts are counted: of this repository, of all of one's own, of the team."""

    HERE = "here"
    OWN = "own"
    TEAM = "team"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of all attempts that have one property in common.

    Attributes:
        first_checks: First attempts of workers that were checked; `first_passed` of them passed.
        conflicts: Attempts whose change met a conflict.
        proposed: The hunks of all changes that were decided about; `kept` of them landed.
        left_out: Hunks that a human left out before landing.
        usd: What all of them cost, as far as agents tell it; None where none does.
    """

    name: str
    runs: int
    attempts: int
    success: int
    first_checks: int
    first_passed: int
    conflicts: int
    proposed: int
    kept: int
    left_out: int
    review_s: float
    landed: int
    usd: float | None
    tokens: int | None

    @property
    def usd_per_landed(self) -> float | None:
        """Return the cost of one landed change, failures included."""
        return self.usd / self.landed if self.usd is not None and self.landed else None


@dataclass(frozen=True)
class CountAttempts(Ask[tuple[Figures, ...]]):
    """Add up attempts by one property, those with most attempts first.

    Attributes:
        since: Only those that began later, in wall-clock seconds.
        of: Only those whose property `of` is `name`, also where that is empty.
    """

    reach: Reach = Reach.HERE
    by: Axis = Axis.AGENT
    since: float | None = None
    of: Axis | None = None
    name: str = ""
